/* SPDX-License-Identifier: BSD-3-Clause */
/* From pieces to posted slices, and back. */
#include <string.h>

#include "core/hte_cut.h"
#include "hte_conn.h"
#include "hte_engine.h"
#include "hte_error.h"
#include "hte_route.h"

#define RETRY_SOON_NS 1000000ull /* a connection is being torn down */
#define REFRESH_NS    1000000000ull /* the last try waits so long for the target's descriptor */

/* ---- the end of a slice or piece ---- */

static void piece_over(struct hte_worker *worker, struct hte_piece *piece)
{
    hte_flow_remove(worker, piece);
    hte_task_piece_final(piece->task, &piece->state);
}

static int code_of(int error)
{
    switch (error) {
    case HTE_ERR_CANCELED:
        return HTE_CANCELED;
    case HTE_ERR_TIMEOUT:
        return HTE_TIMEOUT;
    case HTE_ERR_RANGE:
    case HTE_ERR_PERMISSION:
        return HTE_INVALID;
    default:
        return HTE_FAILED;
    }
}

static struct hte_flow *flow_of(struct hte_worker *worker, const struct hte_slice *slice)
{
    return hte_flow_of(worker, slice->piece->task->segment);
}

static void with_ucx(struct hte_worker *worker, const struct hte_slice *slice)
{
    worker->with_ucx += slice->op.units;
    flow_of(worker, slice)->with_ucx += slice->op.units;
}

static void without_ucx(struct hte_worker *worker, const struct hte_slice *slice)
{
    worker->with_ucx -= slice->op.units;
    flow_of(worker, slice)->with_ucx -= slice->op.units;
    worker->is_sated = false;
}

bool hte_slice_has_window(struct hte_worker *worker, const struct hte_slice *slice)
{
    return hte_flow_window(worker, flow_of(worker, slice)) > 0;
}

static void completed(struct hte_worker *worker, struct hte_slice *slice)
{
    struct hte_piece *piece = slice->piece;
    struct hte_task *task   = piece->task;

    atomic_fetch_add_explicit(&task->transferred, slice->op.length, memory_order_relaxed);
    atomic_fetch_add_explicit(&task->batch->transferred, slice->op.length, memory_order_relaxed);
    hte_flow_put_slice(worker, flow_of(worker, slice), slice);
    if (hte_piece_slice_done(&piece->state, slice->op.length)) {
        piece_over(worker, piece);
    }
}

static void keep_ready(struct hte_worker *worker, struct hte_slice *slice)
{
    hte_ring_append(&worker->ready, &slice->op.link);
    ++worker->n_ready;
}

static void retry(struct hte_worker *worker, struct hte_slice *slice)
{
    slice->ready_at  = worker->lane.now;
    slice->failed_at = worker->lane.now;
    keep_ready(worker, slice);
    atomic_fetch_add_explicit(&worker->slices_retried, slice->op.units, memory_order_relaxed);
}

static void lost(struct hte_worker *worker, struct hte_slice *slice, int error)
{
    struct hte_piece *piece = slice->piece;

    hte_flow_put_slice(worker, flow_of(worker, slice), slice);
    if (hte_piece_slice_lost(&piece->state, code_of(error), error)) {
        piece_over(worker, piece);
    } else if (!hte_piece_can_cut(&piece->state)) {
        hte_flow_remove(worker, piece); /* its last slice ends it */
    }
}

/* ---- what the lane tells ---- */

static struct hte_worker *worker_of(struct hte_lane *lane)
{
    return HTE_OBJECT_OF(lane, struct hte_worker, lane);
}

static void on_let_go(struct hte_lane *lane, struct hte_op *op)
{
    without_ucx(worker_of(lane), HTE_OBJECT_OF(op, struct hte_slice, op));
}

static void on_over(struct hte_lane *lane, struct hte_op *op, enum hte_slice_action action, int error)
{
    struct hte_worker *worker = worker_of(lane);
    struct hte_slice *slice   = HTE_OBJECT_OF(op, struct hte_slice, op);

    switch (action) {
    case HTE_SLICE_COMPLETE:
        completed(worker, slice);
        break;
    case HTE_SLICE_RETRY:
        hte_refresh_order(&worker->engine->refresh, slice->piece->task->segment);
        retry(worker, slice);
        break;
    default:
        lost(worker, slice, error);
        break;
    }
}

static enum hte_outlook outlook(struct hte_lane *lane, const struct hte_segment *segment)
{
    struct hte_worker *worker   = worker_of(lane);
    const struct hte_flow *flow = hte_flow_of(worker, segment);

    if (hte_flow_spare(worker, flow) == 0) {
        return HTE_OUTLOOK_STUCK;
    }
    return flow->is_stalled || !hte_ring_is_empty(&worker->active) ? HTE_OUTLOOK_MORE : HTE_OUTLOOK_DRY;
}

const struct hte_lane_hooks hte_post_hooks = {.let_go = on_let_go, .over = on_over, .outlook = outlook};

/* A slice that is with nobody ends. */
static void drop(struct hte_worker *worker, struct hte_slice *slice, int error)
{
    hte_slice_on(&slice->op.state, HTE_SLICE_DROP, -1);
    lost(worker, slice, error);
}

/* ---- posting ---- */

static void wait_for(struct hte_worker *worker, struct hte_slice *slice, uint64_t when)
{
    slice->ready_at = when > worker->lane.now ? when : worker->lane.now + RETRY_SOON_NS;
    keep_ready(worker, slice);
}

/* Nobody was there. What is tried for the first time may find another process: it waits for a fresh look. */
static void look_again(struct hte_worker *worker, struct hte_slice *slice)
{
    struct hte_segment *segment = slice->piece->task->segment;

    if (!slice->has_looked && slice->op.state.fails == 0) {
        slice->has_looked = true;
        hte_refresh_order(&worker->engine->refresh, segment);
    } else if (!atomic_load(&segment->is_refreshing)) {
        drop(worker, slice, HTE_ERR_DEAD_PEER);
        return;
    }
    wait_for(worker, slice, worker->lane.now + RETRY_SOON_NS);
}

static void post(struct hte_worker *worker, struct hte_slice *slice)
{
    struct hte_task *task = slice->piece->task;
    unsigned rail         = hte_route_rail(worker, slice);
    struct hte_conn *conn = hte_conn_get(&worker->lane, task->segment, task->view, rail,
                                         hte_route_remote(worker, slice, rail));

    if (conn == NULL) {
        drop(worker, slice, HTE_ERR_MEMORY);
    } else if (hte_conn_is_deserted(conn)) {
        look_again(worker, slice);
    } else if (hte_conn_is_usable(conn, task->view)) {
        with_ucx(worker, slice);
        hte_op_post(&slice->op, conn, task->view);
    } else if (hte_conn_is_hopeless(conn)) {
        drop(worker, slice, conn->error);
    } else {
        wait_for(worker, slice, conn->retry_at);
    }
}

static bool is_unwanted(const struct hte_worker *worker, const struct hte_piece *piece)
{
    return piece->state.step == HTE_PIECE_STOPPED ||
           atomic_load_explicit(&piece->task->is_canceled, memory_order_relaxed) ||
           atomic_load_explicit(&worker->engine->is_stopping, memory_order_relaxed);
}

/* Whether to try again, by what is known of the target now; else *error. *is_early: a descriptor is on its way, and the last try may
 * wait for what it says. */
static bool is_worth_it(struct hte_worker *worker, struct hte_slice *slice, bool *is_early, int *error)
{
    struct hte_task *task = slice->piece->task;
    struct hte_view *view = hte_segment_view(task->segment);

    *error = HTE_OK;
    if (view->incarnation != task->view->incarnation) {
        *error = HTE_ERR_DEAD_PEER; /* another process has its name */
    } else if (view->serial != task->view->serial) {
        *error = hte_view_recheck(task->view, view, slice->op.remote, slice->op.length, task->is_write);
    }
    hte_view_put(view);
    *is_early = slice->op.state.fails > 0 && slice->op.state.fails == slice->op.state.max_fails &&
                atomic_load(&task->segment->is_refreshing) && worker->lane.now - slice->failed_at < REFRESH_NS;
    return *error == HTE_OK;
}

static bool post_again(struct hte_worker *worker, struct hte_slice *slice)
{
    bool is_early;
    int error;

    if (!is_worth_it(worker, slice, &is_early, &error)) {
        drop(worker, slice, error);
    } else if (is_early) {
        wait_for(worker, slice, worker->lane.now + RETRY_SOON_NS);
        return false;
    } else {
        post(worker, slice);
    }
    return true;
}

unsigned hte_post_ready(struct hte_worker *worker)
{
    unsigned i, count = worker->n_ready, posted = 0;
    struct hte_slice *slice;

    for (i = 0; i < count; ++i) {
        slice = HTE_OBJECT_OF(worker->ready.next, struct hte_slice, op.link);
        hte_ring_remove(&slice->op.link);
        --worker->n_ready;
        if (is_unwanted(worker, slice->piece)) {
            drop(worker, slice, HTE_ERR_CANCELED);
        } else if (worker->lane.now < slice->ready_at || !hte_slice_has_window(worker, slice)) {
            keep_ready(worker, slice);
        } else {
            posted += post_again(worker, slice);
        }
    }
    return posted;
}

/* ---- cutting ---- */

/* Where the next slice begins: the local region with its rails, and the remote buffer. The task has both pinned. */
static void find_borders(struct hte_engine *engine, struct hte_piece *piece)
{
    struct hte_task *task = piece->task;
    uint64_t local        = (uint64_t)task->local + piece->offset;
    struct hte_region *region;

    if (local >= piece->local_end) {
        pthread_rwlock_rdlock(&engine->regions.lock);
        region           = hte_regions_find(&engine->regions, local);
        piece->local_end = region->addr + region->length;
        piece->preferred = region->preferred;
        piece->available = region->available;
        pthread_rwlock_unlock(&engine->regions.lock);
    }
}

static uint64_t remote_left(struct hte_piece *piece, uint64_t remote)
{
    const struct hte_view *view          = piece->task->view;
    const struct hte_desc_buffer *buffer = &view->descriptor->buffers[piece->buffer];

    if (remote < buffer->addr || remote - buffer->addr >= buffer->length) {
        piece->buffer = (uint32_t)hte_view_find(view, remote);
        buffer        = &view->descriptor->buffers[piece->buffer];
    }
    return buffer->length - (remote - buffer->addr);
}

static void measure(struct hte_worker *worker, struct hte_flow *flow, struct hte_piece *piece, struct hte_slice *slice)
{
    const struct hte_settings *settings = &worker->engine->settings;
    uint64_t size                       = settings->slice_size;

    if (worker->lane.n_rails == 1) {
        size = hte_cut_run(size, settings->run_size, hte_flow_room(worker, flow));
    }
    slice->op.length = hte_cut(piece->state.left, size, settings->fragment_size,
                            piece->local_end - (uint64_t)slice->op.local, remote_left(piece, slice->op.remote));
    slice->op.units  = (uint32_t)hte_cut_units(slice->op.length, size, settings->slice_size, settings->fragment_size);
    worker->out += slice->op.units;
    flow->out += slice->op.units;
}

static void cut(struct hte_worker *worker, struct hte_piece *piece)
{
    const struct hte_settings *settings = &worker->engine->settings;
    struct hte_task *task               = piece->task;
    struct hte_flow *flow               = hte_flow_of(worker, task->segment);
    struct hte_slice *slice             = hte_flow_take_slice(worker, flow);

    find_borders(worker->engine, piece);
    slice->piece      = piece;
    slice->op.local      = task->local + piece->offset;
    slice->op.remote     = task->remote + piece->offset;
    measure(worker, flow, piece, slice);
    slice->op.buffer     = piece->buffer;
    slice->preferred  = piece->preferred;
    slice->available  = piece->available;
    slice->has_looked = slice->op.is_expired = false;
    slice->op.conn    = NULL;
    slice->op.keys    = NULL;
    hte_slice_init(&slice->op.state, task->is_write, (unsigned)settings->retry_count);
    hte_piece_cut(&piece->state, slice->op.length);
    piece->offset += slice->op.length;
    if (!hte_piece_can_cut(&piece->state)) {
        hte_flow_remove(worker, piece); /* its last slice ends it */
    }
    post(worker, slice);
}

/* Copied from the start, slices would overwrite what is still to be read. */
static bool is_overlap_upwards(const char *from, const char *to, uint64_t length)
{
    return (uintptr_t)to - (uintptr_t)from < length;
}

/* HTE_SEGMENT_LOCAL: nothing to ask UCX for. Always one piece: see hte_divide_count(). */
static void copy(struct hte_worker *worker, struct hte_piece *piece)
{
    const struct hte_settings *settings = &worker->engine->settings;
    struct hte_task *task               = piece->task;
    char *remote                        = (char *)task->remote;
    char *to                            = task->is_write ? remote : task->local;
    const char *from                    = task->is_write ? task->local : remote;
    uint64_t length = hte_cut(piece->state.left, settings->slice_size, settings->fragment_size, UINT64_MAX, UINT64_MAX);
    uint64_t offset = is_overlap_upwards(from, to, task->length) ? piece->state.left - length : piece->offset;

    memmove(to + offset, from + offset, length);
    hte_piece_cut(&piece->state, length);
    piece->offset += length;
    atomic_fetch_add_explicit(&task->transferred, length, memory_order_relaxed);
    atomic_fetch_add_explicit(&task->batch->transferred, length, memory_order_relaxed);
    if (hte_piece_slice_done(&piece->state, length)) {
        piece_over(worker, piece);
    }
}

static void stop(struct hte_worker *worker, struct hte_piece *piece)
{
    hte_flow_remove(worker, piece);
    if (hte_piece_stop(&piece->state, HTE_CANCELED, HTE_ERR_CANCELED)) {
        piece_over(worker, piece);
    }
}

unsigned hte_post_pieces(struct hte_worker *worker)
{
    struct hte_piece *piece;
    unsigned count = 0;

    hte_flows_resume(worker);
    while (count < worker->engine->settings.window && (piece = hte_flows_next(worker)) != NULL) {
        if (is_unwanted(worker, piece)) {
            stop(worker, piece);
            continue;
        }
        hte_task_begin(piece->task);
        if (piece->task->segment == NULL) {
            copy(worker, piece);
        } else {
            cut(worker, piece);
        }
        ++count;
    }
    return count;
}

static void stop_unwanted(struct hte_worker *worker, struct hte_link_ring *pieces)
{
    struct hte_link_ring *link, *next;
    struct hte_piece *piece;

    for (link = pieces->next; link != pieces; link = next) {
        next  = link->next;
        piece = HTE_OBJECT_OF(link, struct hte_piece, link);
        if (is_unwanted(worker, piece)) {
            stop(worker, piece);
        }
    }
}

static void stop_unwanted_of(struct hte_worker *worker, struct hte_link_ring *flows)
{
    struct hte_link_ring *link, *next;

    for (link = flows->next; link != flows; link = next) {
        next = link->next;
        stop_unwanted(worker, &HTE_OBJECT_OF(link, struct hte_flow, link)->pieces);
    }
}

void hte_post_cancel(struct hte_worker *worker)
{
    struct hte_link_ring canceled;

    hte_ring_init(&canceled);
    hte_queue_take_canceled(&worker->engine->queue, &canceled);
    stop_unwanted(worker, &canceled);
    stop_unwanted_of(worker, &worker->active);
    stop_unwanted_of(worker, &worker->stalled);
    hte_post_ready(worker);
}
