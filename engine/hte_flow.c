/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_flow.h"

#include "core/hte_share.h"
#include "hte_engine.h"
#include "hte_worker.h"

#define TAKE_MAX 32

struct hte_flow *hte_flow_of(struct hte_worker *worker, const struct hte_segment *segment)
{
    return segment == NULL ? &worker->local : &hte_target_of(segment)->flows[worker->index];
}

/* ---- shares ---- */

uint64_t hte_flow_window(const struct hte_worker *worker, const struct hte_flow *flow)
{
    return hte_share(worker->engine->settings.window, worker->with_ucx, flow->with_ucx);
}

uint64_t hte_flow_spare(const struct hte_worker *worker, const struct hte_flow *flow)
{
    return hte_share(HTE_WINDOWS * worker->engine->settings.window, worker->out, flow->out);
}

uint64_t hte_flow_room(const struct hte_worker *worker, const struct hte_flow *flow)
{
    uint64_t window = hte_flow_window(worker, flow), spare = hte_flow_spare(worker, flow);

    return window < spare ? window : spare;
}

/* There is one where hte_flow_spare() says so: the pool has as many as all may share, and else it is the flow's first. */
struct hte_slice *hte_flow_take_slice(struct hte_worker *worker, struct hte_flow *flow)
{
    struct hte_slice *slice = &flow->reserve;

    if (!hte_ring_is_empty(&worker->free)) {
        slice = HTE_OBJECT_OF(worker->free.next, struct hte_slice, op.link);
        hte_ring_remove(&slice->op.link);
    }
    return slice;
}

void hte_flow_put_slice(struct hte_worker *worker, struct hte_flow *flow, struct hte_slice *slice)
{
    worker->out -= slice->op.units;
    flow->out -= slice->op.units;
    worker->is_sated = false;
    if (slice != &flow->reserve) {
        hte_ring_append(&worker->free, &slice->op.link);
    }
}

/* ---- pieces ---- */

static void add_piece(struct hte_worker *worker, struct hte_piece *piece)
{
    struct hte_flow *flow = hte_flow_of(worker, piece->task->segment);

    hte_ring_append(&flow->pieces, &piece->link);
    if (hte_ring_is_empty(&flow->link)) {
        hte_ring_append(&worker->active, &flow->link);
    }
}

/* What the queue had for flows without room is not looked at again before there is some, or something new. */
static void take(struct hte_worker *worker)
{
    struct hte_queue *queue = &worker->engine->queue;
    struct hte_link_ring taken, *link;

    if (atomic_load(&queue->count) == 0) {
        worker->is_sated = false;
        return;
    }
    if (worker->is_sated && atomic_load(&queue->pushes) == worker->seen) {
        return;
    }
    hte_ring_init(&taken);
    hte_queue_take(queue, worker, TAKE_MAX, &taken);
    worker->is_sated = hte_ring_is_empty(&taken);
    while (!hte_ring_is_empty(&taken)) {
        link = taken.next;
        hte_ring_remove(link);
        add_piece(worker, HTE_OBJECT_OF(link, struct hte_piece, link));
    }
}

struct hte_piece *hte_flows_next(struct hte_worker *worker)
{
    struct hte_flow *flow;

    for (;;) {
        if (hte_ring_is_empty(&worker->active)) {
            take(worker);
        }
        if (hte_ring_is_empty(&worker->active)) {
            return NULL;
        }
        flow = HTE_OBJECT_OF(worker->active.next, struct hte_flow, link);
        if (hte_flow_room(worker, flow) > 0) {
            return HTE_OBJECT_OF(flow->pieces.next, struct hte_piece, link);
        }
        hte_ring_remove(&flow->link);
        hte_ring_append(&worker->stalled, &flow->link);
        flow->is_stalled = true;
    }
}

void hte_flows_resume(struct hte_worker *worker)
{
    struct hte_link_ring *link, *next;
    struct hte_flow *flow;

    for (link = worker->stalled.next; link != &worker->stalled; link = next) {
        next = link->next;
        flow = HTE_OBJECT_OF(link, struct hte_flow, link);
        if (hte_flow_room(worker, flow) > 0) {
            hte_ring_remove(link);
            hte_ring_append(&worker->active, link);
            flow->is_stalled = false;
        }
    }
}

void hte_flow_remove(struct hte_worker *worker, struct hte_piece *piece)
{
    struct hte_flow *flow = hte_flow_of(worker, piece->task->segment);

    hte_ring_remove(&piece->link);
    if (hte_ring_is_empty(&flow->pieces)) {
        hte_ring_remove(&flow->link);
        flow->is_stalled = false;
    }
}
