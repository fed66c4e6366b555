/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_error.h"
#include "base/hte_now.h"
#include "hte_feed.h"
#include "hte_packs.h"
#include "hte_pieces.h"
#include "wire/hte_conns.h"
#include "wire/hte_flush.h"
#include "wire/hte_guest.h"
#include "wire/hte_near_ops.h"

#define TICK_NS    (10 * HTE_NS_PER_MS)
#define SWEEP_NS   (500 * HTE_NS_PER_MS)
#define BUSY_ARMS  16                    /* so often in a row UCX does not let the thread sleep */
#define GOODBYE_NS (500 * HTE_NS_PER_MS) /* for polite closing of connections at the end */

/* An order from outside: connect to a segment. The caller watches the connections' is_warm. */
struct hte_warm {
    struct hte_link_ring link;
    struct hte_segment  *segment; /* reference */
    struct hte_view     *view;    /* reference */
};

/* ---- sleeping and waking ---- */

void hte_worker_wake(struct hte_worker *worker)
{
    uint64_t one     = 1;
    ssize_t  written = write(worker->wake_fd, &one, sizeof(one));

    (void)written; /* full: it wakes anyway */
}

static void order(struct hte_worker *worker)
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
void hte_workers_wake(struct hte_workers *workers, uint64_t count, bool is_new)
{
    struct hte_worker *list = workers->list;
    unsigned           i, awake = 0;
    uint64_t           wanted = 1 + count / 8;

    for (i = 0; i < workers->count; ++i) {
        awake += atomic_load(&list[i].rest) == HTE_AWAKE;
    }
    for (i = 0; i < workers->count && awake < wanted; ++i) {
        awake += rouse(&list[i], HTE_IDLE);
    }
    for (i = 0; i < workers->count && awake < wanted && is_new; ++i) {
        if (atomic_load(&list[i].poster.flows.seen) != atomic_load(&workers->run->queue.pushes)) {
            awake += rouse(&list[i], HTE_FULL);
        }
    }
}

/* Slices that wait for room need no clock: UCX's events make some. */
static int sleep_ms(struct hte_worker *worker)
{
    struct hte_lane *lane = &worker->poster.lane;
    uint64_t         due  = hte_post_due(&worker->poster);

    if (due != UINT64_MAX) {
        return due <= lane->now ? 0 : (int)((due - lane->now) / HTE_NS_PER_MS + 1);
    }
    if (!hte_ring_is_empty(&lane->broken) || atomic_load(&worker->all->run->is_stopping)) {
        return 10;
    }
    return hte_worker_is_bare(worker) ? 500 : 100;
}

/* UCX has something that it cannot do now, as with a queue in shared memory that is full: what it waits for may need
 * this very core. */
static void give_way(struct hte_worker *worker)
{
    static const struct timespec pause = {.tv_nsec = 50000};

    if (++worker->busy_arms >= BUSY_ARMS) {
        nanosleep(&pause, NULL);
    } else {
        sched_yield();
    }
}

static void fall_asleep(struct hte_worker *worker)
{
    struct hte_lane  *lane  = &worker->poster.lane;
    struct hte_flows *flows = &worker->poster.flows;
    struct pollfd     fds[HTE_RAILS_MAX + 1];
    uint64_t          drained;
    bool              is_full;
    int               timeout;
    unsigned          i;

    if (!hte_lane_arm(lane)) {
        give_way(worker);
        return;
    }
    worker->busy_arms = 0;
    for (i = 0; i < lane->n_rails; ++i) {
        fds[i] = (struct pollfd){.fd = lane->rail[i].event_fd, .events = POLLIN};
    }
    fds[lane->n_rails] = (struct pollfd){.fd = worker->wake_fd, .events = POLLIN};
    is_full            = flows->is_sated || !hte_ring_is_empty(&flows->stalled);
    atomic_store(&worker->rest, is_full ? HTE_FULL : HTE_IDLE); /* before the queue is looked at */
    if (hte_feed_has_seen_all(flows, &worker->all->run->queue) && !atomic_load(&worker->has_orders)) {
        timeout = sleep_ms(worker);
        pthread_mutex_unlock(&worker->helm);
        poll(fds, lane->n_rails + 1, timeout);
        atomic_store(&worker->rest, HTE_AWAKE); /* nobody else takes it from here on */
        pthread_mutex_lock(&worker->helm);
    }
    atomic_store(&worker->rest, HTE_AWAKE);
    if (fds[lane->n_rails].revents != 0 && read(worker->wake_fd, &drained, sizeof(drained)) < 0) {
        return; /* somebody else's wake was read before: nothing lost */
    }
}

/* ---- the loop ---- */

static struct hte_warm *take_warm(struct hte_worker *worker)
{
    struct hte_warm *warm = NULL;

    pthread_mutex_lock(&worker->lock);
    if (!hte_ring_is_empty(&worker->warms)) {
        warm = HTE_OBJECT_OF(worker->warms.next, struct hte_warm, link);
        hte_ring_remove(&warm->link);
    }
    pthread_mutex_unlock(&worker->lock);
    return warm;
}

static void drop_warm(struct hte_warm *warm)
{
    hte_segment_put(warm->segment);
    hte_view_put(warm->view);
    free(warm);
}

static void obey(struct hte_worker *worker)
{
    struct hte_warm *warm;

    while ((warm = take_warm(worker)) != NULL) {
        hte_conns_warm(&worker->poster.lane, warm->segment, warm->view);
        drop_warm(warm);
    }
    hte_pieces_cancel(&worker->poster);
    hte_conns_cancel(&worker->poster.lane);
    worker->next_sweep = worker->poster.lane.now;
}

static void sweep(struct hte_lane *lane)
{
    unsigned i;

    hte_conns_doubt(lane);
    hte_conns_sweep(lane);
    hte_guests_sweep(lane);
    for (i = 0; i < lane->n_rails && lane->n_rails > 1; ++i) {
        if (lane->rail[i].rate.bytes > 0) {
            hte_rail_clear(lane->rails, i, lane->now);
        }
    }
}

static void tick(struct hte_worker *worker)
{
    const struct hte_run *run  = worker->all->run;
    struct hte_lane      *lane = &worker->poster.lane;

    worker->next_tick = lane->now + TICK_NS;
    if (run->settings->slice_timeout_ms > 0) {
        hte_conns_expire(lane, run->settings->slice_timeout_ms * HTE_NS_PER_MS);
    }
    if (lane->has_canceled) {
        hte_conns_cancel(lane);
    }
    if (lane->now >= worker->next_sweep) {
        worker->next_sweep = lane->now + SWEEP_NS;
        sweep(lane);
    }
    if (atomic_load(&run->is_stopping) && lane->now >= worker->stop_at) {
        hte_conns_break_all(lane, HTE_ERR_CANCELED);
    }
}

static unsigned turn(struct hte_worker *worker)
{
    struct hte_poster *poster = &worker->poster;
    struct hte_lane   *lane   = &poster->lane;
    unsigned           done   = 0;

    lane->now = hte_now();
    if (atomic_load_explicit(&worker->has_orders, memory_order_relaxed) &&
        atomic_exchange(&worker->has_orders, false)) {
        obey(worker);
    }
    done += poster->n_ready > 0 ? hte_post_ready(poster) : 0;
    done += hte_pieces_post(poster);
    if (poster->flows.is_sated && worker->all->count > 1 &&
        atomic_load_explicit(&poster->run->queue.count, memory_order_relaxed) > 0) {
        hte_workers_wake(worker->all, 8 * worker->all->count, true); /* others may have room */
    }
    hte_conns_flush(lane);
    done += hte_near_run_all(lane);
    done += hte_lane_progress(lane);
    hte_packs_tell(poster);
    if (!hte_ring_is_empty(&lane->broken)) {
        hte_conns_mend(lane);
    }
    if (lane->now >= worker->next_tick) {
        tick(worker);
    }
    return done;
}

/* The first case is for requests that UCX never gives back: see open_at() in hte_conn.c. */
static bool is_over(const struct hte_worker *worker)
{
    const struct hte_run   *run   = worker->all->run;
    const struct hte_flows *flows = &worker->poster.flows;
    const struct hte_lane  *lane  = &worker->poster.lane;

    if (!atomic_load(&run->is_stopping)) {
        return false;
    }
    return lane->now > worker->stop_at + GOODBYE_NS ||
           (hte_worker_is_bare(worker) && hte_ring_is_empty(&flows->active) && hte_ring_is_empty(&flows->stalled) &&
            atomic_load(&run->queue.count) == 0 && hte_conns_are_idle(lane));
}

static void say_goodbye(struct hte_worker *worker)
{
    struct hte_lane *lane = &worker->poster.lane;
    uint64_t         end  = hte_now() + GOODBYE_NS;

    hte_conns_close(lane);
    while (!hte_conns_are_idle(lane) && (lane->now = hte_now()) < end) {
        if (hte_lane_progress(lane) == 0) {
            fall_asleep(worker);
        }
        hte_conns_mend(lane);
    }
    hte_packs_tell(&worker->poster);
}

/* Polls for poll_us from the first turn that found nothing: a turn full of work may itself take longer than that. */
static void *run(void *arg)
{
    struct hte_worker *worker  = arg;
    const uint64_t    *now     = &worker->poster.lane.now;
    uint64_t           poll_ns = worker->all->run->settings->poll_us * 1000;
    uint64_t           idle_at = UINT64_MAX;

    pthread_mutex_lock(&worker->helm);
    while (!is_over(worker)) {
        if (turn(worker) > 0) {
            idle_at = UINT64_MAX;
        } else if (idle_at > *now) {
            idle_at = *now;
        } else if (*now - idle_at >= poll_ns) {
            fall_asleep(worker);
        }
    }
    say_goodbye(worker);
    pthread_mutex_unlock(&worker->helm);
    return NULL;
}

/* ---- life ---- */

static int open_worker(struct hte_worker *worker, struct hte_workers *all, unsigned index)
{
    int error;

    worker->all     = all;
    worker->wake_fd = -1;
    hte_ring_init(&worker->warms);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_mutex_init(&worker->helm, NULL);
    error = hte_poster_open(&worker->poster, all->run, index);
    if (error != HTE_OK) {
        return error;
    }
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return worker->wake_fd >= 0 ? HTE_OK : hte_fail(HTE_ERR_LIMIT, "eventfd: %s", strerror(errno));
}

int hte_workers_open(struct hte_workers *workers, struct hte_run *run)
{
    uint64_t threads = run->settings->threads;
    unsigned i;
    int      error = HTE_OK;

    workers->run  = run;
    workers->list = calloc(threads, sizeof(*workers->list));
    if (workers->list == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %llu threads", (unsigned long long)threads);
    }
    for (i = 0; i < threads && error == HTE_OK; ++i) {
        workers->count = i + 1;
        error          = open_worker(&workers->list[i], workers, i);
    }
    return error;
}

int hte_workers_start(struct hte_workers *workers)
{
    struct hte_worker *worker;
    unsigned           i;
    int                error;

    for (i = 0; i < workers->count; ++i) {
        worker = &workers->list[i];
        error  = pthread_create(&worker->thread, NULL, run, worker);
        if (error != 0) {
            return hte_fail(HTE_ERR_LIMIT, "cannot create a thread: %s", strerror(error));
        }
        worker->has_thread = true;
    }
    return HTE_OK;
}

void hte_workers_stop(struct hte_workers *workers, uint64_t timeout_ms)
{
    uint64_t stop_at = hte_now() + timeout_ms * HTE_NS_PER_MS;
    unsigned i;

    for (i = 0; i < workers->count; ++i) {
        workers->list[i].stop_at = stop_at;
    }
    if (workers->run != NULL) {
        atomic_store(&workers->run->is_stopping, true);
    }
}

void hte_workers_join(struct hte_workers *workers)
{
    unsigned i;

    for (i = 0; i < workers->count; ++i) {
        if (workers->list[i].has_thread) {
            order(&workers->list[i]);
        }
    }
    for (i = 0; i < workers->count; ++i) {
        if (workers->list[i].has_thread) {
            pthread_join(workers->list[i].thread, NULL);
            workers->list[i].has_thread = false;
        }
    }
}

static void close_worker(struct hte_worker *worker)
{
    struct hte_lane *lane = &worker->poster.lane;
    struct hte_warm *warm;

    while ((warm = take_warm(worker)) != NULL) {
        drop_warm(warm); /* the thread ended before it looked at its orders */
    }
    hte_conns_release(lane);
    hte_lane_close(lane);
    hte_conns_abandon(lane);
    hte_packs_tell(&worker->poster); /* what UCX's end may have completed */
    hte_guests_destroy(lane);
    hte_pieces_cancel(&worker->poster);
    hte_conns_destroy(lane);
    hte_lane_cleanup(lane);
    hte_flows_close(&worker->poster.flows);
    if (worker->wake_fd >= 0) {
        close(worker->wake_fd);
    }
    pthread_mutex_destroy(&worker->helm);
    pthread_mutex_destroy(&worker->lock);
}

void hte_workers_close(struct hte_workers *workers)
{
    unsigned i;

    for (i = 0; i < workers->count; ++i) {
        close_worker(&workers->list[i]);
    }
}

/* ---- orders ---- */

void hte_workers_order(struct hte_workers *workers)
{
    unsigned i;

    for (i = 0; i < workers->count; ++i) {
        order(&workers->list[i]);
    }
}

static int order_warm(struct hte_worker *worker, struct hte_segment *segment)
{
    struct hte_warm *warm = calloc(1, sizeof(*warm));

    if (warm == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for an order");
    }
    atomic_fetch_add(&segment->refs, 1);
    warm->segment = segment;
    warm->view    = hte_segment_view(segment);
    pthread_mutex_lock(&worker->lock);
    hte_ring_append(&worker->warms, &warm->link);
    pthread_mutex_unlock(&worker->lock);
    order(worker);
    return HTE_OK;
}

int hte_workers_warm(struct hte_workers *workers, struct hte_segment *segment)
{
    unsigned i;
    int      error = HTE_OK;

    for (i = 0; i < workers->count && error == HTE_OK; ++i) {
        error = order_warm(&workers->list[i], segment);
    }
    return error;
}

unsigned hte_workers_count_warm(struct hte_workers *workers, const struct hte_segment *segment, int *error)
{
    unsigned i, count = 0;

    for (i = 0; i < workers->count; ++i) {
        count += hte_conns_count_warm(hte_workers_lane(workers, i), segment, error);
    }
    return count;
}
