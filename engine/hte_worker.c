/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hte_conns.h"
#include "hte_engine.h"
#include "hte_error.h"
#include "hte_flush.h"
#include "hte_now.h"

#define TICK_NS         (10 * HTE_NS_PER_MS)
#define SWEEP_NS        (500 * HTE_NS_PER_MS)
#define GOODBYE_NS      (500 * HTE_NS_PER_MS) /* for polite closing of connections at the end */

/* ---- sleeping and waking ---- */

void hte_worker_wake(struct hte_worker *worker)
{
    uint64_t one    = 1;
    ssize_t written = write(worker->wake_fd, &one, sizeof(one));

    (void)written; /* full: it wakes anyway */
}

void hte_worker_order(struct hte_worker *worker)
{
    atomic_store(&worker->has_orders, true);
    hte_worker_wake(worker);
}

static bool rouse(struct hte_worker *worker, int32_t rest)
{
    bool is_mine = atomic_compare_exchange_strong(&worker->rest, &rest, HTE_AWAKE);

    if (is_mine) {
        hte_worker_wake(worker);
    }
    return is_mine;
}

/* A thread that has seen, and found no room, is left alone: it wakes when UCX has news for it. */
void hte_engine_wake(struct hte_engine *engine, uint64_t count, bool is_new)
{
    unsigned i, awake = 0;
    uint64_t wanted = 1 + count / 8;

    for (i = 0; i < engine->n_workers; ++i) {
        awake += atomic_load(&engine->workers[i].rest) == HTE_AWAKE;
    }
    for (i = 0; i < engine->n_workers && awake < wanted; ++i) {
        awake += rouse(&engine->workers[i], HTE_IDLE);
    }
    for (i = 0; i < engine->n_workers && awake < wanted && is_new; ++i) {
        if (atomic_load(&engine->workers[i].seen) != atomic_load(&engine->queue.pushes)) {
            awake += rouse(&engine->workers[i], HTE_FULL);
        }
    }
}

/* No slice exists. */
static bool is_bare(const struct hte_worker *worker)
{
    return worker->out == 0;
}

/* Slices that wait for room need no clock: UCX's events make some. */
static int sleep_ms(struct hte_worker *worker)
{
    uint64_t soonest = UINT64_MAX;
    struct hte_link_ring *link;
    struct hte_slice *slice;

    for (link = worker->ready.next; link != &worker->ready; link = link->next) {
        slice = HTE_OBJECT_OF(link, struct hte_slice, op.link);
        if (slice->ready_at < soonest && (slice->ready_at > worker->lane.now || hte_slice_has_window(worker, slice))) {
            soonest = slice->ready_at;
        }
    }
    if (soonest != UINT64_MAX) {
        return soonest <= worker->lane.now ? 0 : (int)((soonest - worker->lane.now) / HTE_NS_PER_MS + 1);
    }
    if (!hte_ring_is_empty(&worker->lane.broken) || atomic_load(&worker->engine->is_stopping)) {
        return 10;
    }
    return is_bare(worker) ? 500 : 100;
}

/* Nothing in the queue that it has not seen, and found no room for. */
static bool has_seen_all(const struct hte_worker *worker)
{
    const struct hte_queue *queue = &worker->engine->queue;

    return atomic_load(&queue->count) == 0 || (worker->is_sated && atomic_load(&queue->pushes) == worker->seen);
}

static void fall_asleep(struct hte_worker *worker)
{
    struct pollfd fds[HTE_RAILS_MAX + 1];
    uint64_t drained;
    bool is_full;
    unsigned i;

    if (!hte_lane_arm(&worker->lane)) {
        return;
    }
    for (i = 0; i < worker->lane.n_rails; ++i) {
        fds[i] = (struct pollfd){.fd = worker->lane.rail[i].event_fd, .events = POLLIN};
    }
    fds[worker->lane.n_rails] = (struct pollfd){.fd = worker->wake_fd, .events = POLLIN};
    is_full = worker->is_sated || !hte_ring_is_empty(&worker->stalled);
    atomic_store(&worker->rest, is_full ? HTE_FULL : HTE_IDLE); /* before the queue is looked at */
    if (has_seen_all(worker) && !atomic_load(&worker->has_orders)) {
        poll(fds, worker->lane.n_rails + 1, sleep_ms(worker));
    }
    atomic_store(&worker->rest, HTE_AWAKE);
    if (fds[worker->lane.n_rails].revents != 0 && read(worker->wake_fd, &drained, sizeof(drained)) < 0) {
        return; /* somebody else's wake was read before: nothing lost */
    }
}

/* ---- the loop ---- */

static void obey(struct hte_worker *worker)
{
    struct hte_link_ring warms;
    struct hte_warm *warm;

    hte_ring_init(&warms);
    pthread_mutex_lock(&worker->lock);
    while (!hte_ring_is_empty(&worker->warms)) {
        warm = HTE_OBJECT_OF(worker->warms.next, struct hte_warm, link);
        hte_ring_remove(&warm->link);
        hte_ring_append(&warms, &warm->link);
    }
    pthread_mutex_unlock(&worker->lock);
    while (!hte_ring_is_empty(&warms)) {
        warm = HTE_OBJECT_OF(warms.next, struct hte_warm, link);
        hte_ring_remove(&warm->link);
        hte_conns_warm(&worker->lane, warm->segment, warm->view);
        hte_segment_put(warm->segment);
        hte_view_put(warm->view);
        free(warm);
    }
    hte_post_cancel(worker);
    worker->next_sweep = worker->lane.now;
}

static void tick(struct hte_worker *worker)
{
    struct hte_engine *engine = worker->engine;
    unsigned i;

    worker->next_tick = worker->lane.now + TICK_NS;
    if (engine->settings.slice_timeout_ms > 0) {
        hte_conns_expire(&worker->lane, engine->settings.slice_timeout_ms * HTE_NS_PER_MS);
    }
    if (worker->lane.now >= worker->next_sweep) {
        worker->next_sweep = worker->lane.now + SWEEP_NS;
        hte_conns_doubt(&worker->lane);
        hte_conns_sweep(&worker->lane);
        for (i = 0; i < worker->lane.n_rails && worker->lane.n_rails > 1; ++i) {
            if (worker->lane.rail[i].rate.bytes > 0) {
                hte_rail_clear(&engine->rails, i, worker->lane.now);
            }
        }
    }
    if (atomic_load(&engine->is_stopping) && worker->lane.now >= worker->stop_at) {
        hte_conns_break_all(&worker->lane, HTE_ERR_CANCELED);
    }
}

static unsigned turn(struct hte_worker *worker)
{
    unsigned done = 0;

    worker->lane.now = hte_now();
    if (atomic_load_explicit(&worker->has_orders, memory_order_relaxed) &&
        atomic_exchange(&worker->has_orders, false)) {
        obey(worker);
    }
    done += worker->n_ready > 0 ? hte_post_ready(worker) : 0;
    done += hte_post_pieces(worker);
    if (worker->is_sated && worker->engine->n_workers > 1 &&
        atomic_load_explicit(&worker->engine->queue.count, memory_order_relaxed) > 0) {
        hte_engine_wake(worker->engine, 8 * worker->engine->n_workers, true); /* others may have room */
    }
    hte_conns_flush(&worker->lane);
    done += hte_lane_progress(&worker->lane);
    if (!hte_ring_is_empty(&worker->lane.broken)) {
        hte_conns_mend(&worker->lane);
    }
    if (worker->lane.now >= worker->next_tick) {
        tick(worker);
    }
    return done;
}

/* The first case is for requests that UCX never gives back: see open_endpoint() in hte_conn.c. */
static bool is_over(const struct hte_worker *worker)
{
    if (atomic_load(&worker->engine->is_stopping) && worker->lane.now > worker->stop_at + GOODBYE_NS) {
        return true;
    }
    return atomic_load(&worker->engine->is_stopping) && is_bare(worker) &&
           hte_ring_is_empty(&worker->active) && hte_ring_is_empty(&worker->stalled) &&
           atomic_load(&worker->engine->queue.count) == 0 && hte_conns_are_idle(&worker->lane);
}

static void say_goodbye(struct hte_worker *worker)
{
    uint64_t end = hte_now() + GOODBYE_NS;

    hte_conns_close(&worker->lane);
    while (!hte_conns_are_idle(&worker->lane) && (worker->lane.now = hte_now()) < end) {
        if (hte_lane_progress(&worker->lane) == 0) {
            fall_asleep(worker);
        }
        hte_conns_mend(&worker->lane);
    }
}

/* Polls for poll_us from the first turn that found nothing: a turn full of work may itself take longer than that. */
static void *run(void *arg)
{
    struct hte_worker *worker = arg;
    uint64_t poll_ns          = worker->engine->settings.poll_us * 1000;
    uint64_t idle_at          = UINT64_MAX;

    while (!is_over(worker)) {
        if (turn(worker) > 0) {
            idle_at = UINT64_MAX;
        } else if (idle_at > worker->lane.now) {
            idle_at = worker->lane.now;
        } else if (worker->lane.now - idle_at >= poll_ns) {
            fall_asleep(worker);
        }
    }
    say_goodbye(worker);
    return NULL;
}

/* ---- life ---- */

static int make_slices(struct hte_worker *worker)
{
    uint64_t i, count = 2 * HTE_WINDOWS * worker->engine->settings.window;

    worker->slices = calloc(count, sizeof(*worker->slices));
    if (worker->slices == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %llu slices", (unsigned long long)count);
    }
    for (i = 0; i < count; ++i) {
        hte_ring_append(&worker->free, &worker->slices[i].op.link);
    }
    return HTE_OK;
}

int hte_worker_open(struct hte_worker *worker, struct hte_engine *engine, unsigned index)
{
    int error;

    worker->engine = engine;
    worker->index  = index;
    worker->random = (uint32_t)hte_now() * 2654435761u + index + 1;
    worker->random += worker->random == 0;
    hte_ring_init(&worker->free);
    hte_ring_init(&worker->ready);
    hte_ring_init(&worker->active);
    hte_ring_init(&worker->stalled);
    hte_flow_init(&worker->local);
    hte_ring_init(&worker->warms);
    hte_lane_init(&worker->lane, &hte_post_hooks, &engine->settings, index);
    pthread_mutex_init(&worker->lock, NULL);
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->wake_fd < 0) {
        return hte_fail(HTE_ERR_LIMIT, "eventfd: %s", strerror(errno));
    }
    error = make_slices(worker);
    return error == HTE_OK ? hte_lane_open(&worker->lane, &engine->rails, &engine->refresh) : error;
}

int hte_worker_start(struct hte_worker *worker)
{
    int error = pthread_create(&worker->thread, NULL, run, worker);

    if (error != 0) {
        return hte_fail(HTE_ERR_LIMIT, "cannot create a thread: %s", strerror(error));
    }
    worker->has_thread = true;
    return HTE_OK;
}

void hte_worker_join(struct hte_worker *worker)
{
    if (worker->has_thread) {
        hte_worker_order(worker);
        pthread_join(worker->thread, NULL);
        worker->has_thread = false;
    }
}

void hte_worker_close(struct hte_worker *worker)
{
    if (worker->engine == NULL) {
        return; /* never opened */
    }
    hte_conns_release(&worker->lane);
    hte_lane_close(&worker->lane);
    hte_conns_abandon(&worker->lane);
    hte_post_cancel(worker);
    hte_conns_destroy(&worker->lane);
    hte_lane_cleanup(&worker->lane);
    if (worker->wake_fd >= 0) {
        close(worker->wake_fd);
    }
    free(worker->slices);
    pthread_mutex_destroy(&worker->lock);
}
