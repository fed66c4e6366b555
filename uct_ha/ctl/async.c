/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What happens on UCX's async thread: datagrams and timers become facts for the
 * core; rail events are in ctl/rail.c. Nothing here blocks, touches a data
 * completion queue, or calls the user, so a peer that computes still answers.
 */

#include "ctl/ctl.h"
#include "lane/fence.h"
#include "lane/lost.h"
#include "lane/proof.h"
#include "base/stats.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MSEC 1000000ull

/* Between the two PSN reads that settle a fence without a completion: far
 * longer than a packet that was being executed can take. Progress settles at
 * once by a flushed receive; this is for a process that computes. */
#define SETTLE_NS (10 * MSEC)

/* A peer that leaves repeats its good-bye until nobody needs it. */
#define GONE_NS (1000 * MSEC)

#define CHECK_NS  (100 * MSEC) /* RTO and address retry resolution */

/* ---- timers -------------------------------------------------------------------- */

static int must_fence(const struct uct_ha_lane *lane)
{
    return lane->fenced && !lane->fencing && uct_ha_lane_may_run(lane) && lane->fence_fails < UCT_HA_FENCE_TRIES;
}

static uint64_t settle_due(const struct uct_ha_lane *lane)
{
    if (lane == NULL || !lane->fenced || lane->fencing ||
        (!must_fence(lane) && (lane->settled || !uct_ha_proof_is_ready(lane)))) {
        return UINT64_MAX;
    }
    return (lane->read_at != 0 ? lane->read_at : lane->fence_at) + SETTLE_NS;
}

/* Two equal reads, apart: no packet is being executed any more. One that the
 * device refuses counts for nothing; after too many it is not asked again. */
static void check_settle(struct uct_ha_lane *lane, uint64_t now)
{
    uint32_t psn;
    int      ready, status;

    if (now < settle_due(lane)) {
        return;
    }
    if (must_fence(lane)) {
        uct_ha_fence_begin_locked(lane);
        return;
    }
    ready = !lane->connected;
    if (!ready) {
        status            = ha_rc_final_psn(lane->rc, &psn);
        ready             = status == 0 && lane->reads > 0 && psn == lane->last_read;
        lane->read_fails  = (uint8_t)(lane->read_fails + (status != 0));
        lane->reads       = status == 0;
        lane->last_read   = psn;
        lane->read_at     = now;
    }
    if (ready) {
        uct_ha_ctl_settle_locked(lane, HA_CTX_ASYNC);
    }
}

/* A long operation is no progress until its end. Slower than this no rail is. */
#define SLOWEST_BYTES_PER_MS 32768u

static uint64_t rto_of(const struct uct_ha_conn *conn)
{
    uint32_t bytes = __atomic_load_n(&conn->tx_long, __ATOMIC_RELAXED);

    return conn->iface->ctl.rto.value + bytes / SLOWEST_BYTES_PER_MS * MSEC;
}

/* No progress although the owner polls and work is out: suspect the lane. A
 * process that does not poll cannot see completions and says nothing. */
static void check_rto(struct uct_ha_conn *conn, uint64_t now)
{
    uint32_t head  = __atomic_load_n(&conn->log.head, __ATOMIC_RELAXED);
    uint32_t tail  = __atomic_load_n(&conn->log.tail, __ATOMIC_RELAXED);
    uint32_t polls = __atomic_load_n(&conn->iface->polls, __ATOMIC_RELAXED);
    int      slot  = ha_pair_tx_slot(&conn->pair);
    uint64_t lane  = slot == HA_NO_SLOT ? 0 : (uint64_t)conn->pair.lane[slot].gen << 1 | (unsigned)slot;
    struct ha_event event = { .kind = HA_EV_LANE_SUSPECT, .slot = slot,
                              .cause = HA_CAUSE_RTO };

    if (head == tail) {
        __atomic_store_n(&conn->tx_long, 0, __ATOMIC_RELAXED);
    }
    if (head == tail || head != conn->rto_done || slot == HA_NO_SLOT || lane != conn->rto_lane) {
        conn->rto_since  = now;
        conn->rto_struck = 0;
    } else if (polls == conn->rto_polls) {
        conn->rto_since += now - conn->rto_seen; /* the owner does not look: the clock rests */
    } else if (now - conn->rto_since > rto_of(conn) && !conn->rto_struck) {
        conn->rto_struck = 1; /* one more round of polling may still find it */
    } else if (conn->rto_struck) {
        event.gen = conn->pair.lane[slot].gen;
        if (now - conn->rto_since > 2 * rto_of(conn) &&
            uct_ha_peer_rail_answers(conn->peer, slot, now)) {
            /* No other lane, but this rail is well and only the queue pair is
             * stuck: a new one on the same rail is better than waiting. */
            event.kind = HA_EV_LANE_DOWN;
        }
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    }
    conn->rto_lane  = lane;
    conn->rto_done  = head;
    conn->rto_polls = polls;
    conn->rto_seen  = now;
}

static void recycle_ud(struct uct_ha_iface *iface)
{
    for (int s = 0; s < iface->slots; s++) {
        if (iface->ctl.ud[s] != NULL && ha_ud_is_dead(iface->ctl.ud[s]) &&
            !iface->ctl.down[s] && ha_ud_recycle(iface->ctl.ud[s]) == 0) {
            (void)ha_ud_arm(iface->ctl.ud[s]);
        }
    }
}

static void suspect_rail(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_LANE_SUSPECT, .slot = slot,
                                  .cause = HA_CAUSE_HEARTBEAT };

    peer->rail[slot].bad    = 1;
    peer->rail[slot].bad_at = uct_ha_now();
    ucs_list_for_each(conn, &peer->conns, peer_link) {
        event.gen = conn->pair.lane[slot].gen;
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    }
    uct_ha_ctl_usable_locked(peer);
}

/* It answers, so it may go on as the standby; and while it is slow, work does
 * not go back to it. */
static void leave_slow_rail(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct ha_event     hold    = { .kind = HA_EV_HOLD, .slot = slot,
                                    .wait = ha_damp_hold(&peer->rail[slot].damp) };
    struct ha_event     suspect = { .kind = HA_EV_LANE_SUSPECT, .slot = slot,
                                    .cause = HA_CAUSE_SLOW };

    ucs_list_for_each(conn, &peer->conns, peer_link) {
        uct_ha_ctl_event_locked(conn, &hold, HA_CTX_ASYNC);
        if (ha_pair_tx_slot(&conn->pair) == slot) {
            suspect.gen = conn->pair.lane[slot].gen;
            uct_ha_ctl_event_locked(conn, &suspect, HA_CTX_ASYNC);
        }
    }
}

void uct_ha_ctl_lose_peer_locked(struct uct_ha_peer *peer)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_PEER_LOST, .value = HA_FAIL_PEER_DEAD };

    peer->lost = 1;
    ucs_list_for_each(conn, &peer->conns, peer_link) {
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    }
}

/* This process was stopped or starved: what it did not hear meanwhile says
 * nothing about its peers. Only that time is forgiven: pauses may be many, and a dead
 * peer is to be noticed all the same. */
static void forgive_silence(struct uct_ha_iface *iface, uint64_t now)
{
    uint64_t            pause = now - iface->ctl.round_at;
    struct uct_ha_peer *peer;

    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        peer->last_rx = ucs_min(peer->last_rx + pause, now);
        for (int s = 0; s < HA_SLOTS; s++) {
            peer->rail[s].waiting = 0;
            peer->rail[s].missed  = 0;
            peer->rail[s].beat.since = 0;
            if (now - iface->ctl.round_at > iface->ctl.fresh_ns) {
                peer->rail[s].fresh_at = 0; /* short pauses may be many: those do not count */
            }
        }
    }
}

static void heartbeat_round(struct uct_ha_iface *iface, uint64_t now)
{
    struct uct_ha_peer *peer;
    int                 suspect;

    if (now - iface->ctl.round_at > 4 * iface->ctl.heartbeat) {
        forgive_silence(iface, now);
    }
    iface->ctl.round_at = now;

    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        if (peer->bye_rx || peer->lost || ucs_list_is_empty(&peer->conns)) {
            continue;
        }
        if (uct_ha_peer_heartbeat(peer, now, &suspect)) {
            uct_ha_ctl_lose_peer_locked(peer);
        } else if (suspect != HA_NO_SLOT && !peer->rail[suspect].bad) {
            suspect_rail(peer, suspect);
        }
        for (int s = 0; s < HA_SLOTS; s++) {
            if (ha_slow_is_worse(&peer->rail[s].slow, &peer->rail[!s].slow)) {
                leave_slow_rail(peer, s);
            }
        }
    }
}

static void check_round(struct uct_ha_iface *iface, uint64_t now)
{
    struct uct_ha_peer *peer, *next;
    struct uct_ha_conn *conn;

    recycle_ud(iface);
    ha_rto_calm(&iface->ctl.rto, now);
    ucs_list_for_each_safe(peer, next, &iface->ctl.peers, list) {
        ha_damp_calm(&peer->rail[0].damp, now);
        ha_damp_calm(&peer->rail[1].damp, now);
        if (peer->bye_rx && !peer->lost && now > peer->bye_at + GONE_NS) {
            uct_ha_ctl_lose_peer_locked(peer); /* who waits for it still, waits in vain */
        }
        uct_ha_peer_check(peer, now);
    }
    ucs_list_for_each(conn, &iface->ctl.conns, list) {
        if (now - iface->ctl.checked_at > 4 * CHECK_NS) {
            conn->rto_since  = now; /* we were stopped, and so was our polling */
            conn->rto_seen   = now;
            conn->rto_struck = 0;
        }
        check_rto(conn, now);
    }
    iface->ctl.checked_at = now;
    if (iface->ctl.parked != NULL) {
        __atomic_store_n(&iface->ctl.pending, 1, __ATOMIC_RELEASE);
    }
}

static void tick(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl  *ctl = &iface->ctl;
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_TIMER };
    uint64_t            now   = uct_ha_now();

    ucs_list_for_each(conn, &ctl->conns, list) {
        for (int s = 0; s < HA_SLOTS; s++) {
            if (conn->lane[s] != NULL) {
                check_settle(conn->lane[s], now);
                uct_ha_lost_check(conn->lane[s], now);
            }
        }
        if (now >= ha_pair_next_timer(&conn->pair)) {
            event.value = (uint32_t)uct_ha_peer_is_alive(conn->peer, now);
            uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
        }
    }
    if (ctl->heartbeat != 0 && now >= ctl->heartbeat_at) {
        ctl->heartbeat_at = now + ctl->heartbeat;
        heartbeat_round(iface, now);
    }
    if (now >= ctl->check_at) {
        ctl->check_at = now + CHECK_NS;
        check_round(iface, now);
    }
}

static uint64_t next_due(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl  *ctl = &iface->ctl;
    struct uct_ha_conn *conn;
    uint64_t            due = UINT64_MAX;

    if (ucs_list_is_empty(&ctl->peers)) {
        return due; /* nobody to watch */
    }
    due = ctl->check_at;
    if (ctl->heartbeat != 0) {
        due = ucs_min(due, ctl->heartbeat_at);
    }
    ucs_list_for_each(conn, &ctl->conns, list) {
        due = ucs_min(due, ha_pair_next_timer(&conn->pair));
        for (int s = 0; s < HA_SLOTS; s++) {
            due = ucs_min(due, settle_due(conn->lane[s]));
            due = ucs_min(due, uct_ha_lost_due(conn->lane[s]));
        }
    }
    return due;
}

void uct_ha_ctl_timer_locked(struct uct_ha_iface *iface)
{
    uint64_t          due  = next_due(iface);
    struct itimerspec spec = { .it_interval = { 0, 0 } };

    if (due == iface->ctl.timer_at || iface->ctl.timer_fd < 0) {
        return;
    }
    iface->ctl.timer_at = due;
    if (due != UINT64_MAX) {
        due = due == 0 ? 1 : due; /* 0 would disarm */
        spec.it_value.tv_sec  = (time_t)(due / 1000000000ull);
        spec.it_value.tv_nsec = (long)(due % 1000000000ull);
    }
    (void)timerfd_settime(iface->ctl.timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void timer_readable(int id, ucs_event_set_types_t events, void *arg)
{
    struct uct_ha_iface *iface = arg;
    uint64_t             expirations;
    ssize_t              got;

    (void)id;
    (void)events;
    pthread_mutex_lock(&iface->ctl.lock);
    got = read(iface->ctl.timer_fd, &expirations, sizeof(expirations));
    (void)got; /* nothing to read: somebody set it anew meanwhile */
    iface->ctl.timer_at = UINT64_MAX - 1;
    tick(iface);
    uct_ha_ctl_flush_locked(iface);
    pthread_mutex_unlock(&iface->ctl.lock);
}

/* ---- datagrams ------------------------------------------------------------------- */

static void ud_readable(struct uct_ha_iface *iface, int slot)
{
    pthread_mutex_lock(&iface->ctl.lock);
    uct_ha_ctl_msg_receive_locked(iface, slot);
    (void)ha_ud_arm(iface->ctl.ud[slot]);
    uct_ha_ctl_msg_receive_locked(iface, slot); /* what came before arming */
    uct_ha_ctl_flush_locked(iface);
    pthread_mutex_unlock(&iface->ctl.lock);
}

static void ud0_readable(int id, ucs_event_set_types_t events, void *arg)
{
    (void)id;
    (void)events;
    ud_readable(arg, 0);
}

static void ud1_readable(int id, ucs_event_set_types_t events, void *arg)
{
    (void)id;
    (void)events;
    ud_readable(arg, 1);
}

/* ---- life ------------------------------------------------------------------------- */

static ucs_status_t handle(int fd, ucs_async_event_cb_t cb, struct uct_ha_iface *iface)
{
    return ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd, UCS_EVENT_SET_EVREAD,
                                       cb, iface, NULL);
}

ucs_status_t uct_ha_ctl_async_open(struct uct_ha_iface *iface)
{
    static const ucs_async_event_cb_t ud_cbs[HA_SLOTS] = { ud0_readable, ud1_readable };
    struct uct_ha_ctl *ctl = &iface->ctl;
    ucs_status_t       status;
    int                fd;

    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        return UCS_ERR_IO_ERROR;
    }
    status = handle(fd, timer_readable, iface);
    if (status != UCS_OK) {
        close(fd);
        return status;
    }
    ctl->timer_fd = fd;
    for (int s = 0; s < iface->slots; s++) {
        status = uct_ha_watch_add(&ctl->watch[s], iface->rail[s], uct_ha_ctl_rail_event, iface, s);
        if (status != UCS_OK) {
            return status;
        }
        ctl->watched[s] = 1;
        /* After that: a change in between would have told only others. */
        pthread_mutex_lock(&ctl->lock);
        ctl->gone[s] = (uint8_t)ha_rail_is_gone(iface->rail[s]);
        ctl->down[s] = !ha_rail_up(iface->rail[s]);
        ctl->addr[s] = ha_rail_addr(iface->rail[s]);
        pthread_mutex_unlock(&ctl->lock);
        if (ctl->ud[s] != NULL) {
            (void)ha_ud_arm(ctl->ud[s]);
            status = handle(ha_ud_fd(ctl->ud[s]), ud_cbs[s], iface);
            if (status != UCS_OK) {
                return status;
            }
            ctl->ud_handled[s] = 1;
        }
    }
    return UCS_OK;
}

void uct_ha_ctl_async_close(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl *ctl = &iface->ctl;

    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->watched[s]) {
            uct_ha_watch_remove(&ctl->watch[s]);
            ctl->watched[s] = 0;
        }
        if (ctl->ud_handled[s]) {
            ucs_async_remove_handler(ha_ud_fd(ctl->ud[s]), 1);
            ctl->ud_handled[s] = 0;
        }
    }
    if (ctl->timer_fd >= 0) {
        ucs_async_remove_handler(ctl->timer_fd, 1);
        /* A job that still runs may want to set it: the number could be
         * somebody else's by then. */
        pthread_mutex_lock(&ctl->lock);
        close(ctl->timer_fd);
        ctl->timer_fd = -1;
        pthread_mutex_unlock(&ctl->lock);
    }
}
