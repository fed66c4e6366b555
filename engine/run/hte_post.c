/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_post.h"

#include "base/hte_now.h"
#include "hte_packs.h"
#include "wire/hte_conn.h"
#include "wire/hte_dispatch.h"
#include "wire/hte_inbox.h"
#include "wire/hte_op.h"

#define RETRY_SOON_NS 1000000ull    /* a connection is being torn down */
#define REFRESH_NS    1000000000ull /* the last try waits so long for the target's descriptor */

/* ---- the end of a slice or piece ---- */

void hte_post_piece_over(struct hte_poster *poster, struct hte_piece *piece)
{
    hte_flows_remove(&poster->flows, piece);
    hte_task_piece_final(piece->task, &piece->state);
}

static bool has_window(struct hte_poster *poster, const struct hte_slice *slice)
{
    return hte_flow_window(&poster->flows, slice->flow) > 0;
}

static void completed(struct hte_poster *poster, struct hte_slice *slice)
{
    struct hte_piece *piece = slice->piece;
    struct hte_task  *task  = slice->task;

    if (hte_pack_has(slice)) {
        hte_pack_completed(poster, slice);
        return;
    }
    atomic_fetch_add_explicit(&task->transferred, slice->op.length, memory_order_relaxed);
    atomic_fetch_add_explicit(&task->batch->transferred, slice->op.length, memory_order_relaxed);
    hte_flow_put_slice(&poster->flows, slice);
    if (hte_piece_slice_done(&piece->state, slice->op.length)) {
        hte_post_piece_over(poster, piece);
    }
}

static void retry(struct hte_poster *poster, struct hte_slice *slice)
{
    atomic_fetch_add_explicit(&poster->slices_retried, slice->op.units, memory_order_relaxed);
    if (hte_pack_has(slice) && hte_pack_retry(poster, slice)) {
        return;
    }
    slice->ready_at    = poster->lane.now;
    slice->failed_at   = poster->lane.now;
    slice->waits_since = poster->lane.now;
    hte_poster_keep_ready(poster, slice);
}

static void lost(struct hte_poster *poster, struct hte_slice *slice, int error)
{
    struct hte_piece *piece = slice->piece;

    if (hte_pack_has(slice)) {
        hte_pack_lost(poster, slice, error);
        return;
    }
    hte_flow_put_slice(&poster->flows, slice);
    if (hte_piece_slice_lost(&piece->state, hte_code_of(error), error)) {
        hte_post_piece_over(poster, piece);
    } else if (!hte_piece_can_cut(&piece->state)) {
        hte_flows_remove(&poster->flows, piece); /* its last slice ends it */
    }
}

/* ---- what the lane tells ---- */

static struct hte_poster *poster_of(struct hte_lane *lane)
{
    return HTE_OBJECT_OF(lane, struct hte_poster, lane);
}

static void on_let_go(struct hte_lane *lane, struct hte_op *op)
{
    hte_flow_let_go(&poster_of(lane)->flows, HTE_OBJECT_OF(op, struct hte_slice, op));
}

static void on_over(struct hte_lane *lane, struct hte_op *op, enum hte_slice_action action, int error)
{
    struct hte_poster *poster = poster_of(lane);
    struct hte_slice  *slice  = HTE_OBJECT_OF(op, struct hte_slice, op);

    switch (action) {
    case HTE_SLICE_COMPLETE:
        completed(poster, slice);
        break;
    case HTE_SLICE_RETRY:
        hte_refresh_order(poster->run->refresh, slice->task->segment);
        retry(poster, slice);
        break;
    default:
        if (error == HTE_ERR_RANGE || error == HTE_ERR_PERMISSION) { /* of what is known of the target's memory */
            hte_refresh_order(poster->run->refresh, slice->task->segment);
        }
        lost(poster, slice, error);
        break;
    }
}

static enum hte_outlook outlook(struct hte_lane *lane, const struct hte_segment *segment)
{
    struct hte_flows      *flows = &poster_of(lane)->flows;
    const struct hte_flow *flow  = hte_flow_of(flows, segment);

    if (hte_flow_spare(flows, flow) == 0) {
        return HTE_OUTLOOK_STUCK;
    }
    return flow->is_stalled || !hte_ring_is_empty(&flows->active) ? HTE_OUTLOOK_MORE : HTE_OUTLOOK_DRY;
}

static void on_doubt(struct hte_lane *lane, struct hte_segment *segment)
{
    hte_refresh_order(poster_of(lane)->run->refresh, segment);
}

static void on_look(struct hte_lane *lane, struct hte_segment *segment)
{
    hte_refresh_look(poster_of(lane)->run->refresh, segment);
}

/* At the engine's end what is posted has its own time. */
static bool is_canceled(struct hte_lane *lane, const struct hte_op *op)
{
    const struct hte_slice *slice = HTE_OBJECT_OF(op, const struct hte_slice, op);

    return atomic_load_explicit(&slice->task->is_canceled, memory_order_relaxed) &&
           !atomic_load_explicit(&poster_of(lane)->run->is_stopping, memory_order_relaxed);
}

static void parts(const struct hte_op *op, struct iovec *local, struct iovec *remote)
{
    hte_pack_parts(HTE_OBJECT_OF(op, const struct hte_slice, op), local, remote);
}

static const struct hte_lane_hooks hooks = {.let_go      = on_let_go,
                                            .over        = on_over,
                                            .outlook     = outlook,
                                            .doubt       = on_doubt,
                                            .look        = on_look,
                                            .is_canceled = is_canceled,
                                            .parts       = parts};

/* A slice that is with nobody ends. */
static void drop(struct hte_poster *poster, struct hte_slice *slice, int error)
{
    hte_slice_on(&slice->op.state, HTE_SLICE_DROP, -1);
    lost(poster, slice, error);
}

/* ---- posting ---- */

static void wait_for(struct hte_poster *poster, struct hte_slice *slice, uint64_t when)
{
    slice->ready_at = when > poster->lane.now ? when : poster->lane.now + RETRY_SOON_NS;
    hte_poster_keep_ready(poster, slice);
}

/* Nobody was there. What is tried for the first time may find another process: it waits for a fresh look. */
static void look_again(struct hte_poster *poster, struct hte_slice *slice)
{
    struct hte_segment *segment = slice->task->segment;

    if (!slice->has_looked && slice->op.state.fails == 0) {
        slice->has_looked = true;
        hte_refresh_order(poster->run->refresh, segment);
    } else if (!atomic_load(&segment->is_refreshing)) {
        drop(poster, slice, HTE_ERR_DEAD_PEER);
        return;
    }
    wait_for(poster, slice, poster->lane.now + RETRY_SOON_NS);
}

/* Nobody at the other side takes anything, or answers at all; as if it were posted. */
static bool takes_too_long(const struct hte_poster *poster, const struct hte_slice *slice, const struct hte_conn *conn)
{
    uint64_t timeout = poster->run->settings->slice_timeout_ms * HTE_NS_PER_MS;

    return timeout > 0 && conn->by_letters && conn->step != HTE_CONN_IDLE &&
           poster->lane.now - slice->waits_since >= timeout;
}

/* With several devices each slice has to be thought about. */
static bool is_as_usual(const struct hte_poster *poster, struct hte_conn *conn, const struct hte_view *view)
{
    return conn != NULL && poster->lane.n_rails == 1 && conn->step == HTE_CONN_UP &&
           (!conn->by_letters || hte_conn_is_usable(conn, view));
}

void hte_post_slice(struct hte_poster *poster, struct hte_slice *slice, struct hte_conn **usual)
{
    struct hte_task *task = slice->task;
    struct hte_conn *conn = *usual;
    unsigned         rail;

    if (is_as_usual(poster, conn, task->view)) {
        hte_flow_give(&poster->flows, slice);
        hte_dispatch(&slice->op, conn, task->view);
        return;
    }
    rail   = hte_route_rail(&poster->router, &poster->lane, slice);
    conn   = hte_conn_get(&poster->lane, task->segment, task->view, rail, hte_route_remote(&poster->lane, slice, rail),
                          slice->op.is_gpu);
    *usual = conn;
    if (slice->op.parts > 1 && (conn == NULL || slice->op.length > hte_conn_parts_size(conn)) &&
        hte_pack_retry(poster, slice)) {
        return; /* the connection is not what they were joined for */
    }
    if (conn == NULL) {
        drop(poster, slice, HTE_ERR_MEMORY);
    } else if (hte_conn_is_deserted(conn)) {
        look_again(poster, slice);
    } else if (hte_conn_is_usable(conn, task->view)) {
        hte_flow_give(&poster->flows, slice);
        hte_dispatch(&slice->op, conn, task->view);
    } else if (hte_conn_is_hopeless(conn)) {
        drop(poster, slice, conn->error);
    } else if (takes_too_long(poster, slice, conn)) {
        drop(poster, slice, HTE_ERR_TIMEOUT);
    } else {
        wait_for(poster, slice, conn->retry_at);
    }
}

/* Whether to try again, by what is known of the target now; else *error. *is_early: a descriptor is on its way, and
 * the last try may wait for what it says. */
static bool is_worth_it(struct hte_poster *poster, struct hte_slice *slice, bool *is_early, int *error)
{
    struct hte_task *task = slice->task;
    struct hte_view *view = hte_segment_view(task->segment);

    *error = HTE_OK;
    if (view->incarnation != task->view->incarnation) {
        *error = HTE_ERR_DEAD_PEER; /* another process has its name */
    } else if (view->serial != task->view->serial) {
        /* Several ranges are of one registration: what holds for the first holds for all. */
        *error = hte_view_recheck(task->view, view, slice->op.remote,
                                  slice->op.parts > 1 ? task->length : slice->op.length, task->is_write);
    }
    hte_view_put(view);
    *is_early = slice->op.state.fails > 0 && slice->op.state.fails == slice->op.state.max_fails &&
                atomic_load(&task->segment->is_refreshing) && poster->lane.now - slice->failed_at < REFRESH_NS;
    return *error == HTE_OK;
}

static bool post_again(struct hte_poster *poster, struct hte_slice *slice)
{
    struct hte_conn *conn = NULL;
    bool             is_early;
    int              error;

    if (!is_worth_it(poster, slice, &is_early, &error)) {
        drop(poster, slice, error);
    } else if (is_early) {
        wait_for(poster, slice, poster->lane.now + RETRY_SOON_NS);
        return false;
    } else {
        hte_post_slice(poster, slice, &conn);
    }
    return true;
}

unsigned hte_post_ready(struct hte_poster *poster)
{
    unsigned          i, count = poster->n_ready, posted = 0;
    struct hte_slice *slice;

    for (i = 0; i < count; ++i) {
        slice = HTE_OBJECT_OF(poster->ready.next, struct hte_slice, op.link);
        hte_ring_remove(&slice->op.link);
        --poster->n_ready;
        if (hte_post_is_unwanted(poster, slice->piece, slice->task)) {
            drop(poster, slice, HTE_ERR_CANCELED);
        } else if (poster->lane.now < slice->ready_at || !has_window(poster, slice)) {
            hte_poster_keep_ready(poster, slice);
        } else {
            posted += post_again(poster, slice);
        }
    }
    return posted;
}

uint64_t hte_post_due(struct hte_poster *poster)
{
    uint64_t              soonest = UINT64_MAX;
    struct hte_link_ring *link;
    struct hte_slice     *slice;

    for (link = poster->ready.next; link != &poster->ready; link = link->next) {
        slice = HTE_OBJECT_OF(link, struct hte_slice, op.link);
        if (slice->ready_at < soonest && (slice->ready_at > poster->lane.now || has_window(poster, slice))) {
            soonest = slice->ready_at;
        }
    }
    return soonest;
}

int hte_poster_open(struct hte_poster *poster, struct hte_run *run, unsigned index)
{
    int error;

    poster->run = run;
    hte_ring_init(&poster->ready);
    hte_router_init(&poster->router, (enum hte_policy)run->settings->policy, index);
    hte_lane_init(&poster->lane, &hooks, run->settings, index);
    error = hte_flows_open(&poster->flows, run->settings, index);
    if (error == HTE_OK) {
        error = hte_lane_open(&poster->lane, run->rails, run->regions);
    }
    return error == HTE_OK ? hte_inbox_open(&poster->lane) : error;
}
