/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_desc.h"

#include "uct_ha_mem.h"

#include <stdlib.h>

#define DESCS_PER_CHUNK 64

struct uct_ha_chunk {
    struct uct_ha_chunk *next;
    void                *memory;
    uct_mem_h            memh;
};

static size_t desc_stride(const struct uct_ha_iface *iface)
{
    return ucs_align_up_pow2(sizeof(struct uct_ha_desc) + iface->config.seg_size, 64);
}

static struct uct_ha_chunk *chunk_create(struct uct_ha_iface *iface)
{
    size_t               bytes = DESCS_PER_CHUNK * desc_stride(iface);
    struct uct_ha_chunk *chunk = calloc(1, sizeof(*chunk));

    if (chunk == NULL || posix_memalign(&chunk->memory, 4096, bytes) != 0) {
        free(chunk);
        return NULL;
    }
    if (uct_ha_mem_reg(&iface->md->super, chunk->memory, bytes, 0, &chunk->memh) != UCS_OK) {
        free(chunk->memory);
        free(chunk);
        return NULL;
    }
    return chunk;
}

struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_iface *iface)
{
    struct uct_ha_chunk *chunk = chunk_create(iface);
    struct uct_ha_desc  *desc;

    if (chunk == NULL) {
        return NULL;
    }
    chunk->next   = iface->chunks;
    iface->chunks = chunk;
    for (unsigned i = 0; i < DESCS_PER_CHUNK; i++) {
        desc      = UCS_PTR_BYTE_OFFSET(chunk->memory, i * desc_stride(iface));
        desc->mem = uct_ha_mem(chunk->memh);
        uct_ha_desc_free(iface, desc);
    }
    return uct_ha_desc_alloc(iface);
}

void uct_ha_desc_cleanup(struct uct_ha_iface *iface)
{
    struct uct_ha_chunk      *chunk;
    uct_md_mem_dereg_params_t params = { .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH };

    while ((chunk = iface->chunks) != NULL) {
        iface->chunks = chunk->next;
        params.memh   = chunk->memh;
        (void)uct_ha_mem_dereg(&iface->md->super, &params);
        free(chunk->memory);
        free(chunk);
    }
    iface->free_desc = NULL;
}
