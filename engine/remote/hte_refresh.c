/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_refresh.h"

#include "base/hte_error.h"
#include "base/hte_now.h"

#define PAUSE_NS 100000000ull /* between two fetches of one segment */

static void order(struct hte_refresh *refresh, struct hte_segment *segment)
{
    bool is_taken = false;

    if (atomic_exchange(&segment->is_refreshing, true)) {
        return;
    }
    pthread_mutex_lock(&refresh->lock);
    if (!refresh->is_stopping) {
        is_taken = true;
        atomic_fetch_add(&segment->refs, 1);
        hte_ring_append(&refresh->orders, &segment->refresh_link);
        pthread_cond_signal(&refresh->has_work);
    }
    pthread_mutex_unlock(&refresh->lock);
    if (!is_taken) {
        atomic_store(&segment->is_refreshing, false);
    }
}

void hte_refresh_order(struct hte_refresh *refresh, struct hte_segment *segment)
{
    if (hte_now() >= atomic_load(&segment->refresh_after)) {
        atomic_store(&segment->is_wanted, true);
    }
    order(refresh,
          segment); /* it may have been dying the last time: each try to connect that is spared is worth a look */
}

void hte_refresh_look(struct hte_refresh *refresh, struct hte_segment *segment)
{
    order(refresh, segment);
}

/* Transports take their time, and that for each try, to find out that a process has ended; its host knows. Only where
 * somebody was before: else it may be a firewall that refuses. */
static void look_for_process(struct hte_refresh *refresh, struct hte_segment *segment)
{
    enum hte_presence presence = hte_meta_presence(refresh->meta, segment->name);

    if (presence == HTE_PRESENCE_THERE) {
        segment->was_there = true;
    }
    atomic_store(&segment->is_deserted, presence == HTE_PRESENCE_NOBODY && segment->was_there);
}

/* A fetch that fails leaves the view as it is. */
static void carry_out(struct hte_refresh *refresh, struct hte_segment *segment)
{
    bool is_wanted = atomic_exchange(&segment->is_wanted, false);

    look_for_process(refresh, segment);
    if (is_wanted && !atomic_load(&segment->is_deserted) && !atomic_load(&segment->is_closed)) {
        hte_segment_refresh(refresh->segments, refresh->meta, segment);
    }
    if (is_wanted && !atomic_load(&segment->is_deserted)) { /* else there is nothing to spare: a look, and no more */
        atomic_store(&segment->refresh_after, hte_now() + PAUSE_NS);
    }
    atomic_store(&segment->is_refreshing, false);
    if (!is_wanted && atomic_load(&segment->is_wanted)) {
        order(refresh, segment); /* somebody did, meanwhile */
    }
    hte_segment_put(segment);
}

static struct hte_segment *take(struct hte_refresh *refresh)
{
    struct hte_segment *segment = HTE_OBJECT_OF(refresh->orders.next, struct hte_segment, refresh_link);

    hte_ring_remove(&segment->refresh_link);
    return segment;
}

static void *run(void *arg)
{
    struct hte_refresh *refresh = arg;
    struct hte_segment *segment;

    pthread_mutex_lock(&refresh->lock);
    while (!refresh->is_stopping) {
        if (hte_ring_is_empty(&refresh->orders)) {
            pthread_cond_wait(&refresh->has_work, &refresh->lock);
            continue;
        }
        segment = take(refresh);
        pthread_mutex_unlock(&refresh->lock);
        carry_out(refresh, segment);
        pthread_mutex_lock(&refresh->lock);
    }
    pthread_mutex_unlock(&refresh->lock);
    return NULL;
}

int hte_refresh_init(struct hte_refresh *refresh, struct hte_segments *segments, struct hte_meta *meta)
{
    refresh->segments = segments;
    refresh->meta     = meta;
    hte_ring_init(&refresh->orders);
    pthread_mutex_init(&refresh->lock, NULL);
    pthread_cond_init(&refresh->has_work, NULL);
    if (pthread_create(&refresh->thread, NULL, run, refresh) != 0) {
        return hte_fail(HTE_ERR_LIMIT, "cannot create a thread to fetch descriptors");
    }
    refresh->has_thread = true;
    return HTE_OK;
}

void hte_refresh_stop(struct hte_refresh *refresh)
{
    if (refresh->segments == NULL || !refresh->has_thread) {
        return;
    }
    pthread_mutex_lock(&refresh->lock);
    refresh->is_stopping = true;
    pthread_cond_signal(&refresh->has_work);
    pthread_mutex_unlock(&refresh->lock);
    pthread_join(refresh->thread, NULL);
    refresh->has_thread = false;
}

void hte_refresh_cleanup(struct hte_refresh *refresh)
{
    if (refresh->segments == NULL) {
        return;
    }
    while (!hte_ring_is_empty(&refresh->orders)) {
        hte_segment_put(take(refresh));
    }
    pthread_cond_destroy(&refresh->has_work);
    pthread_mutex_destroy(&refresh->lock);
}
