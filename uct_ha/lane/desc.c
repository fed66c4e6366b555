/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/desc.h"

#include "mem/mem.h"

#include <stdlib.h>

#define DESCS_PER_CHUNK 64

struct uct_ha_chunk {
    struct uct_ha_chunk *next;
    struct uct_ha_mem    mem;
};

static size_t desc_stride(const struct uct_ha_iface *iface)
{
    return ucs_align_up_pow2(sizeof(struct uct_ha_desc) + iface->config.seg_size, 64);
}

static void chunk_destroy(struct uct_ha_chunk *chunk)
{
    uct_ha_reg_cleanup(&chunk->mem);
    free(chunk->mem.address);
    free(chunk);
}

/* On both rails at once: what is sent again after a failover comes from here. */
static struct uct_ha_chunk *chunk_create(struct uct_ha_iface *iface)
{
    size_t               bytes = DESCS_PER_CHUNK * desc_stride(iface);
    struct uct_ha_chunk *chunk = malloc(sizeof(*chunk));
    void                *memory;

    if (chunk == NULL || posix_memalign(&memory, 4096, bytes) != 0) {
        free(chunk);
        return NULL;
    }
    uct_ha_reg_init(&chunk->mem, memory, bytes, 0);
    if (uct_ha_mem_reg_own(iface->md, &chunk->mem, 0) != UCS_OK) {
        chunk_destroy(chunk);
        return NULL;
    }
    uct_ha_mem_reg_standby(iface->md, &chunk->mem);
    return chunk;
}

void uct_ha_desc_return(struct uct_ha_iface *iface, struct uct_ha_desc *desc)
{
    desc->next = __atomic_load_n(&iface->returned_desc, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&iface->returned_desc, &desc->next, desc, 1,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_iface *iface)
{
    struct uct_ha_chunk *chunk;
    struct uct_ha_desc  *desc;

    iface->free_desc = __atomic_exchange_n(&iface->returned_desc, NULL, __ATOMIC_ACQUIRE);
    if (iface->free_desc != NULL) {
        return uct_ha_desc_alloc(iface);
    }
    chunk = chunk_create(iface);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->next   = iface->chunks;
    iface->chunks = chunk;
    for (unsigned i = 0; i < DESCS_PER_CHUNK; i++) {
        desc      = UCS_PTR_BYTE_OFFSET(chunk->mem.address, i * desc_stride(iface));
        desc->mem = &chunk->mem;
        uct_ha_desc_free(iface, desc);
    }
    return uct_ha_desc_alloc(iface);
}

void uct_ha_desc_cleanup(struct uct_ha_iface *iface)
{
    struct uct_ha_chunk *chunk;

    while ((chunk = iface->chunks) != NULL) {
        iface->chunks = chunk->next;
        chunk_destroy(chunk);
    }
    iface->free_desc = iface->returned_desc = NULL;
}
