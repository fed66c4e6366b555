/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_segment.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"

/* A handle is generation * 65536 + slot + 1; slot + 1 keeps 0 for HTE_SEGMENT_LOCAL. */
#define SLOT_BITS 16
#define GEN_MASK  0x7fffu

int hte_segments_init(struct hte_segments *segments, uint32_t count, hte_segment_attach attach, unsigned threads)
{
    segments->attach  = attach;
    segments->threads = threads;
    segments->slots   = calloc(count, sizeof(*segments->slots));
    if (segments->slots == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %u segments", count);
    }
    hte_table_init(&segments->table, segments->slots, count, GEN_MASK);
    pthread_mutex_init(&segments->lock, NULL);
    atomic_init(&segments->serial, 0);
    return HTE_OK;
}

void hte_segments_cleanup(struct hte_segments *segments)
{
    uint32_t i;

    for (i = 0; i < segments->table.count; ++i) {
        if (segments->slots[i].object != NULL) {
            hte_segment_put(segments->slots[i].object);
        }
    }
    free(segments->slots);
    pthread_mutex_destroy(&segments->lock);
}

static struct hte_segment *find(struct hte_segments *segments, hte_segment_t id)
{
    if (id <= 0 || (id & ((1 << SLOT_BITS) - 1)) == 0) {
        return NULL;
    }
    return hte_table_find(&segments->table, ((uint32_t)id & ((1u << SLOT_BITS) - 1)) - 1, (uint32_t)id >> SLOT_BITS);
}

struct hte_segment *hte_segments_get(struct hte_segments *segments, hte_segment_t id)
{
    struct hte_segment *segment;

    pthread_mutex_lock(&segments->lock);
    segment = find(segments, id);
    if (segment != NULL) {
        atomic_fetch_add(&segment->refs, 1);
    }
    pthread_mutex_unlock(&segments->lock);
    return segment;
}

void hte_segment_put(struct hte_segment *segment)
{
    hte_segment_put_many(segment, 1);
}

void hte_segment_put_many(struct hte_segment *segment, uint32_t count)
{
    if (atomic_fetch_sub(&segment->refs, count) == count) {
        hte_view_put(segment->view);
        pthread_mutex_destroy(&segment->lock);
        pthread_mutex_destroy(&segment->fetch_lock);
        free(segment->attachment);
        free(segment);
    }
}

struct hte_segment **hte_segments_all(struct hte_segments *segments, size_t *count)
{
    struct hte_segment **all = calloc(segments->table.count, sizeof(*all));
    uint32_t             i;

    *count = 0;
    pthread_mutex_lock(&segments->lock);
    for (i = 0; all != NULL && i < segments->table.count; ++i) {
        if (segments->slots[i].object != NULL) {
            all[*count] = segments->slots[i].object;
            atomic_fetch_add(&all[(*count)++]->refs, 1);
        }
    }
    pthread_mutex_unlock(&segments->lock);
    return all;
}

static int fetch(struct hte_segments *segments, struct hte_meta *meta, const char *name, struct hte_view **view)
{
    struct hte_descriptor *descriptor;
    struct hte_why         why   = {""};
    int                    error = hte_meta_fetch(meta, name, &descriptor, &why);

    if (error != HTE_OK) {
        return hte_fail_why(error, &why);
    }
    return hte_view_create(descriptor, name, atomic_fetch_add(&segments->serial, 1) + 1, view);
}

int hte_segment_refresh(struct hte_segments *segments, struct hte_meta *meta, struct hte_segment *segment)
{
    struct hte_view *view, *old;
    int              error;

    pthread_mutex_lock(&segment->fetch_lock);
    error = fetch(segments, meta, segment->name, &view);
    if (error == HTE_OK) {
        pthread_mutex_lock(&segment->lock);
        old           = segment->view;
        segment->view = view;
        pthread_mutex_unlock(&segment->lock);
        hte_view_put(old);
    }
    pthread_mutex_unlock(&segment->fetch_lock);
    return error;
}

struct hte_view *hte_segment_view(struct hte_segment *segment)
{
    struct hte_view *view;

    pthread_mutex_lock(&segment->lock);
    view = segment->view;
    atomic_fetch_add(&view->refs, 1);
    pthread_mutex_unlock(&segment->lock);
    return view;
}

/* With the lock held: counts one more open of an open segment. */
static bool open_again(struct hte_segments *segments, const char *name, hte_segment_t *id)
{
    struct hte_segment *segment;
    uint32_t            i;

    for (i = 0; i < segments->table.count; ++i) {
        segment = segments->slots[i].object;
        if (segment != NULL && strcmp(segment->name, name) == 0) {
            ++segment->opens;
            *id = segment->id;
            return true;
        }
    }
    return false;
}

static struct hte_segment *create(struct hte_segments *segments)
{
    struct hte_segment *segment = calloc(1, sizeof(*segment));

    if (segment == NULL) {
        return NULL;
    }
    segment->attachment = segments->attach(segment, segments->threads);
    if (segment->attachment == NULL) {
        free(segment);
        return NULL;
    }
    return segment;
}

/* With the lock held. */
static int add(struct hte_segments *segments, const char *name, struct hte_view *view, bool is_address,
               hte_segment_t *id)
{
    struct hte_segment *segment = create(segments);
    uint32_t            slot;

    if (segment == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a segment");
    }
    slot = hte_table_add(&segments->table, segment);
    if (slot == HTE_TABLE_NONE) {
        free(segment->attachment);
        free(segment);
        return hte_fail(HTE_ERR_LIMIT, "%u segments are open: close some, or raise option segments_max",
                        segments->table.count);
    }
    atomic_init(&segment->refs, 1);
    segment->slot       = slot;
    segment->id         = (hte_segment_t)(segments->slots[slot].generation << SLOT_BITS | (slot + 1));
    segment->opens      = 1;
    segment->view       = view;
    segment->was_there  = is_address; /* it has just answered there itself */
    segment->is_address = is_address;
    strcpy(segment->name, name); /* its length was checked by hte_segment_open() */
    pthread_mutex_init(&segment->lock, NULL);
    pthread_mutex_init(&segment->fetch_lock, NULL);
    hte_ring_init(&segment->refresh_link);
    *id = segment->id;
    return HTE_OK;
}

int hte_segments_open(struct hte_segments *segments, struct hte_meta *meta, const char *name, hte_segment_t *id)
{
    struct hte_view *view;
    bool             is_open;
    int              error;

    pthread_mutex_lock(&segments->lock);
    is_open = open_again(segments, name, id);
    pthread_mutex_unlock(&segments->lock);
    if (is_open) {
        return HTE_OK;
    }
    error = fetch(segments, meta, name, &view);
    if (error != HTE_OK) {
        return error;
    }
    pthread_mutex_lock(&segments->lock);
    is_open = open_again(segments, name, id); /* by another thread meanwhile */
    error   = is_open ? HTE_OK : add(segments, name, view, hte_meta_is_p2p(meta), id);
    pthread_mutex_unlock(&segments->lock);
    if (is_open || error != HTE_OK) {
        hte_view_put(view);
    }
    return error;
}

int hte_segments_close(struct hte_segments *segments, hte_segment_t id)
{
    struct hte_segment *segment;
    bool                is_last = false;

    pthread_mutex_lock(&segments->lock);
    segment = find(segments, id);
    if (segment != NULL && --segment->opens == 0) {
        is_last = true;
        hte_table_remove(&segments->table, segment->slot);
        atomic_store(&segment->is_closed, true);
    }
    pthread_mutex_unlock(&segments->lock);
    if (segment == NULL) {
        return hte_fail(HTE_ERR_BAD_HANDLE, "segment %d is not open", id);
    }
    if (is_last) {
        hte_segment_put(segment);
    }
    return HTE_OK;
}
