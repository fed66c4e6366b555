/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_nic_load(), hte_links(), hte_counters(), hte_topology_export(): looks that disturb nobody. */
#include <stdio.h>
#include <string.h>

#include "base/hte_error.h"
#include "base/hte_now.h"
#include "hte_engine.h"
#include "wire/hte_conn.h"

/* Threads' own rates, read while they change: each is one word. */
static uint64_t bandwidth(const struct hte_engine *engine, unsigned rail)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < engine->workers.count; ++i) {
        sum += __atomic_load_n(&hte_workers_lane(&engine->workers, i)->rail[rail].rate.per_second, __ATOMIC_RELAXED);
    }
    return sum;
}

static void fill_load(struct hte_engine *engine, unsigned index, struct hte_nic_load *load)
{
    struct hte_rail *rail = &engine->rails.rail[index];
    uint64_t         now = hte_now(), until = atomic_load(&rail->paused_until);

    *load = (struct hte_nic_load){
        .inflight      = atomic_load(&rail->inflight),
        .bandwidth     = bandwidth(engine, index),
        .transferred   = atomic_load(&rail->transferred),
        .errors        = atomic_load(&rail->errors),
        .pauses        = atomic_load(&rail->pauses),
        .state         = now < until ? HTE_DEVICE_PAUSED : HTE_DEVICE_UP,
        .pause_left_ms = now < until ? (int32_t)((until - now) / 1000000) : 0,
    };
    snprintf(load->device, sizeof(load->device), "%s", rail->name);
}

static int list_loads(struct hte_engine *engine, struct hte_nic_load *loads, size_t *count)
{
    size_t   room;
    unsigned i;

    if (count == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "count is NULL");
    }
    room   = loads == NULL ? 0 : *count;
    *count = engine->rails.count;
    for (i = 0; i < engine->rails.count && i < room; ++i) {
        fill_load(engine, i, &loads[i]);
    }
    return HTE_OK;
}

int hte_nic_load(struct hte_engine *engine, struct hte_nic_load *loads, size_t *count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = list_loads(engine, loads, count);
        hte_leave(engine);
    }
    return error;
}

static void fill_link(const struct hte_conn *conn, struct hte_link *link)
{
    *link = (struct hte_link){
        .segment     = conn->segment->id,
        .worker      = conn->lane->index,
        .connected   = atomic_load(&conn->step) == HTE_CONN_UP,
        .transferred = atomic_load(&conn->transferred),
        .reconnects  = atomic_load(&conn->reconnects),
    };
    snprintf(link->local_device, sizeof(link->local_device), "%s", conn->lane->rails->rail[conn->rail].name);
    snprintf(link->remote_device, sizeof(link->remote_device), "%s", conn->remote_device);
    snprintf(link->peer, sizeof(link->peer), "%s", conn->segment->name);
}

static int list_links(struct hte_engine *engine, struct hte_link *links, size_t *count)
{
    struct hte_link_ring *at;
    struct hte_lane      *lane;
    size_t                room, found = 0;
    unsigned              i;

    if (count == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "count is NULL");
    }
    room = links == NULL ? 0 : *count;
    for (i = 0; i < engine->workers.count; ++i) {
        lane = hte_workers_lane(&engine->workers, i);
        pthread_mutex_lock(&lane->lock);
        for (at = lane->conns.next; at != &lane->conns; at = at->next, ++found) {
            if (found < room) {
                fill_link(HTE_OBJECT_OF(at, struct hte_conn, link), &links[found]);
            }
        }
        pthread_mutex_unlock(&lane->lock);
    }
    *count = found;
    return HTE_OK;
}

int hte_links(struct hte_engine *engine, struct hte_link *links, size_t *count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = list_links(engine, links, count);
        hte_leave(engine);
    }
    return error;
}

static uint64_t count_regions(struct hte_engine *engine)
{
    uint64_t count;

    pthread_rwlock_rdlock(&engine->regions.lock);
    count = engine->regions.count;
    pthread_rwlock_unlock(&engine->regions.lock);
    return count;
}

static int read_counters(struct hte_engine *engine, struct hte_counters *counters)
{
    struct hte_counters    all = {.size = sizeof(all)};
    const struct hte_lane *lane;
    size_t                 size;
    unsigned               i;

    if (counters == NULL || counters->size < sizeof(counters->size)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "counters is NULL, or counters.size is not set");
    }
    all.requests        = atomic_load(&engine->batches.requests);
    all.requests_ended  = atomic_load(&engine->batches.requests_ended);
    all.batches_open    = atomic_load(&engine->batches.open);
    all.memory_regions  = count_regions(engine);
    all.notices_sent    = atomic_load(&engine->notify.sent);
    all.notices_dropped = atomic_load(&engine->notify.dropped);
    for (i = 0; i < engine->workers.count; ++i) {
        lane = hte_workers_lane(&engine->workers, i);
        all.slices_posted += atomic_load(&lane->slices_posted);
        all.posts += atomic_load(&lane->posts);
        all.posts_messages += atomic_load(&lane->posts_letters);
        all.posts_same_host += atomic_load(&lane->posts_near);
        all.flushes += atomic_load(&lane->flushes);
        all.ep_errors += atomic_load(&lane->ep_errors);
        all.slices_retried += atomic_load(&engine->workers.list[i].poster.slices_retried);
    }
    size = counters->size < sizeof(all) ? counters->size : sizeof(all);
    memcpy(counters, &all, size);
    counters->size = size;
    return HTE_OK;
}

int hte_counters(struct hte_engine *engine, struct hte_counters *counters)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = read_counters(engine, counters);
        hte_leave(engine);
    }
    return error;
}

static int export(struct hte_engine *engine, char **json)
{
    if (json == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "json is NULL");
    }
    *json = hte_topology_text(&engine->topology, &engine->devices);
    return *json != NULL ? HTE_OK : hte_fail(HTE_ERR_MEMORY, "no memory for the topology's text");
}

int hte_topology_export(struct hte_engine *engine, char **json)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = export(engine, json);
        hte_leave(engine);
    }
    return error;
}
