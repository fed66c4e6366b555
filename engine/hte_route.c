/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_route.h"

#include "hte_conn.h"
#include "hte_engine.h"

static uint32_t next_random(struct hte_worker *worker)
{
    worker->random ^= worker->random << 13; /* xorshift32 */
    worker->random ^= worker->random >> 17;
    worker->random ^= worker->random << 5;
    return worker->random;
}

unsigned hte_route_rail(struct hte_worker *worker, const struct hte_slice *slice)
{
    struct hte_engine *engine = worker->engine;
    uint64_t predicted[HTE_RAILS_MAX], inflight;
    struct hte_pick pick;
    unsigned i;
    int rail;

    if (worker->lane.n_rails == 1) {
        return 0;
    }
    for (i = 0; i < worker->lane.n_rails; ++i) {
        inflight     = atomic_load_explicit(&engine->rails.rail[i].inflight, memory_order_relaxed); /* all threads' */
        predicted[i] = hte_rate_predict(&worker->lane.rail[i].rate, inflight, slice->op.length);
    }
    pick = (struct hte_pick){
        .preferred = slice->preferred,
        .available = slice->available,
        .paused    = hte_rails_paused(&engine->rails, worker->lane.now) |
                  hte_conns_unusable(&worker->lane, slice->piece->task->segment, slice->piece->task->view),
        .bad_rail  = slice->op.state.bad_rail,
        .turn      = worker->turn++,
        .random    = next_random(worker),
        .predicted = predicted,
    };
    rail = hte_pick_rail((enum hte_policy)engine->settings.policy, &pick);
    return rail < 0 ? 0 : (unsigned)rail;
}

unsigned hte_route_remote(const struct hte_worker *worker, const struct hte_slice *slice, unsigned rail)
{
    return (rail + slice->op.state.fails / worker->lane.n_rails) % slice->piece->task->view->rails;
}
