/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What happens on UCX's async thread: datagrams and timers become facts for the
 * core; rail events are in ctl/rail.c. Nothing here blocks, touches a data
 * completion queue, or calls the user, so a peer that computes still answers.
 */

#include "ctl/async.h"

#include "base/now.h"
#include "ctl/beat.h"
#include "ctl/check.h"
#include "ctl/fall.h"
#include "ctl/flush.h"
#include "ctl/msg.h"
#include "ctl/path.h"
#include "ctl/port.h"
#include "ctl/prom.h"
#include "ctl/rail.h"
#include "ctl/stall.h"
#include "ctl/standby.h"
#include "ctl/tcp.h"
#include "ctl/timer.h"
#include "lane/lane.h"
#include "pair/failover.h"
#include "pair/lost.h"
#include "pair/peer.h"
#include "pair/report.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define CHECK_NS     100000000ull /* RTO and address retry resolution */
#define CHECK_MAX_NS 1000000000ull
#define SLICE        64u /* of those that sleep, so many are looked at in each round all the same */

/* A peer that leaves repeats its good-bye until nobody needs it. */
#define GONE_NS 1000000000ull

#define RETRIES 3u /* a way that is looked for in vain so often is looked for rarely */

/* ---- timers -------------------------------------------------------------------- */

static void recycle_ud(struct uct_ha_ctl *ctl)
{
    for (int s = 0; s < ctl->lanes->slots; s++) {
        if (ctl->ud[s] != NULL && !ctl->pairs->down[s] && !ctl->recycle[s].busy && ha_ud_is_dead(ctl->ud[s])) {
            uct_ha_port_recycle_locked(ctl, s);
        }
    }
}

/* Is something about this rail due soon, or to be found out? */
static int rail_is_due(const struct uct_ha_ctl *ctl, const struct uct_ha_peer *peer, int slot)
{
    const struct uct_ha_peer_rail *rail = &peer->rail[slot];

    return rail->bad || rail->ah_busy ||
           (rail->known && rail->way == NULL && rail->ah_fails < RETRIES && !ctl->pairs->down[slot] &&
            ctl->ud[slot] != NULL);
}

/* Has it work that does not wait for the rounds of heartbeats, as an answer that is missing does? */
static int peer_is_due(const struct uct_ha_ctl *ctl, struct uct_ha_peer *peer)
{
    return peer->busy.awake != 0 || ucs_list_is_empty(&peer->conns) || (peer->bye_rx && !peer->lost) ||
           rail_is_due(ctl, peer, 0) || rail_is_due(ctl, peer, 1);
}

/* Returns 1 if it wants to be looked at again soon. It may be gone after that. */
static int check_peer(struct uct_ha_ctl *ctl, struct uct_ha_peer *peer, uint64_t now)
{
    int due;

    ha_damp_calm(&peer->rail[0].damp, now);
    ha_damp_calm(&peer->rail[1].damp, now);
    if (peer->bye_rx && !peer->lost && now > peer->bye_at + GONE_NS) {
        uct_ha_beat_lose_peer_locked(peer); /* who waits for it still, waits in vain */
    }
    due = peer_is_due(ctl, peer);
    if (!due && !peer->rail[0].waiting && !peer->rail[1].waiting) {
        uct_ha_busy_end(&peer->busy);
    }
    uct_ha_path_check(peer, now);
    return due;
}

/* Returns 1 if one of them wants to be looked at again soon. */
static int check_peers(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_pairs *pairs = ctl->pairs;
    struct uct_ha_peer  *peer, *next;
    int                  due = 0;

    ucs_list_for_each_safe (peer, next, &pairs->wakes.busy, busy.link) {
        due |= check_peer(ctl, peer, now);
    }
    for (unsigned i = ucs_min(pairs->by_cookie.count, SLICE); i > 0 && !ucs_list_is_empty(&pairs->peers); i--) {
        peer = ucs_list_head(&pairs->peers, struct uct_ha_peer, list);
        ucs_list_del(&peer->list);
        ucs_list_add_tail(&pairs->peers, &peer->list);
        if (!peer->busy.busy) {
            due |= check_peer(ctl, peer, now);
        }
    }
    return due;
}

static void check_awake(struct uct_ha_ctl *ctl, struct uct_ha_conn *conn, uint64_t now)
{
    uint64_t due;

    if (now - ctl->checked_at > 4 * CHECK_NS || conn->awake.fresh) {
        conn->rto_since   = now; /* we were stopped, and so was our polling; or it has slept */
        conn->rto_seen    = now;
        conn->rto_struck  = 0;
        conn->awake.fresh = 0;
    }
    uct_ha_check_rto_locked(conn, now);
    due = uct_ha_timer_due(conn);
    uct_ha_due_set(&conn->due, due); /* should nobody have said that it has changed */
    uct_ha_awake_looked(&conn->awake, due);
}

/* Those that are awake; and of the others some, should nobody have said that one is not to sleep. */
static void check_conns(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_pairs *pairs = ctl->pairs;
    struct uct_ha_conn  *conn, *next;

    uct_ha_awake_collect(&pairs->wakes);
    ucs_list_for_each_safe (conn, next, &pairs->wakes.awake, awake.link) {
        check_awake(ctl, conn, now);
    }
    for (unsigned i = ucs_min(pairs->table_len, SLICE); i > 0; i--) {
        ctl->looked = ctl->looked + 1 < pairs->table_len ? ctl->looked + 1 : 0;
        conn        = pairs->table[ctl->looked];
        if (conn != NULL && !conn->awake.listed &&
            (uct_ha_timer_due(conn) != UINT64_MAX || uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx))) {
            uct_ha_awake_now(&conn->awake);
        }
    }
}

/* Returns when the next one is. With everybody asleep the rounds of heartbeats see who wakes. */
static uint64_t check_round(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_pairs *pairs = ctl->pairs;
    int                  due;

    recycle_ud(ctl);
    ha_rto_calm(&pairs->rto, now);
    due = check_peers(ctl, now);
    check_conns(ctl, now);
    uct_ha_standby_round_locked(ctl, now);
    ctl->checked_at = now;
    if (ctl->lanes->parked != NULL || uct_ha_lane_owes_leave(ctl->lanes)) {
        uct_ha_wake_progress(&ctl->lanes->wake);
    }
    if (due || !ucs_list_is_empty(&pairs->wakes.awake)) {
        return now + CHECK_NS;
    }
    return now + ucs_max(CHECK_NS, ucs_min(pairs->heartbeat, CHECK_MAX_NS));
}

static void check_conn(struct uct_ha_conn *conn, uint64_t now)
{
    struct ha_event event = {.kind = HA_EV_TIMER};

    for (int s = 0; s < HA_SLOTS; s++) {
        if (conn->road->lane[s] != NULL) {
            uct_ha_check_settle_locked(conn->road->lane[s], now);
            uct_ha_lost_check(conn->road->lane[s], now);
        }
    }
    if (now >= ha_pair_next_timer(&conn->pair)) {
        event.value = (uint32_t)uct_ha_peer_is_alive(conn->peer, now);
        uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
    }
}

/* A check that would come soon after a heartbeat comes with it, and never later than it would have: the thread wakes up
 * once for both. */
static void keep_together(struct uct_ha_ctl *ctl)
{
    uint64_t near = ucs_min(CHECK_NS, ctl->pairs->heartbeat);

    if (ctl->check_at > ctl->heartbeat_at && ctl->check_at < ctl->heartbeat_at + near) {
        ctl->check_at = ctl->heartbeat_at;
    }
}

static void tick(struct uct_ha_ctl *ctl)
{
    struct uct_ha_due *due;
    uint64_t           now = uct_ha_now();

    if (ctl->pairs->heartbeat != 0) {
        uct_ha_stall_forgive_locked(ctl, now); /* before deadlines: nobody could keep them */
    }
    while ((due = uct_ha_due_first(&ctl->pairs->dues)) != NULL && due->when <= now) {
        uct_ha_due_set(due, UINT64_MAX);
        uct_ha_due_touch(due); /* the flush asks when it wants the timer again */
        check_conn(ucs_container_of(due, struct uct_ha_conn, due), now);
    }
    uct_ha_fall_run_locked(ctl, now);
    if (ctl->tcp != NULL) {
        uct_ha_tcp_sweep(ctl->tcp, now);
    }
    if (ctl->pairs->heartbeat != 0 && now >= ctl->heartbeat_at) {
        ctl->heartbeat_at = now + uct_ha_beat_round_locked(ctl, now);
    }
    if (now >= ctl->check_at) {
        ctl->check_at = check_round(ctl, now);
    }
    if (ctl->pairs->heartbeat != 0) {
        keep_together(ctl);
    }
}

static void timer_readable(int id, ucs_event_set_types_t events, void *arg)
{
    struct uct_ha_ctl *ctl = arg;
    uint64_t           expirations;
    ssize_t            got;

    (void)id;
    (void)events;
    pthread_mutex_lock(&ctl->lanes->wake.lock);
    got = read(ctl->timer_fd, &expirations, sizeof(expirations));
    (void)got; /* nothing to read: somebody set it anew meanwhile */
    ctl->timer_at = UINT64_MAX - 1;
    tick(ctl);
    uct_ha_flush_locked(ctl);
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
    uct_ha_report_flush(uct_ha_now(), 0);
    uct_ha_prom_run(uct_ha_now());
    uct_ha_watch_check(uct_ha_now());
}

/* ---- datagrams ------------------------------------------------------------------- */

static void ud_readable(struct uct_ha_ctl *ctl, int slot)
{
    pthread_mutex_lock(&ctl->lanes->wake.lock);
    if (ctl->ud[slot] == NULL) { /* it was let go meanwhile */
    } else if (ctl->recycle[slot].busy) {
        (void)ha_ud_arm(ctl->ud[slot]); /* what comes now is of its old life */
    } else {
        uct_ha_msg_receive_locked(ctl, slot);
        (void)ha_ud_arm(ctl->ud[slot]);
        uct_ha_msg_receive_locked(ctl, slot); /* what came before arming */
        uct_ha_flush_locked(ctl);
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
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

static ucs_status_t handle(int fd, ucs_async_event_cb_t cb, struct uct_ha_ctl *ctl)
{
    return ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd, UCS_EVENT_SET_EVREAD, cb, ctl, NULL);
}

ucs_status_t uct_ha_async_open(struct uct_ha_ctl *ctl)
{
    static const ucs_async_event_cb_t ud_cbs[HA_SLOTS] = {ud0_readable, ud1_readable};
    ucs_status_t                      status;
    int                               fd;

    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        return UCS_ERR_IO_ERROR;
    }
    status = handle(fd, timer_readable, ctl);
    if (status != UCS_OK) {
        close(fd);
        return status;
    }
    ctl->timer_fd = fd;
    for (int s = 0; s < ctl->lanes->slots; s++) {
        ctl->watch[s].owner = ctl->lanes;
        status = uct_ha_watch_add(&ctl->watch[s], ctl->lanes->rail[s], ctl->lanes->rail_no[s], uct_ha_rail_event, ctl,
                                  s);
        if (status != UCS_OK) {
            return status;
        }
        ctl->watched[s] = 1;
        /* After that: a change in between would have told only others. */
        pthread_mutex_lock(&ctl->lanes->wake.lock);
        ctl->lanes->gone[s] = (uint8_t)ha_rail_is_gone(ctl->lanes->rail[s]);
        ctl->lanes->left[s] = ctl->lanes->gone[s];
        ctl->pairs->down[s] = !ha_rail_up(ctl->lanes->rail[s]);
        ctl->addr[s]        = ha_rail_addr(ctl->lanes->rail[s]);
        pthread_mutex_unlock(&ctl->lanes->wake.lock);
        if (ctl->ud[s] != NULL) {
            (void)ha_ud_arm(ctl->ud[s]);
            status = handle(ha_ud_fd(ctl->ud[s]), ud_cbs[s], ctl);
            if (status != UCS_OK) {
                return status;
            }
            pthread_mutex_lock(&ctl->lanes->wake.lock);
            ctl->ud_handled[s] = 1;
            if (ctl->lanes->left[s]) { /* meanwhile; or before, which others were told */
                uct_ha_port_leave_locked(ctl, s);
            }
            pthread_mutex_unlock(&ctl->lanes->wake.lock);
        }
    }
    return UCS_OK;
}

void uct_ha_async_close(struct uct_ha_ctl *ctl)
{
    int fd;

    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->watched[s]) {
            uct_ha_watch_remove(&ctl->watch[s]);
            ctl->watched[s] = 0;
        }
        pthread_mutex_lock(&ctl->lanes->wake.lock);
        fd                 = ctl->ud_handled[s] ? ha_ud_fd(ctl->ud[s]) : -1;
        ctl->ud_handled[s] = 0; /* from here on it is not let go any more */
        pthread_mutex_unlock(&ctl->lanes->wake.lock);
        if (fd >= 0) {
            ucs_async_remove_handler(fd, 1);
        }
    }
    if (ctl->timer_fd >= 0) {
        ucs_async_remove_handler(ctl->timer_fd, 1);
        /* A job that still runs may want to set it: the number could be
         * somebody else's by then. */
        pthread_mutex_lock(&ctl->lanes->wake.lock);
        close(ctl->timer_fd);
        ctl->timer_fd = -1;
        pthread_mutex_unlock(&ctl->lanes->wake.lock);
    }
}
