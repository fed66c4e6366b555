/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/repost.h"

#include "base/stats.h"

/* Of the device, not of any chain. */
static struct ha_recv out = {.num_sge = 0};

enum { QUIET, MARKED, PAGED };

static void mark_locked(struct uct_ha_shared *shared)
{
    uct_ha_shared_flush(shared);
    if (shared->chain.first != NULL) {
        return; /* the queue takes none: nothing is lacking */
    }
    for (uint32_t i = 0; i < shared->count; i++) {
        if (shared->places[i].recv.next != &uct_ha_place_is_held) {
            shared->places[i].recv.next = &out;
        }
    }
    shared->marked  = shared->posted;
    shared->turn    = shared->count + UCT_HA_SHARED_CHAIN;
    shared->marking = MARKED;
}

void uct_ha_shared_mark(struct uct_ha_shared *shared)
{
    if (shared->marking == QUIET && shared->srq != NULL) {
        pthread_mutex_lock(&shared->lanes->wake.lock);
        mark_locked(shared);
        pthread_mutex_unlock(&shared->lanes->wake.lock);
    }
}

/* Whatever was out when it was marked has been taken since. So a lane that receives anything from here on does not
 * have one of those. Returns whether there is one that has not received since the last call. One that is still being
 * built has nothing, and no count of its own. */
static int page_lanes_locked(struct uct_ha_shared *shared)
{
    struct uct_ha_lanes *lanes = shared->lanes;
    int                  idle  = 0;

    for (uint32_t i = 0; i < lanes->table_len; i++) {
        struct uct_ha_lane *lane = lanes->table[i];

        if (lane != NULL && lane->shared == shared && lane->entered && lane->road->lane[lane->slot] == lane) {
            idle |= lane->connected && uct_ha_lane_received(lane) == lane->paged;
            lane->paged = uct_ha_lane_received(lane);
        }
    }
    return idle;
}

/* What is still out is nobody's: it is used again. Where a lane may be in the middle of a message with it, it is that
 * lane's, and another one takes its place. */
static unsigned replace_lost_locked(struct uct_ha_shared *shared, int idle)
{
    unsigned lost = 0, found;

    for (uint32_t i = 0; i < shared->count; i++) {
        struct ha_recv *recv = &shared->places[i].recv;

        if (recv->next == &out) {
            recv->next = NULL;
            lost++;
            if (!idle) {
                uct_ha_chain_add(&shared->chain, recv);
            }
        }
    }
    found        = lost > shared->lost ? lost - shared->lost : 0; /* those that are replaced are met each time */
    shared->lost = idle ? lost : 0;
    return found;
}

static void look_for_lost(struct uct_ha_shared *shared)
{
    struct uct_ha_lanes *lanes = shared->lanes;
    struct uct_ha_desc  *none  = NULL;
    unsigned             lost;
    int                  idle;

    pthread_mutex_lock(&lanes->wake.lock);
    idle = page_lanes_locked(shared);
    if (lanes->room[shared->slot].parked != 0) {
        shared->marking = QUIET; /* a lane may still write; when it has been destroyed, all begins anew */
    } else if (shared->marking == MARKED) {
        shared->marking = PAGED;
    } else {
        shared->marking = QUIET;
        lost            = replace_lost_locked(shared, idle);
        UCT_HA_STATS_ADD(rx_lost, lost);
        if (lost > 0) {
            (void)uct_ha_shared_fill_locked(lanes, (int)shared->slot, &none);
        }
    }
    pthread_mutex_unlock(&lanes->wake.lock);
}

void uct_ha_shared_repost(struct uct_ha_shared *shared)
{
    if (shared->srq == NULL) {
        return;
    }
    uct_ha_shared_flush(shared);
    if (ucs_unlikely(shared->marking != QUIET) &&
        shared->posted - shared->marked >= (shared->marking == MARKED ? 1 : 2) * shared->turn) {
        look_for_lost(shared);
    }
}

void uct_ha_shared_drop(struct uct_ha_place *place)
{
    struct uct_ha_shared *shared = place->shared;

    uct_ha_chain_add(&shared->chain, &place->recv);
    uct_ha_shared_consumed(shared);
}
