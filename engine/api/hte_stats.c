/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_nic_load(), hte_links(), hte_counters(), hte_topology_export(): looks that disturb nobody. */
#include "hte_stats.h"

#include <stdio.h>
#include <string.h>

#include "base/hte_error.h"
#include "base/hte_now.h"
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

void hte_stats_load(struct hte_engine *engine, unsigned index, struct hte_nic_load *load)
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
        hte_stats_load(engine, i, &loads[i]);
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

void hte_stats_count(struct hte_engine *engine, struct hte_counters *counters)
{
    const struct hte_lane *lane;
    unsigned               i;

    *counters = (struct hte_counters){.requests        = atomic_load(&engine->batches.requests),
                                      .requests_ended  = atomic_load(&engine->batches.requests_ended),
                                      .batches_open    = atomic_load(&engine->batches.open),
                                      .memory_regions  = count_regions(engine),
                                      .notices_sent    = atomic_load(&engine->notify.sent),
                                      .notices_dropped = atomic_load(&engine->notify.dropped)};
    for (i = 0; i < engine->workers.count; ++i) {
        lane = hte_workers_lane(&engine->workers, i);
        counters->slices_posted += atomic_load(&lane->slices_posted);
        counters->posts += atomic_load(&lane->posts);
        counters->posts_messages += atomic_load(&lane->posts_letters);
        counters->posts_same_host += atomic_load(&lane->posts_near);
        counters->flushes += atomic_load(&lane->flushes);
        counters->ep_errors += atomic_load(&lane->ep_errors);
        counters->slices_retried += atomic_load(&engine->workers.list[i].poster.slices_retried);
    }
}

static int read_counters(struct hte_engine *engine, struct hte_counters *counters)
{
    struct hte_counters all;
    size_t              size;

    if (counters == NULL || counters->size < sizeof(counters->size)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "counters is NULL, or counters.size is not set");
    }
    hte_stats_count(engine, &all);
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
