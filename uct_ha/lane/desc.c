/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/desc.h"

#include <stdlib.h>

#define DESCS_PER_CHUNK 64

struct uct_ha_chunk {
    struct uct_ha_chunk *next;
    struct uct_ha_mem    mem;
};

static size_t desc_stride(const struct uct_ha_desc_pool *pool)
{
    return ucs_align_up_pow2(sizeof(struct uct_ha_desc) + pool->seg_size, 64);
}

static void chunk_destroy(struct uct_ha_chunk *chunk)
{
    uct_ha_reg_cleanup(&chunk->mem);
    free(chunk->mem.address);
    free(chunk);
}

/* On both rails at once: what is sent again after a failover comes from here. */
static struct uct_ha_chunk *chunk_create(struct uct_ha_desc_pool *pool)
{
    size_t               bytes = DESCS_PER_CHUNK * desc_stride(pool);
    struct uct_ha_chunk *chunk = malloc(sizeof(*chunk));
    void                *memory;

    if (chunk == NULL || posix_memalign(&memory, 4096, bytes) != 0) {
        free(chunk);
        return NULL;
    }
    uct_ha_reg_init(&chunk->mem, memory, bytes, 0);
    if (uct_ha_duo_reg_own(pool->duo, &chunk->mem, 0) != UCS_OK) {
        chunk_destroy(chunk);
        return NULL;
    }
    uct_ha_duo_reg_standby(pool->duo, &chunk->mem);
    return chunk;
}

void uct_ha_desc_return(struct uct_ha_desc_pool *pool, struct uct_ha_desc *desc)
{
    desc->next = __atomic_load_n(&pool->returned, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&pool->returned, &desc->next, desc, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_desc_pool *pool)
{
    struct uct_ha_chunk *chunk;
    struct uct_ha_desc  *desc;

    pool->free = __atomic_exchange_n(&pool->returned, NULL, __ATOMIC_ACQUIRE);
    if (pool->free != NULL) {
        return uct_ha_desc_alloc(pool);
    }
    chunk = chunk_create(pool);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->next  = pool->chunks;
    pool->chunks = chunk;
    for (unsigned i = 0; i < DESCS_PER_CHUNK; i++) {
        desc      = UCS_PTR_BYTE_OFFSET(chunk->mem.address, i * desc_stride(pool));
        desc->mem = &chunk->mem;
        uct_ha_desc_free(pool, desc);
    }
    return uct_ha_desc_alloc(pool);
}

void uct_ha_desc_cleanup(struct uct_ha_desc_pool *pool)
{
    struct uct_ha_chunk *chunk;

    while ((chunk = pool->chunks) != NULL) {
        pool->chunks = chunk->next;
        chunk_destroy(chunk);
    }
    pool->free = pool->returned = NULL;
}
