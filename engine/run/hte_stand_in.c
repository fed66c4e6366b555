/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_stand_in.h"

#include "base/hte_now.h"
#include "hte_packs.h"
#include "hte_pieces.h"
#include "wire/hte_near_ops.h"

/* With the helm. */
static bool has_nothing(const struct hte_worker *worker)
{
    const struct hte_poster *poster = &worker->poster;

    return atomic_load(&worker->rest) == HTE_IDLE && hte_worker_is_bare(worker) &&
           hte_ring_is_empty(&poster->flows.active) && hte_ring_is_empty(&poster->flows.stalled) &&
           hte_ring_is_empty(&poster->lane.broken) && !atomic_load(&worker->has_orders) &&
           !atomic_load(&worker->all->run->is_stopping);
}

/* Likewise. What does not go well is left to the thread. */
static bool move_here(struct hte_worker *worker, struct hte_piece *pack)
{
    struct hte_poster *poster = &worker->poster;

    poster->lane.now = hte_now();
    if (!has_nothing(worker) || !hte_pieces_can_move(poster, pack)) {
        return false;
    }
    hte_ring_remove(&pack->link);
    hte_flows_add(&poster->flows, pack);
    hte_pieces_post_pack(poster, pack);
    hte_near_run_all(&poster->lane);
    hte_packs_tell(poster);
    if (!hte_worker_is_bare(worker) || !hte_ring_is_empty(&poster->flows.active) ||
        !hte_ring_is_empty(&poster->lane.broken)) {
        hte_worker_wake(worker);
    }
    return true;
}

bool hte_workers_move(struct hte_workers *workers, struct hte_piece *pack)
{
    struct hte_worker *worker;
    bool               is_moved = false;

    for (worker = workers->list; worker < workers->list + workers->count && !is_moved; ++worker) {
        if (atomic_load(&worker->rest) == HTE_IDLE && pthread_mutex_trylock(&worker->helm) == 0) {
            is_moved = move_here(worker, pack);
            pthread_mutex_unlock(&worker->helm);
        }
    }
    return is_moved;
}
