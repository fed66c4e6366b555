/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_pieces.h"

#include <string.h>

#include "core/hte_cut.h"
#include "hte_feed.h"
#include "job/hte_batch.h"
#include "wire/hte_conn.h"

static void note_region(struct hte_piece *piece, const struct hte_region *region)
{
    piece->local_end = region->addr + region->length;
    piece->preferred = region->preferred;
    piece->available = region->available;
    piece->is_gpu    = region->is_gpu;
}

/* Where the next slice begins: the local region with its rails, and the remote buffer. The task has both pinned. */
static void find_borders(struct hte_regions *regions, struct hte_piece *piece)
{
    struct hte_task *task  = piece->task;
    uint64_t         local = (uint64_t)task->local + piece->offset;

    if (local < piece->local_end) {
        return;
    }
    if (task->region != NULL) {
        note_region(piece, task->region);
    } else {
        pthread_rwlock_rdlock(&regions->lock);
        note_region(piece, hte_regions_find(regions, local));
        pthread_rwlock_unlock(&regions->lock);
    }
}

static void note_gpu(struct hte_slice *slice, bool is_local_gpu)
{
    slice->op.is_local_gpu = is_local_gpu;
    slice->op.is_gpu       = is_local_gpu || slice->task->view->descriptor->buffers[slice->op.buffer].is_gpu;
}

static uint64_t remote_left(struct hte_piece *piece, uint64_t remote)
{
    const struct hte_view        *view   = piece->task->view;
    const struct hte_desc_buffer *buffer = &view->descriptor->buffers[piece->buffer];

    if (remote < buffer->addr || remote - buffer->addr >= buffer->length) {
        piece->buffer = (uint32_t)hte_view_find(view, remote);
        buffer        = &view->descriptor->buffers[piece->buffer];
    }
    return buffer->length - (remote - buffer->addr);
}

/* Of the next operation, at most. */
static uint64_t size_for(const struct hte_poster *poster, const struct hte_flow *flow)
{
    const struct hte_settings *settings = poster->run->settings;

    return poster->lane.n_rails > 1
               ? settings->slice_size
               : hte_cut_run(settings->slice_size, settings->run_size, hte_flow_room(&poster->flows, flow));
}

/* What a slice is when it has just been cut, of pieces of all kinds; from the local memory, remote memory and length of
 * its operation. */
static void init(struct hte_poster *poster, struct hte_slice *slice, struct hte_piece *piece, uint64_t size)
{
    const struct hte_settings *settings = poster->run->settings;

    slice->piece         = piece;
    slice->task          = piece->task;
    slice->count         = 0;
    slice->has_looked    = false;
    slice->waits_since   = poster->lane.now;
    slice->op.is_expired = false;
    slice->op.conn       = NULL;
    slice->op.keys       = NULL;
    slice->op.units = (uint32_t)hte_cut_units(slice->op.length, size, settings->slice_size, settings->fragment_size);
    slice->op.units = slice->op.units > slice->op.parts ? slice->op.units : slice->op.parts;
    hte_flow_count(&poster->flows, slice);
    hte_slice_init(&slice->op.state, piece->task->is_write, (unsigned)settings->retry_count);
}

static void cut(struct hte_poster *poster, struct hte_piece *piece)
{
    const struct hte_settings *settings = poster->run->settings;
    struct hte_task           *task     = piece->task;
    struct hte_flow           *flow     = hte_flow_of(&poster->flows, task->segment);
    uint64_t                   size     = size_for(poster, flow);
    struct hte_slice          *slice    = hte_flow_take_slice(&poster->flows, flow);
    struct hte_conn           *conn     = NULL;

    hte_task_begin(task);
    find_borders(poster->run->regions, piece);
    slice->op.local  = task->local + piece->offset;
    slice->op.remote = task->remote + piece->offset;
    slice->op.length = hte_cut(piece->state.left, size, settings->fragment_size,
                               piece->local_end - (uint64_t)slice->op.local, remote_left(piece, slice->op.remote));
    slice->op.buffer = piece->buffer;
    slice->op.parts  = 1;
    slice->preferred = piece->preferred;
    slice->available = piece->available;
    init(poster, slice, piece, size);
    note_gpu(slice, piece->is_gpu);
    hte_piece_cut(&piece->state, slice->op.length);
    piece->offset += slice->op.length;
    if (!hte_piece_can_cut(&piece->state)) {
        hte_flows_remove(&poster->flows, piece); /* its last slice ends it */
    }
    hte_post_slice(poster, slice, &conn);
}

/* So many ranges one operation may have: UCX moves one, this process by itself several, and a letter lists them. */
static uint32_t parts_for(const struct hte_poster *poster, const struct hte_flow *flow, const struct hte_conn *conn)
{
    uint64_t room = hte_flow_room(&poster->flows, flow);

    if (conn == NULL || hte_conn_parts_size(conn) == 0) {
        return 1;
    }
    return room < HTE_PARTS_MAX ? (uint32_t)room : HTE_PARTS_MAX;
}

/* How many of a pack go together, from the next one on; their bytes, and how many ranges these are. At most so many
 * bytes, and of several ranges so many. */
static uint32_t join(const struct hte_piece *pack, uint64_t size, uint64_t parts_size, uint32_t parts_max,
                     struct hte_op *op)
{
    const struct hte_task *first = pack->task, *task, *end = first + pack->count;
    uint64_t               length = first->length, together;
    uint32_t               parts  = 1, more;

    for (task = first + 1; task < end; ++task) {
        more     = parts + (task->likeness != HTE_CONTINUES);
        together = length + task->length;
        if (together > (more > 1 ? parts_size : size) || more > parts_max) {
            break;
        }
        parts  = more;
        length = together;
    }
    op->parts  = parts;
    op->length = length;
    return (uint32_t)(task - first);
}

/* One operation of a pack. Whether there is one more. */
static bool cut_of_pack(struct hte_poster *poster, struct hte_flow *flow, struct hte_piece *pack,
                        struct hte_conn **conn)
{
    struct hte_task  *task = pack->task;
    bool              is_last;
    uint64_t          size       = size_for(poster, flow);
    struct hte_slice *slice      = hte_flow_take_slice(&poster->flows, flow);
    uint64_t          parts_size = *conn == NULL ? 0 : hte_conn_parts_size(*conn);
    uint32_t          count = join(pack, size, parts_size < size ? parts_size : size, parts_for(poster, flow, *conn),
                                   &slice->op);

    slice->op.local  = task->local;
    slice->op.remote = task->remote;
    slice->op.buffer = task->buffer;
    slice->preferred = task->region->preferred;
    slice->available = task->region->available;
    init(poster, slice, pack, size);
    note_gpu(slice, task->region->is_gpu);
    slice->count        = count;
    slice->joined       = count;
    slice->joined_fails = 0;
    hte_tasks_begin(task, count);
    pack->state.left -= slice->op.length;
    is_last = count == pack->count;
    if (is_last) {
        hte_flows_remove(&poster->flows, pack); /* it may be gone when its last slice is posted */
    }
    pack->task += count;
    pack->count -= count;
    hte_post_slice(poster, slice, conn);
    return !is_last;
}

static bool is_gpu(const struct hte_task *task)
{
    return task->region->is_gpu || task->view->descriptor->buffers[task->buffer].is_gpu;
}

bool hte_pieces_can_move(struct hte_poster *poster, const struct hte_piece *pack)
{
    const struct hte_task *task = pack->task;
    const struct hte_conn *conn = poster->lane.n_rails > 1
                                      ? NULL
                                      : hte_conn_find(&poster->lane, task->segment, task->view, 0, 0, is_gpu(task));

    return conn != NULL && conn->near != NULL && conn->step == HTE_CONN_UP;
}

unsigned hte_pieces_post_pack(struct hte_poster *poster, struct hte_piece *pack)
{
    struct hte_task *task  = pack->task;
    struct hte_flow *flow  = hte_flow_of(&poster->flows, task->segment);
    struct hte_lane *lane  = &poster->lane;
    struct hte_conn *conn  = lane->n_rails > 1 ? NULL
                                               : hte_conn_get(lane, task->segment, task->view, 0, 0, is_gpu(task));
    unsigned         count = 1;

    while (cut_of_pack(poster, flow, pack, &conn) && hte_flow_room(&poster->flows, flow) > 0) {
        ++count;
    }
    return count;
}

/* Copied from the start, slices would overwrite what is still to be read. */
static bool is_overlap_upwards(const char *from, const char *to, uint64_t length)
{
    return (uintptr_t)to - (uintptr_t)from < length;
}

/* HTE_SEGMENT_LOCAL: nothing to ask UCX for. Always one piece: see hte_divide_count(). */
static void copy(struct hte_poster *poster, struct hte_piece *piece)
{
    const struct hte_settings *settings = poster->run->settings;
    struct hte_task           *task     = piece->task;
    char                      *remote   = (char *)task->remote;
    char                      *to       = task->is_write ? remote : task->local;
    const char                *from     = task->is_write ? task->local : remote;
    uint64_t length = hte_cut(piece->state.left, settings->slice_size, settings->fragment_size, UINT64_MAX, UINT64_MAX);
    uint64_t offset = is_overlap_upwards(from, to, task->length) ? piece->state.left - length : piece->offset;

    memmove(to + offset, from + offset, length);
    hte_piece_cut(&piece->state, length);
    piece->offset += length;
    atomic_fetch_add_explicit(&task->transferred, length, memory_order_relaxed);
    atomic_fetch_add_explicit(&task->batch->transferred, length, memory_order_relaxed);
    if (hte_piece_slice_done(&piece->state, length)) {
        hte_post_piece_over(poster, piece);
    }
}

static void stop(struct hte_poster *poster, struct hte_piece *piece)
{
    hte_flows_remove(&poster->flows, piece);
    if (piece->count > 0) {
        hte_tasks_final(piece->task, piece->count, HTE_CANCELED, HTE_ERR_CANCELED);
    } else if (hte_piece_stop(&piece->state, HTE_CANCELED, HTE_ERR_CANCELED)) {
        hte_post_piece_over(poster, piece);
    }
}

unsigned hte_pieces_post(struct hte_poster *poster)
{
    struct hte_run   *run = poster->run;
    struct hte_piece *piece;
    unsigned          count = 0;

    hte_flows_resume(&poster->flows);
    while (count < run->settings->window && (piece = hte_feed_next(&poster->flows, &run->queue)) != NULL) {
        if (hte_post_is_unwanted(poster, piece, piece->task)) {
            stop(poster, piece);
            continue;
        }
        if (piece->count > 0) {
            count += hte_pieces_post_pack(poster, piece);
            continue;
        }
        if (piece->task->segment == NULL) {
            hte_task_begin(piece->task);
            copy(poster, piece);
        } else {
            cut(poster, piece);
        }
        ++count;
    }
    return count;
}

static void stop_unwanted(struct hte_poster *poster, struct hte_link_ring *pieces)
{
    struct hte_link_ring *link, *next;
    struct hte_piece     *piece;

    for (link = pieces->next; link != pieces; link = next) {
        next  = link->next;
        piece = HTE_OBJECT_OF(link, struct hte_piece, link);
        if (hte_post_is_unwanted(poster, piece, piece->task)) {
            stop(poster, piece);
        }
    }
}

static void stop_unwanted_of(struct hte_poster *poster, struct hte_link_ring *flows)
{
    struct hte_link_ring *link, *next;

    for (link = flows->next; link != flows; link = next) {
        next = link->next;
        stop_unwanted(poster, &HTE_OBJECT_OF(link, struct hte_flow, link)->pieces);
    }
}

void hte_pieces_cancel(struct hte_poster *poster)
{
    struct hte_link_ring canceled;

    hte_ring_init(&canceled);
    hte_queue_take_canceled(&poster->run->queue, &canceled);
    stop_unwanted(poster, &canceled);
    stop_unwanted_of(poster, &poster->flows.active);
    stop_unwanted_of(poster, &poster->flows.stalled);
    hte_post_ready(poster);
}
