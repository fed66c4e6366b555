/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_feed.h"

#define TAKE_MAX 32

/* What the queue had for flows without room is not looked at again before there is some, or something new. */
static void take(struct hte_flows *flows, struct hte_queue *queue)
{
    struct hte_link_ring taken, *link;

    if (atomic_load(&queue->count) == 0) {
        flows->is_sated = false;
        return;
    }
    if (flows->is_sated && atomic_load(&queue->pushes) == flows->seen) {
        return;
    }
    hte_ring_init(&taken);
    hte_queue_take(queue, flows, TAKE_MAX, &taken);
    flows->is_sated = hte_ring_is_empty(&taken);
    while (!hte_ring_is_empty(&taken)) {
        link = taken.next;
        hte_ring_remove(link);
        hte_flows_add(flows, HTE_OBJECT_OF(link, struct hte_piece, link));
    }
}

struct hte_piece *hte_feed_next(struct hte_flows *flows, struct hte_queue *queue)
{
    struct hte_flow *flow;

    for (;;) {
        flow = hte_flows_first(flows);
        if (flow != NULL) {
            return HTE_OBJECT_OF(flow->pieces.next, struct hte_piece, link);
        }
        take(flows, queue);
        if (hte_ring_is_empty(&flows->active)) {
            return NULL;
        }
    }
}

bool hte_feed_has_seen_all(const struct hte_flows *flows, const struct hte_queue *queue)
{
    return atomic_load(&queue->count) == 0 || (flows->is_sated && atomic_load(&queue->pushes) == flows->seen);
}
