/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_segment_*. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hte_error.h"
#include "base/hte_now.h"
#include "hte_engine.h"
#include "wire/hte_conn.h"

static int open_segment(struct hte_engine *engine, const char *name, hte_segment_t *segment)
{
    if (name == NULL || segment == NULL || name[0] == '\0' || strlen(name) > HTE_NAME_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "name or segment is NULL, or the name has not 1 to %d bytes",
                        HTE_NAME_MAX);
    }
    if (strcmp(name, hte_meta_name(engine->meta)) == 0) {
        *segment = HTE_SEGMENT_LOCAL;
        return HTE_OK;
    }
    return hte_segments_open(&engine->segments, engine->meta, name, segment);
}

int hte_segment_open(struct hte_engine *engine, const char *name, hte_segment_t *segment)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = open_segment(engine, name, segment);
        hte_leave(engine);
    }
    return error;
}

static int close_segment(struct hte_engine *engine, hte_segment_t segment)
{
    int error;

    if (segment == HTE_SEGMENT_LOCAL) {
        return HTE_OK;
    }
    error = hte_segments_close(&engine->segments, segment);
    if (error == HTE_OK) {
        hte_workers_order(&engine->workers);
    }
    return error;
}

int hte_segment_close(struct hte_engine *engine, hte_segment_t segment)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = close_segment(engine, segment);
        hte_leave(engine);
    }
    return error;
}

static int sync_one(struct hte_engine *engine, struct hte_segment *segment)
{
    int error = hte_segment_refresh(&engine->segments, engine->meta, segment);

    hte_segment_put(segment);
    return error;
}

static int sync_all(struct hte_engine *engine)
{
    struct hte_segment **all;
    size_t               i, count;
    int                  error = HTE_OK, first = HTE_OK;

    all = hte_segments_all(&engine->segments, &count);
    for (i = 0; i < count; ++i) {
        if (atomic_load(&engine->is_closing)) {
            first = hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed");
            hte_segment_put(all[i]);
            continue;
        }
        error = sync_one(engine, all[i]);
        first = first == HTE_OK ? error : first;
    }
    free(all);
    return first;
}

/* A reference in *segment. */
static int find(struct hte_engine *engine, hte_segment_t id, struct hte_segment **segment)
{
    *segment = hte_segments_get(&engine->segments, id);
    return *segment != NULL ? HTE_OK : hte_fail(HTE_ERR_BAD_HANDLE, "segment %d is not open", id);
}

static int sync_segment(struct hte_engine *engine, hte_segment_t id)
{
    struct hte_segment *segment;
    int                 error;

    if (id == HTE_SEGMENT_LOCAL) {
        return HTE_OK;
    }
    if (id == HTE_SEGMENT_NONE) {
        return sync_all(engine);
    }
    error = find(engine, id, &segment);
    return error == HTE_OK ? sync_one(engine, segment) : error;
}

int hte_segment_sync(struct hte_engine *engine, hte_segment_t id)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = sync_segment(engine, id);
        hte_leave(engine);
    }
    return error;
}

static void look_at_lane(struct hte_lane *lane, const struct hte_segment *segment, int *way, char *text, size_t size)
{
    struct hte_link_ring  *link;
    const struct hte_conn *conn;

    pthread_mutex_lock(&lane->lock);
    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->segment == segment && conn->way > *way) {
            *way = conn->way;
            snprintf(text, size, "%s", conn->words);
        }
    }
    pthread_mutex_unlock(&lane->lock);
}

/* As hte_segment_way(). */
static int way_of(struct hte_engine *engine, const struct hte_segment *segment, char *text, size_t size)
{
    int      way = HTE_WAY_NONE;
    unsigned i;

    snprintf(text, size, "not connected yet");
    for (i = 0; i < engine->workers.count; ++i) {
        look_at_lane(hte_workers_lane(&engine->workers, i), segment, &way, text, size);
    }
    return way;
}

/* ---- warm-up ---- */

static uint64_t incarnation_of(struct hte_segment *segment)
{
    struct hte_view *view        = hte_segment_view(segment);
    uint64_t         incarnation = view->incarnation;

    hte_view_put(view);
    return incarnation;
}

/* It may have turned out meanwhile that another process has the name: then that one is meant. */
static int order_warm(struct hte_engine *engine, struct hte_segment *segment, uint64_t *incarnation)
{
    uint64_t now = incarnation_of(segment);

    if (atomic_load(&segment->is_closed)) {
        return hte_fail(HTE_ERR_BAD_HANDLE, "segment '%s' was closed meanwhile", segment->name);
    }
    if (*incarnation == now) {
        return HTE_OK;
    }
    *incarnation = now;
    return hte_workers_warm(&engine->workers, segment);
}

static int wait_warm(struct hte_engine *engine, struct hte_segment *segment, uint64_t incarnation, int timeout_ms)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t                     end   = hte_now() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * HTE_NS_PER_MS;
    unsigned                     count, all = engine->workers.count * engine->rails.count;
    char                         text[128];
    int                          error = HTE_OK;

    for (;;) {
        count = hte_workers_count_warm(&engine->workers, segment, &error);
        if (count >= all) {
            return HTE_OK;
        }
        if (error != HTE_OK) {
            way_of(engine, segment, text, sizeof(text));
            return hte_fail(error, "a connection to '%s' broke while it was made (%s)", segment->name, text);
        }
        if (atomic_load(&engine->is_closing)) {
            return hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed");
        }
        error = order_warm(engine, segment, &incarnation);
        if (error != HTE_OK) {
            return error;
        }
        if (timeout_ms >= 0 && hte_now() >= end) {
            return hte_fail(HTE_ERR_TIMEOUT, "%u of %u connections to '%s' are made", count, all, segment->name);
        }
        nanosleep(&pause, NULL);
    }
}

/* Connections that broke: is it that another process has the name by now? */
static int look_again(struct hte_engine *engine, struct hte_segment *segment)
{
    int error = HTE_OK;

    hte_workers_count_warm(&engine->workers, segment, &error);
    return error == HTE_OK ? HTE_OK : hte_segment_refresh(&engine->segments, engine->meta, segment);
}

static int warm(struct hte_engine *engine, hte_segment_t id, int timeout_ms)
{
    struct hte_segment *segment;
    uint64_t            incarnation;
    int                 error;

    if (id == HTE_SEGMENT_LOCAL) {
        return HTE_OK;
    }
    error = find(engine, id, &segment);
    if (error != HTE_OK) {
        return error;
    }
    error = look_again(engine, segment);
    if (error == HTE_OK) {
        incarnation = incarnation_of(segment);
        error       = hte_workers_warm(&engine->workers, segment);
    }
    if (error == HTE_OK) {
        error = wait_warm(engine, segment, incarnation, timeout_ms);
    }
    hte_segment_put(segment);
    return error;
}

int hte_segment_warm(struct hte_engine *engine, hte_segment_t id, int timeout_ms)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = warm(engine, id, timeout_ms);
        hte_leave(engine);
    }
    return error;
}

/* ---- looking ---- */

static void fill_buffer(struct hte_buffer *buffer, uint64_t addr, uint64_t length, int permission, const char *location)
{
    *buffer = (struct hte_buffer){.addr = addr, .length = length, .permission = permission};
    snprintf(buffer->location, sizeof(buffer->location), "%s", location);
}

/* All that requests to HTE_SEGMENT_LOCAL may use. */
static void list_own(struct hte_regions *regions, struct hte_buffer *buffers, size_t room, size_t *count)
{
    const struct hte_region *region;
    size_t                   i;

    pthread_rwlock_rdlock(&regions->lock);
    *count = regions->count;
    for (i = 0; i < *count && i < room; ++i) {
        region = regions->list[i];
        fill_buffer(&buffers[i], region->addr, region->length, region->permission, region->location);
    }
    pthread_rwlock_unlock(&regions->lock);
}

static int list_buffers(struct hte_engine *engine, hte_segment_t id, struct hte_buffer *buffers, size_t *count)
{
    const struct hte_desc_buffer *buffer;
    struct hte_segment           *segment;
    struct hte_view              *view;
    size_t                        i, room;
    int                           error;

    if (count == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "count is NULL");
    }
    room = buffers == NULL ? 0 : *count;
    if (id == HTE_SEGMENT_LOCAL) {
        list_own(&engine->regions, buffers, room, count);
        return HTE_OK;
    }
    error = find(engine, id, &segment);
    if (error != HTE_OK) {
        return error;
    }
    view   = hte_segment_view(segment);
    *count = view->descriptor->num_buffers;
    for (i = 0; i < *count && i < room; ++i) {
        buffer = &view->descriptor->buffers[i];
        fill_buffer(&buffers[i], buffer->addr, buffer->length, (int)buffer->permission, buffer->location);
    }
    hte_view_put(view);
    hte_segment_put(segment);
    return HTE_OK;
}

int hte_segment_buffers(struct hte_engine *engine, hte_segment_t id, struct hte_buffer *buffers, size_t *count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = list_buffers(engine, id, buffers, count);
        hte_leave(engine);
    }
    return error;
}

/* ---- its way ---- */

static int find_way(struct hte_engine *engine, hte_segment_t id, int *way, char *text, size_t size)
{
    struct hte_segment *segment;
    int                 error;

    if (id == HTE_SEGMENT_LOCAL || way == NULL || text == NULL || size == 0) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "way or text is NULL, size 0, or the segment this engine's own");
    }
    error = find(engine, id, &segment);
    if (error != HTE_OK) {
        return error;
    }
    *way = way_of(engine, segment, text, size);
    hte_segment_put(segment);
    return HTE_OK;
}

int hte_segment_way(struct hte_engine *engine, hte_segment_t id, int *way, char *text, size_t size)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = find_way(engine, id, way, text, size);
        hte_leave(engine);
    }
    return error;
}
