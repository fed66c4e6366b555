/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The card's own life: joining the fabric, the thread that does what nobody else does, and time.
 *
 * While somebody polls, or posts, he takes what arrives, and the thread only looks at the clock, a thousand
 * times a second; nobody needs to wake it. When polling stops, the thread does the work and sleeps
 * between, and senders ring.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sc_card.h"

#define TICK_NS      1000000
#define MANY         128  /* queue pairs looked at in a tick, on the average */
#define FAST_POLLS   16   /* in a tick */
#define PATIENCE     4000 /* polls for nothing, some 100 us: he for whom we wait may need this processor */
#define YIELD_EACH   64
#define TICK_BY_POLL 256 /* without a thread: this many polls */
#define STREAM       16  /* packets since it last sent something: it only receives */
#define LOOK_NS      500

struct sc_card sc = {.place = -1};

uint64_t sc_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void sc_nic_tick(uint64_t now)
{
    struct sc_qp **link = &sc.busy, *qp;
    unsigned       many = 0;

    sc_net_send_late(now);
    if (now < sc.tick_at) {
        return;
    }
    while ((qp = *link) != NULL) {
        int gone = qp->sport != SC_NO_PORT && (sc.fabric->port[qp->sport].trouble & SC_PORT_FATAL);

        many++;
        sc_net_unblock(qp);
        if (!gone) {
            sc_requester_tick(qp, now);
        }
        if (sc_requester_idle(qp) || qp->state == IBV_QPS_ERR) {
            while (*link != qp) { /* others were put in front of it meanwhile */
                link = &(*link)->busy_next;
            }
            *link    = qp->busy_next;
            qp->busy = 0;
        } else {
            link = &qp->busy_next;
        }
    }
    sc.tick_at = now + many / MANY * TICK_NS; /* thousands wait for their time: not all of them each millisecond */
}

void sc_nic_mind_time(void)
{
    if (sc.has_thread && !sc.ticking) {
        sc.ticking = 1;
        sc_member_ring(sc.me);
    }
}

/* Its time runs: the thread must look at it. */
void sc_nic_busy(struct sc_qp *qp)
{
    if (qp->busy) {
        return;
    }
    qp->busy      = 1;
    qp->since     = 0;
    qp->busy_next = sc.busy;
    sc.busy       = qp;
    sc_nic_mind_time();
}

void sc_nic_look(void)
{
    sc_net_drain();
    sc_responder_acks();
    for (struct sc_qp *qp = sc.busy; sc.blocked > 0 && qp != NULL; qp = qp->busy_next) {
        sc_net_unblock(qp);
    }
}

/* To look costs who sends a line of the cache, and one that is asked for all the time would be most of what a stream of
 * messages costs: who only receives looks twice in a microsecond, as no real card tells of each message sooner. */
static int is_early(void)
{
    uint64_t look_at = __atomic_load_n(&sc.look_at, __ATOMIC_RELAXED);

    if (look_at == 0) {
        return 0;
    }
    if (sc_now() < look_at) {
        return 1;
    }
    __atomic_store_n(&sc.look_at, 0, __ATOMIC_RELAXED);
    return 0;
}

static int has_work(void)
{
    return __atomic_load_n(&sc.inbox->ready, __ATOMIC_RELAXED) != 0 ||
           __atomic_load_n(&sc.blocked, __ATOMIC_RELAXED) > 0;
}

void sc_nic_poll(void)
{
    uint64_t polls = __atomic_load_n(&sc.polls, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&sc.polls, polls, __ATOMIC_RELAXED);
    if (polls - __atomic_load_n(&sc.polls_of_use, __ATOMIC_RELAXED) > PATIENCE && polls % YIELD_EACH == 0) {
        sched_yield();
    }
    if (!sc.has_thread && (sc.busy != NULL || sc.late != NULL) && polls % TICK_BY_POLL == 0) {
        sc_lock(&sc.lock);
        sc_nic_tick(sc_now());
        sc_unlock(&sc.lock);
    }
    if (!is_early() && has_work() && sc_try_lock(&sc.lock)) {
        int streams = softcard_counts.packets - sc.packets_at_post > STREAM;

        sc_nic_look();
        __atomic_store_n(&sc.look_at, streams ? sc_now() + LOOK_NS : 0, __ATOMIC_RELAXED);
        sc_unlock(&sc.lock);
    }
}

void sc_nic_sleepy(void)
{
    if (sc.has_thread) {
        __atomic_store_n(&sc.me->asleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&sc.inbox->ready, __ATOMIC_SEQ_CST) != 0) {
            sc_member_ring(sc.me);
        }
    }
}

/* Ports of this host whose state is another now. */
static void tell_troubles(void)
{
    static const struct ibv_async_event fatal = {.event_type = IBV_EVENT_DEVICE_FATAL};

    for (unsigned i = 0; i < SC_DEVICES_MAX * SC_PORTS_MAX; i++) {
        unsigned place   = sc.host * SC_DEVICES_MAX * SC_PORTS_MAX + i;
        uint32_t now     = __atomic_load_n(&sc.fabric->port[place].trouble, __ATOMIC_ACQUIRE);
        uint32_t changed = now ^ sc.trouble[i];

        sc.trouble[i] = now;
        if (changed & SC_PORT_DOWN) {
            sc_event_port(place, now & SC_PORT_DOWN ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
        }
        for (struct sc_context *context = sc.contexts; (changed & now & SC_PORT_FATAL) && context != NULL;
             context                    = context->next) {
            if (context->device->index == i / SC_PORTS_MAX && i % SC_PORTS_MAX == 0) {
                sc_event_raise(&context->base.context, &fatal);
            }
        }
    }
}

struct watch {
    uint64_t polls, ticked;
    int      fast; /* somebody polls all the time, and will see at once what arrives */
};

/* Who posts will poll: of sends that say nothing of their success, hundreds at a time. Under the lock. */
static uint64_t polls_and_posts(void)
{
    return __atomic_load_n(&sc.polls, __ATOMIC_RELAXED) + softcard_counts.sends;
}

/* What the thread does each time it wakes. Returns whether it must wake again by itself. */
static int work(struct watch *watch)
{
    uint64_t now = sc_now(), passed = now - watch->ticked, polls;
    uint32_t epoch, ticking;

    sc_lock(&sc.lock);
    polls = polls_and_posts();
    sc_nic_look();
    if (passed >= TICK_NS / 2) {
        sc_nic_tick(now);
    }
    epoch = __atomic_load_n(&sc.fabric->epoch, __ATOMIC_ACQUIRE);
    if (epoch != sc.epoch) {
        sc.epoch = epoch;
        tell_troubles();
    }
    ticking = sc.ticking = polls != watch->polls || sc.busy != NULL || sc.late != NULL || watch->fast;
    sc_unlock(&sc.lock);
    if (passed >= TICK_NS / 2) {
        watch->fast   = polls - watch->polls >= FAST_POLLS && passed < 4 * TICK_NS;
        watch->ticked = now;
        watch->polls  = polls;
    }
    return (int)ticking;
}

/* Before it sleeps, the thread of a card that is to be prompt looks for what arrives, without being rung for. */
static void linger(void)
{
    uint64_t begun = sc_now(), now = begun, worked = begun;

    while (now - worked < sc.linger_ns && now - begun < TICK_NS && !__atomic_load_n(&sc.stop, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&sc.inbox->ready, __ATOMIC_ACQUIRE) != 0) {
            sc_lock(&sc.lock);
            sc_nic_look();
            sc_unlock(&sc.lock);
            worked = now;
        }
        now = sc_now();
    }
}

static void *nic(void *arg)
{
    const struct timespec tick  = {0, TICK_NS};
    struct watch          watch = {0};

    while (!__atomic_load_n(&sc.stop, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&sc.me->bell, __ATOMIC_SEQ_CST);
        int      timed;

        __atomic_store_n(&sc.me->asleep, 0, __ATOMIC_SEQ_CST);
        timed = work(&watch);
        if (!watch.fast) {
            linger();
            __atomic_store_n(&sc.me->asleep, 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&sc.inbox->ready, __ATOMIC_SEQ_CST) != 0) {
                continue;
            }
        }
        sc_futex_wait(&sc.me->bell, seen, timed ? &tick : NULL);
    }
    return arg;
}

static int start_thread(void)
{
    const char *wanted = getenv("SOFTCARD_THREAD"), *lingers = getenv("SOFTCARD_LINGER");
    sigset_t    all, before;
    int         status;

    if (wanted != NULL && strcmp(wanted, "0") == 0) {
        return 0;
    }
    sc.linger_ns = lingers != NULL ? strtoul(lingers, NULL, 10) * 1000 : 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status        = pthread_create(&sc.thread, NULL, nic, NULL);
    sc.has_thread = status == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static int join_fabric(void)
{
    for (int attempts = 0; attempts < 100 && sc.place < 0; attempts++) {
        sc.fabric = sc_fabric_open(1);
        if (sc.fabric == NULL) {
            return errno != 0 ? errno : EIO;
        }
        sc.place = sc_fabric_join(sc.fabric, sc.host, &sc.inbox);
        if (sc.place < 0) {
            sc_fabric_close(sc.fabric);
            if (errno != ESTALE) { /* else its last member left just now */
                return errno;
            }
        }
    }
    sc.me    = &sc.fabric->member[sc.place];
    sc.pid   = getpid();
    sc.epoch = sc.fabric->epoch - 1;
    return 0;
}

/* Once for each process, when it opens its first device. */
int sc_nic_start(void)
{
    static pthread_mutex_t once   = PTHREAD_MUTEX_INITIALIZER;
    int                    status = 0;

    pthread_mutex_lock(&once);
    if (sc.place < 0) {
        status = join_fabric();
        if (status == 0) {
            status = start_thread();
        }
    }
    pthread_mutex_unlock(&once);
    errno = status;
    return status;
}

__attribute__((destructor)) static void leave(void)
{
    if (sc.place < 0 || sc.pid != getpid()) {
        return;
    }
    if (sc.has_thread) {
        __atomic_store_n(&sc.stop, 1, __ATOMIC_RELEASE);
        sc_member_ring(sc.me);
        pthread_join(sc.thread, NULL);
        sc.has_thread = 0;
    }
    sc_fabric_leave(sc.fabric, sc.place);
}
