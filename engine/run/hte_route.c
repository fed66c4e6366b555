/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_route.h"

#include "base/hte_now.h"
#include "job/hte_batch.h"
#include "wire/hte_conn.h"

void hte_router_init(struct hte_router *router, enum hte_policy policy, unsigned index)
{
    router->policy = policy;
    router->turn   = 0;
    router->random = (uint32_t)hte_now() * 2654435761u + index + 1;
    router->random += router->random == 0;
}

static uint32_t next_random(struct hte_router *router)
{
    router->random ^= router->random << 13; /* xorshift32 */
    router->random ^= router->random >> 17;
    router->random ^= router->random << 5;
    return router->random;
}

unsigned hte_route_pick(struct hte_router *router, struct hte_lane *lane, const struct hte_slice *slice)
{
    uint64_t        predicted[HTE_RAILS_MAX], inflight;
    struct hte_pick pick;
    unsigned        i;
    int             rail;

    for (i = 0; i < lane->n_rails; ++i) {
        inflight     = atomic_load_explicit(&lane->rails->rail[i].inflight, memory_order_relaxed); /* all threads' */
        predicted[i] = hte_rate_predict(&lane->rail[i].rate, inflight, slice->op.length);
    }
    pick = (struct hte_pick){
        .preferred = slice->preferred,
        .available = slice->available,
        .paused    = hte_rails_paused(lane->rails, lane->now) |
                  hte_conns_unusable(lane, slice->task->segment, slice->task->view, slice->op.is_gpu),
        .bad_rail  = slice->op.state.bad_rail,
        .turn      = router->turn++,
        .random    = next_random(router),
        .predicted = predicted,
    };
    rail = hte_pick_rail(router->policy, &pick);
    return rail < 0 ? 0 : (unsigned)rail;
}

unsigned hte_route_remote(const struct hte_lane *lane, const struct hte_slice *slice, unsigned rail)
{
    return (rail + slice->op.state.fails / lane->n_rails) % slice->task->view->rails;
}
