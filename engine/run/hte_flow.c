/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_flow.h"

#include <stdlib.h>

#include "base/hte_error.h"
#include "job/hte_batch.h"

int hte_flows_open(struct hte_flows *flows, const struct hte_settings *settings, unsigned index)
{
    uint64_t i, count = 2 * HTE_WINDOWS * settings->window;

    flows->window     = settings->window;
    flows->slice_size = settings->slice_size;
    flows->index      = index;
    hte_ring_init(&flows->free);
    hte_ring_init(&flows->active);
    hte_ring_init(&flows->stalled);
    hte_flow_init(&flows->local);
    flows->slices = calloc(count, sizeof(*flows->slices));
    if (flows->slices == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %llu slices", (unsigned long long)count);
    }
    for (i = 0; i < count; ++i) {
        hte_ring_append(&flows->free, &flows->slices[i].op.link);
    }
    return HTE_OK;
}

void hte_flows_close(struct hte_flows *flows)
{
    free(flows->slices);
}

/* ---- shares ---- */

/* There is one where hte_flow_spare() says so: the pool has as many as all may share, and else it is the flow's
 * first. */
struct hte_slice *hte_flow_take_slice(struct hte_flows *flows, struct hte_flow *flow)
{
    struct hte_slice *slice = &flow->reserve;

    if (!hte_ring_is_empty(&flows->free)) {
        slice = HTE_OBJECT_OF(flows->free.next, struct hte_slice, op.link);
        hte_ring_remove(&slice->op.link);
    }
    slice->flow = flow;
    return slice;
}

void hte_flow_put_slice(struct hte_flows *flows, struct hte_slice *slice)
{
    hte_flow_uncount(flows, slice);
    flows->is_sated = false;
    if (slice != &slice->flow->reserve) {
        hte_ring_append(&flows->free, &slice->op.link);
    }
}

/* ---- pieces ---- */

void hte_flows_add(struct hte_flows *flows, struct hte_piece *piece)
{
    struct hte_flow *flow = hte_flow_of(flows, piece->task->segment);

    hte_ring_append(&flow->pieces, &piece->link);
    if (hte_ring_is_empty(&flow->link)) {
        hte_ring_append(&flows->active, &flow->link);
    }
}

void hte_flows_remove(struct hte_flows *flows, struct hte_piece *piece)
{
    struct hte_flow *flow = hte_flow_of(flows, piece->task->segment);

    hte_ring_remove(&piece->link);
    if (hte_ring_is_empty(&flow->pieces)) {
        hte_ring_remove(&flow->link);
        flow->is_stalled = false;
    }
}

void hte_flows_resume(struct hte_flows *flows)
{
    struct hte_link_ring *link, *next;
    struct hte_flow      *flow;

    for (link = flows->stalled.next; link != &flows->stalled; link = next) {
        next = link->next;
        flow = HTE_OBJECT_OF(link, struct hte_flow, link);
        if (hte_flow_room(flows, flow) > 0) {
            hte_ring_remove(link);
            hte_ring_append(&flows->active, link);
            flow->is_stalled = false;
        }
    }
}

struct hte_flow *hte_flows_first(struct hte_flows *flows)
{
    struct hte_flow *flow;

    while (!hte_ring_is_empty(&flows->active)) {
        flow = HTE_OBJECT_OF(flows->active.next, struct hte_flow, link);
        if (hte_flow_room(flows, flow) > 0) {
            return flow;
        }
        hte_ring_remove(&flow->link);
        hte_ring_append(&flows->stalled, &flow->link);
        flow->is_stalled = true;
    }
    return NULL;
}
