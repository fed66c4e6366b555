/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LANES_H_
#define UCT_HA_LANES_H_

/*
 * What all lanes of an interface share. Slot 0 is the rail that UCX chose, slot 1 the standby.
 * The first part is constant once the interface is open; the second is progress's alone, but
 * for what is said to be atomic; the last is under wake.lock.
 */

#include "base/config.h"
#include "base/job.h"
#include "base/wake.h"
#include "core/ha_pair.h"
#include "lane/chain.h"
#include "lane/desc.h"
#include "lane/room.h"

struct uct_ha_lane;
struct uct_ha_road;

struct uct_ha_shared;

/* A receive buffer, and the request that posts it. */
struct uct_ha_place {
    struct ha_recv        recv;
    struct ha_sge         sge; /* all of the buffer */
    struct uct_ha_desc   *desc;
    struct uct_ha_shared *shared; /* whose it is, NULL: a ring's; 64 bytes in all */
};

#define UCT_HA_PAGE_BITS 12 /* queue pairs have numbers of 24 bits */
#define UCT_HA_PAGE_MASK ((1u << UCT_HA_PAGE_BITS) - 1)

/* Receives that all lanes of a slot share, see lane/shared.h. */
struct uct_ha_shared {
    struct uct_ha_lanes  *lanes;
    struct ha_srq        *srq; /* NULL: there is none */
    struct uct_ha_place  *places;
    unsigned              slot;
    struct uct_ha_road ***page;                   /* roads, by the numbers of their queue pairs */
    struct uct_ha_chain   chain;                  /* consumed, to be posted together */
    uint32_t              chain_max, chain_round; /* it is posted when so many are in it; this time */
    uint32_t              chain_left;             /* of these so many, or a few more, are not: some are looked at */
    uint32_t              count, soft, most;      /* places; how many there may be now, and ever */
    uint32_t              wanted;
    uint32_t              posted;  /* again, at least: runs freely; atomic */
    uint32_t              marked;  /* ... when those that were out were marked, to find lost ones */
    uint32_t              turn;    /* ... and so many are enough for all to have been used */
    uint32_t              lost;    /* found so far, and replaced */
    uint8_t               refused; /* receives by the device, in a row */
    uint8_t               marking; /* how far the search for lost ones is */
    uint8_t               watched; /* once more are wanted than may be: the device is asked to tell */
    uint8_t               again;   /* few were left while a job was at it */
    uint8_t               deaf;    /* ... and cannot */
    uint8_t               busy;    /* a job asks it, or makes more of them; under the lock, as are */
    struct uct_ha_job     job;
    uint32_t              coming; /* by it */
    unsigned              depth;  /* of the completion queue, for them; 0: as it is */
    uint32_t low_until; /* few were left; when so many have been posted that is over: half of those that there were */
    uint32_t asked;     /* posted, when the device was asked last */
    uint8_t  low;       /* ... not yet */
    struct uct_ha_lane *graves;
};

struct uct_ha_lanes {
    const struct uct_ha_iface_config *config;
    int                               slots;
    int                               alone;             /* no standby is wanted */
    struct ha_rail                   *rail[HA_SLOTS];    /* the domain's; valid while it is open */
    unsigned                          rail_no[HA_SLOTS]; /* their numbers, see mem/reg.h */
    uint8_t                           proof[HA_SLOTS];   /* kind that this side gives, enum ha_proof */
    unsigned                          max_inline, max_sge;
    uint32_t                          max_zcopy;                        /* of a PUT or GET, on whatever rail it ends */
    unsigned                          credits, rx_window_max, rx_depth; /* first window, largest, with reserve */
    uint32_t                          log_len;
    uint32_t                          tell_every; /* of operations that may be silent, one tells */

    struct uct_ha_room      room[HA_SLOTS];
    struct uct_ha_shared    shared[HA_SLOTS];
    struct uct_ha_desc_pool pool;
    struct uct_ha_desc     *spare[HA_SLOTS]; /* takes the place of a message that the user keeps */
    struct uct_ha_lane    **table;           /* by the low bits of the id; NULL before the first lane */
    uint32_t                table_len, table_mask, next_id;
    size_t                  rx_grown;   /* bytes of all windows beyond their first size */
    uint8_t                 rings;      /* some lane has receives of its own, or had */
    uint8_t                 limit_told; /* a limit of the device was reached */

    struct uct_ha_wake  wake;
    struct uct_ha_lane *parked;
    uint64_t            reap_at;        /* they are looked at again then */
    uint8_t             gone[HA_SLOTS]; /* own card: not believed, and never back */
    uint8_t             left[HA_SLOTS]; /* ... or removed, which waits for us: never back, nothing is begun there */
    unsigned            used[HA_SLOTS]; /* connections that send or deliver there; lane/look.h */
    unsigned            stopping;       /* lanes that are stopped, until they are parked */
    int                 look;           /* atomic: which queues progress looks at each time */
    uint64_t            silence;        /* a card that was told to stop may say nothing for so long */
    uint8_t             leaving;        /* the interface closes: nothing new is begun */
    /* handed down: the device has stopped this lane, or refuses to; has answered how far it came; the
     * queue pair is built, or was refused */
    void (*stopped)(struct uct_ha_lane *lane);
    void (*answered)(struct uct_ha_lane *lane);
    void (*built)(struct uct_ha_lane *lane);
};

/* A place gets its buffer: all of it, on this slot's rail. */
static inline void uct_ha_place_fill(struct uct_ha_place *place, struct uct_ha_desc *desc,
                                     const struct uct_ha_lanes *lanes, int slot)
{
    place->desc         = desc;
    place->sge.addr     = (uintptr_t)uct_ha_desc_received(&lanes->pool, desc);
    place->sge.length   = (uint32_t)lanes->pool.seg_size;
    place->sge.lkey     = desc->mem->lkey[lanes->rail_no[slot]];
    place->recv.sge     = &place->sge;
    place->recv.num_sge = 1;
}

#endif
