/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_pieces.h"

#include <string.h>

#include "core/hte_cut.h"
#include "hte_feed.h"
#include "job/hte_batch.h"

/* Where the next slice begins: the local region with its rails, and the remote buffer. The task has both pinned. */
static void find_borders(struct hte_regions *regions, struct hte_piece *piece)
{
    struct hte_task   *task  = piece->task;
    uint64_t           local = (uint64_t)task->local + piece->offset;
    struct hte_region *region;

    if (local < piece->local_end) {
        return;
    }
    if (task->region != NULL) {
        piece->local_end = task->region->addr + task->region->length;
        piece->preferred = task->region->preferred;
        piece->available = task->region->available;
    } else {
        pthread_rwlock_rdlock(&regions->lock);
        region           = hte_regions_find(regions, local);
        piece->local_end = region->addr + region->length;
        piece->preferred = region->preferred;
        piece->available = region->available;
        pthread_rwlock_unlock(&regions->lock);
    }
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

static void measure(struct hte_poster *poster, struct hte_flow *flow, struct hte_piece *piece, struct hte_slice *slice)
{
    const struct hte_settings *settings = poster->run->settings;
    uint64_t                   size     = settings->slice_size;

    if (poster->lane.n_rails == 1) {
        size = hte_cut_run(size, settings->run_size, hte_flow_room(&poster->flows, flow));
    }
    slice->op.length = hte_cut(piece->state.left, size, settings->fragment_size,
                               piece->local_end - (uint64_t)slice->op.local, remote_left(piece, slice->op.remote));
    slice->op.units  = (uint32_t)hte_cut_units(slice->op.length, size, settings->slice_size, settings->fragment_size);
    hte_flow_count(&poster->flows, slice);
}

static void cut(struct hte_poster *poster, struct hte_piece *piece)
{
    const struct hte_settings *settings = poster->run->settings;
    struct hte_task           *task     = piece->task;
    struct hte_flow           *flow     = hte_flow_of(&poster->flows, task->segment);
    struct hte_slice          *slice    = hte_flow_take_slice(&poster->flows, flow);

    find_borders(poster->run->regions, piece);
    slice->piece     = piece;
    slice->op.local  = task->local + piece->offset;
    slice->op.remote = task->remote + piece->offset;
    measure(poster, flow, piece, slice);
    slice->op.buffer     = piece->buffer;
    slice->preferred     = piece->preferred;
    slice->available     = piece->available;
    slice->has_looked    = false;
    slice->waits_since   = poster->lane.now;
    slice->op.is_expired = false;
    slice->op.conn       = NULL;
    slice->op.keys       = NULL;
    hte_slice_init(&slice->op.state, task->is_write, (unsigned)settings->retry_count);
    hte_piece_cut(&piece->state, slice->op.length);
    piece->offset += slice->op.length;
    if (!hte_piece_can_cut(&piece->state)) {
        hte_flows_remove(&poster->flows, piece); /* its last slice ends it */
    }
    hte_post_slice(poster, slice);
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
    if (hte_piece_stop(&piece->state, HTE_CANCELED, HTE_ERR_CANCELED)) {
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
        if (hte_post_is_unwanted(poster, piece)) {
            stop(poster, piece);
            continue;
        }
        hte_task_begin(piece->task);
        if (piece->task->segment == NULL) {
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
        if (hte_post_is_unwanted(poster, piece)) {
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
