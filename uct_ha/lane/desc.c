/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/desc.h"

#include "base/slab.h"

#include <errno.h>
#include <stdlib.h>

#define DESCS_FEW 64 /* in a chunk, */
#define FEW       2  /* ... of which the first so many are; then a huge page each, if it holds more */
#define PAGE      4096u

struct uct_ha_chunk {
    struct uct_ha_chunk *next;
    unsigned             descs;
    struct uct_ha_mem    mem;
};

static size_t desc_stride(const struct uct_ha_desc_pool *pool)
{
    return (sizeof(struct uct_ha_desc) + pool->lead + pool->seg_size + 63) & ~(size_t)63;
}

/* The user has kept it, and needs it no more: `at` is where his part begins. In progress' turn, as all that he does. */
static void take_back(uct_recv_desc_t *taker, void *at)
{
    struct uct_ha_desc_pool *pool = ucs_container_of(taker, struct uct_ha_desc_pool, taker);
    uint8_t                 *data = (uint8_t *)at + pool->headroom - pool->lead;

    pool->kept--;
    uct_ha_desc_free(pool, (struct uct_ha_desc *)(void *)(data - offsetof(struct uct_ha_desc, data)));
}

void uct_ha_desc_init(struct uct_ha_desc_pool *pool, const struct uct_ha_duo *duo, size_t seg_size, size_t headroom,
                      size_t most)
{
    pool->duo      = duo;
    pool->seg_size = seg_size;
    pool->headroom = headroom;
    pool->lead     = (headroom + sizeof(uct_recv_desc_t *) + 63) & ~(size_t)63;
    pool->taker.cb = take_back;
    pool->kept_max = (uint32_t)ucs_min(most / desc_stride(pool), UINT32_MAX);
}

static void chunk_destroy(struct uct_ha_chunk *chunk)
{
    uct_ha_reg_cleanup(&chunk->mem);
    free(chunk->mem.address);
    free(chunk);
}

/* On both rails at once: what is sent again after a failover comes from here. */
static struct uct_ha_chunk *make_chunk(struct uct_ha_desc_pool *pool, int huge)
{
    size_t               stride = desc_stride(pool), bytes = huge ? UCT_HA_HUGE_PAGE : DESCS_FEW * stride;
    struct uct_ha_chunk *chunk  = malloc(sizeof(*chunk));
    void                *memory = NULL;

    if (chunk != NULL) {
        memory = huge ? uct_ha_huge_alloc() : aligned_alloc(PAGE, bytes);
    }
    if (memory == NULL) {
        free(chunk);
        return NULL;
    }
    chunk->descs = (unsigned)(bytes / stride);
    uct_ha_reg_init(&chunk->mem, memory, bytes, 0);
    if (uct_ha_duo_reg_own(pool->duo, &chunk->mem, huge ? UCT_MD_MEM_FLAG_HIDE_ERRORS : 0) != UCS_OK) {
        chunk_destroy(chunk);
        return NULL;
    }
    uct_ha_duo_reg_standby(pool->duo, &chunk->mem);
    chunk->next = __atomic_load_n(&pool->chunks, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&pool->chunks, &chunk->next, chunk, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_add(&pool->num_chunks, 1, __ATOMIC_RELAXED);
    return chunk;
}

static struct uct_ha_chunk *chunk_create(struct uct_ha_desc_pool *pool)
{
    int huge = __atomic_load_n(&pool->num_chunks, __ATOMIC_RELAXED) >= FEW &&
               UCT_HA_HUGE_PAGE > DESCS_FEW * desc_stride(pool);
    struct uct_ha_chunk *chunk = huge ? make_chunk(pool, 1) : NULL;

    return chunk != NULL ? chunk : make_chunk(pool, 0);
}

static struct uct_ha_desc *desc_of(const struct uct_ha_desc_pool *pool, struct uct_ha_chunk *chunk, unsigned i)
{
    struct uct_ha_desc *desc = UCS_PTR_BYTE_OFFSET(chunk->mem.address, i * desc_stride(pool));

    desc->mem = &chunk->mem;
    return desc;
}

void uct_ha_desc_return(struct uct_ha_desc_pool *pool, struct uct_ha_desc *desc)
{
    desc->next = __atomic_load_n(&pool->returned, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&pool->returned, &desc->next, desc, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

struct uct_ha_desc *uct_ha_desc_spare(struct uct_ha_desc_pool *pool, unsigned rail_no)
{
    struct uct_ha_desc *spare;

    if (pool->kept >= pool->kept_max) {
        return NULL;
    }
    spare = pool->is_short ? uct_ha_desc_at_hand(pool) : uct_ha_desc_alloc(pool);
    if (spare == NULL) {
        pool->is_short = 1; /* not with each message anew: what is not kept is copied */
    } else if (!uct_ha_reg_is_on(spare->mem, rail_no)) {
        uct_ha_desc_free(pool, spare);
        spare = NULL;
    }
    return spare;
}

struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_desc_pool *pool)
{
    struct uct_ha_chunk *chunk;

    pool->free = __atomic_exchange_n(&pool->returned, NULL, __ATOMIC_ACQUIRE);
    if (pool->free != NULL) {
        return uct_ha_desc_alloc(pool);
    }
    chunk = chunk_create(pool);
    if (chunk == NULL) {
        return NULL;
    }
    for (unsigned i = chunk->descs; i-- > 0;) { /* the first one is taken first */
        uct_ha_desc_free(pool, desc_of(pool, chunk, i));
    }
    return uct_ha_desc_alloc(pool);
}

struct uct_ha_desc *uct_ha_desc_at_hand(struct uct_ha_desc_pool *pool)
{
    if (pool->free == NULL) {
        pool->free = __atomic_exchange_n(&pool->returned, NULL, __ATOMIC_ACQUIRE);
    }
    return pool->free == NULL ? NULL : uct_ha_desc_alloc(pool);
}

void uct_ha_desc_return_list(struct uct_ha_desc_pool *pool, struct uct_ha_desc *list)
{
    struct uct_ha_desc *desc;

    while ((desc = list) != NULL) {
        list = desc->next;
        uct_ha_desc_return(pool, desc);
    }
}

/* From `from`, in its order, as long as there are any; what is not wanted goes back. Returns how many. */
static unsigned take(struct uct_ha_desc_pool *pool, struct uct_ha_desc *from, unsigned count, struct uct_ha_desc **list)
{
    struct uct_ha_desc *first = from, **end = &first, *none = NULL;
    unsigned            taken = 0;

    while (taken < count && from != NULL) {
        end  = &from->next;
        from = from->next;
        taken++;
    }
    *end  = *list;
    *list = first;
    if (from != NULL &&
        !__atomic_compare_exchange_n(&pool->returned, &none, from, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        uct_ha_desc_return_list(pool, from); /* others came first */
    }
    return taken;
}

int uct_ha_desc_stock(struct uct_ha_desc_pool *pool, unsigned count, struct uct_ha_desc **list)
{
    struct uct_ha_chunk *chunk;

    while (count > 0) {
        count -= take(pool, __atomic_exchange_n(&pool->returned, NULL, __ATOMIC_ACQUIRE), count, list);
        chunk = count > 0 ? chunk_create(pool) : NULL;
        if (chunk == NULL) {
            return count > 0 ? -ENOMEM : 0;
        }
        for (unsigned i = chunk->descs; i-- > 0;) {
            uct_ha_desc_return(pool, desc_of(pool, chunk, i));
        }
    }
    return 0;
}

void uct_ha_desc_cleanup(struct uct_ha_desc_pool *pool)
{
    struct uct_ha_chunk *chunk;

    while ((chunk = pool->chunks) != NULL) {
        pool->chunks = chunk->next;
        chunk_destroy(chunk);
    }
    pool->free = pool->returned = NULL;
    pool->num_chunks            = 0;
}
