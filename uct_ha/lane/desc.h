/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_DESC_H_
#define UCT_HA_DESC_H_

/* Buffers of an interface, registered on both rails in chunks: what is sent from
 * copies, and what messages are received in. Owned by progress: no lock. */

#include "abi/uct_ha_abi.h"
#include "mem/duo.h"

struct uct_ha_desc {
    struct uct_ha_desc *next; /* while free */
    struct uct_ha_mem  *mem;
    uint8_t             data[] __attribute__((aligned(64)));
};

/* What is received begins behind `lead`: the user may keep it, and wants `headroom` bytes before it for that, and UCX a
 * word before these, which leads to `taker`. */
struct uct_ha_desc_pool {
    const struct uct_ha_duo *duo;      /* where they are registered */
    size_t                   seg_size; /* bytes of each */
    struct uct_ha_desc      *free;
    struct uct_ha_desc      *returned;   /* atomic; by job threads */
    struct uct_ha_chunk     *chunks;     /* atomic */
    unsigned                 num_chunks; /* atomic */
    size_t                   headroom, lead;
    uct_recv_desc_t          taker;
    uint32_t                 kept, kept_max; /* by the user */
    uint8_t                  is_short;       /* no memory could be registered for what he keeps */
};

/* `most`: bytes that the user may keep. */
void uct_ha_desc_init(struct uct_ha_desc_pool *pool, const struct uct_ha_duo *duo, size_t seg_size, size_t headroom,
                      size_t most);

/* A buffer of seg_size bytes, or NULL when memory is short. */
struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_desc_pool *pool);

static inline struct uct_ha_desc *uct_ha_desc_alloc(struct uct_ha_desc_pool *pool)
{
    struct uct_ha_desc *desc = pool->free;

    if (ucs_unlikely(desc == NULL)) {
        return uct_ha_desc_alloc_slow(pool);
    }
    pool->free = desc->next;
    return desc;
}

static inline void uct_ha_desc_free(struct uct_ha_desc_pool *pool, struct uct_ha_desc *desc)
{
    desc->next = pool->free;
    pool->free = desc;
}

static inline uint8_t *uct_ha_desc_received(const struct uct_ha_desc_pool *pool, struct uct_ha_desc *desc)
{
    return desc->data + pool->lead;
}

/* One that takes the place, on that rail, of one that the user keeps; NULL: he may not keep any. */
struct uct_ha_desc *uct_ha_desc_spare(struct uct_ha_desc_pool *pool, unsigned rail_no);

/* The user is offered to keep what was received at `data`. */
static inline void uct_ha_desc_offer(struct uct_ha_desc_pool *pool, uint8_t *data)
{
    uct_recv_desc(data - pool->headroom) = &pool->taker;
}

/* From another thread than progress; uct_ha_desc_alloc_slow() finds it. */
void uct_ha_desc_return(struct uct_ha_desc_pool *pool, struct uct_ha_desc *desc);

/* One that is at hand, or NULL: no memory is registered for it. Progress. */
struct uct_ha_desc *uct_ha_desc_at_hand(struct uct_ha_desc_pool *pool);

/* Put so many on a list: registers memory if need be, which may block. Any thread. 0 or -ENOMEM; what
 * is on the list stays there. */
int  uct_ha_desc_stock(struct uct_ha_desc_pool *pool, unsigned count, struct uct_ha_desc **list);
void uct_ha_desc_return_list(struct uct_ha_desc_pool *pool, struct uct_ha_desc *list);

void uct_ha_desc_cleanup(struct uct_ha_desc_pool *pool);

#endif
