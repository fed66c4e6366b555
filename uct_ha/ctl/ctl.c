/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/ctl.h"

#include "data/amo.h"
#include "pair/failover.h"
#include "lane/fence.h"
#include "base/job.h"
#include "lane/lost.h"
#include "lane/proof.h"
#include "lane/room.h"
#include "data/rx.h"
#include "base/stats.h"
#include "data/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MSEC 1000000ull
#define SEC  1000000000ull

#define GONE_POLLS      64 /* bounded: others may keep the queues busy */
#define ATTENTION_BATCH 64 /* connections served per progress call */

void uct_ha_ctl_attention_locked(struct uct_ha_conn *conn)
{
    struct uct_ha_ctl *ctl = &conn->iface->ctl;

    if (!conn->attention) {
        conn->attention = 1;
        ucs_list_add_tail(&ctl->attention, &conn->attention_link);
    }
    __atomic_store_n(&ctl->pending, 1, __ATOMIC_RELEASE);
}

void uct_ha_ctl_attention(struct uct_ha_conn *conn)
{
    pthread_mutex_lock(&conn->iface->ctl.lock);
    uct_ha_ctl_attention_locked(conn);
    pthread_mutex_unlock(&conn->iface->ctl.lock);
}

/* A user asleep on the event fd does not see `pending`. */
static void wake_user(struct uct_ha_ctl *ctl)
{
    uint64_t one = 1;

    if (__atomic_load_n(&ctl->pending, __ATOMIC_ACQUIRE) &&
        __atomic_exchange_n(&ctl->armed, 0, __ATOMIC_ACQ_REL)) {
        ssize_t written = write(ctl->wake_fd, &one, sizeof(one));

        (void)written; /* a full counter is readable as well */
    }
}

void uct_ha_ctl_event(struct uct_ha_conn *conn, const struct ha_event *event)
{
    pthread_mutex_lock(&conn->iface->ctl.lock);
    uct_ha_ctl_event_locked(conn, event, HA_CTX_PROGRESS);
    uct_ha_ctl_attention_locked(conn);
    uct_ha_ctl_flush_locked(conn->iface);
    pthread_mutex_unlock(&conn->iface->ctl.lock);
}

void uct_ha_ctl_lane_down(struct uct_ha_lane *lane, enum ha_cause cause)
{
    struct uct_ha_conn *conn  = lane->conn;
    struct ha_event     event = { .kind = HA_EV_LANE_DOWN, .slot = lane->slot, .gen = lane->gen,
                                  .cause = (uint8_t)cause };

    pthread_mutex_lock(&conn->iface->ctl.lock);
    uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    if (conn->peer->bye_rx) {
        /* It has left in order: nobody is there to fail over with. */
        event.kind  = HA_EV_PEER_LOST;
        event.value = HA_FAIL_PEER_DEAD;
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    uct_ha_ctl_attention_locked(conn);
    uct_ha_ctl_flush_locked(conn->iface);
    pthread_mutex_unlock(&conn->iface->ctl.lock);
}

void uct_ha_ctl_settle_locked(struct uct_ha_lane *lane, enum ha_context ctx)
{
    struct ha_event event = { .kind = HA_EV_SETTLED, .slot = lane->slot, .gen = lane->gen };

    if (lane->settled || !lane->fenced || !uct_ha_proof_is_ready(lane)) {
        return;
    }
    uct_ha_proof_read(lane, &event);
    if (event.proof == HA_PROOF_NONE) {
        lane->read_fails = UCT_HA_PROOF_TRIES; /* progress will declare it */
        return;
    }
    uct_ha_proof_tell(lane, &event);
    __atomic_store_n(&lane->settled, 1, __ATOMIC_RELAXED); /* progress reads it */
    uct_ha_ctl_event_locked(lane->conn, &event, ctx);
}

/* ---- what progress does for a connection ------------------------------- */

/* The marker is the last send of a fenced lane: when it comes back flushed, all
 * that were posted before it have come back, successes included. One that does not
 * come back in time is given up: lane/lost.h. */
static void drain_lane(struct uct_ha_lane *lane)
{
    struct ha_send  marker = { .op = HA_SEND_IMM };
    struct ha_event event  = { .kind = HA_EV_DRAINED, .slot = lane->slot, .gen = lane->gen };

    if (!lane->fenced || lane->drained || lane->marker) {
        return;
    }
    if (lane->sends > 0 && (uct_ha_lane_may_run(lane) || lane->iface->ctl.gone[lane->slot])) {
        return; /* a queue pair that runs would send the marker to the peer, one that is gone nowhere */
    }
    if (lane->sends == 0) { /* nothing is out, and nothing will be */
        lane->drained = 1;
        uct_ha_ctl_event_locked(lane->conn, &event, HA_CTX_PROGRESS);
        return;
    }
    marker.wr_id = uct_ha_wr_id(UCT_HA_WR_MARKER, lane->id, 0);
    if (ha_rc_post_send(lane->rc, &marker) == 0) {
        lane->marker = 1;
    } else {
        uct_ha_ctl_attention_locked(lane->conn); /* full: poll first */
    }
}

/* Every message that the peer's proof promised us has been delivered: the lane
 * is done. The own proof is read once more; it must not have moved. */
static void close_lane(struct uct_ha_lane *lane)
{
    struct ha_event event = { .kind = HA_EV_DELIVERED, .slot = lane->slot, .gen = lane->gen,
                              .value = lane->rx_done };
    int lost = (lane->flushed || lane->final) && lane->held_head == lane->held_tail;

    if (!lane->closing || (lane->rx_done != lane->close_k && !lost)) {
        return;
    }
    uct_ha_proof_read(lane, &event);
    lane->closing = 0;
    uct_ha_ctl_event_locked(lane->conn, &event, HA_CTX_PROGRESS);
}

/* Nobody holds the connection here and it owes nothing: say so. One that the peer began
 * may be bound yet, unless that has failed meanwhile. */
static void close_unused(struct uct_ha_conn *conn)
{
    struct ha_event event = { .kind = HA_EV_CLOSE };

    if (conn->ep == NULL && !conn->close_told && ha_log_used(&conn->log) == 0 &&
        uct_ha_amo_outstanding(conn) == 0 && (conn->dead || !uct_ha_amo_owes(conn)) &&
        (conn->was_bound || conn->dead || ha_pair_peer_closing(&conn->pair))) {
        conn->close_told = 1;
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
}

static void attend_locked(struct uct_ha_conn *conn)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        if (conn->lane[s] != NULL) {
            drain_lane(conn->lane[s]);
        }
        if (conn->lane[s] != NULL) {
            close_lane(conn->lane[s]);
        }
    }
    if (uct_ha_lost_is_over(conn, uct_ha_now())) {
        conn->todo |= UCT_HA_TODO_DECLARE;
    }
    close_unused(conn);
    uct_ha_ctl_run_locked(conn, HA_CTX_PROGRESS);
    uct_ha_failover_refresh_locked(conn);
}

/* Outside the lock: everything that may call the user. */
static unsigned after(struct uct_ha_conn *conn, unsigned todo)
{
    struct uct_ha_iface *iface = conn->iface;

    if (todo & UCT_HA_TODO_DECLARE) {
        uct_ha_lost_declare(conn);
    }
    if (todo & UCT_HA_TODO_REJECT) {
        uct_ha_tx_rejected(conn);
    }
    if (todo & UCT_HA_TODO_FAIL) {
        uct_ha_tx_fail(conn);
    }
    if (todo & UCT_HA_TODO_REPORT) {
        uct_ha_tx_report(conn);
    }
    uct_ha_rx_resume(conn);
    uct_ha_tx_retire(conn);
    if (!ha_log_no_backlog(&conn->log) || conn->credit_due) {
        uct_ha_tx_backlog(conn);
        uct_ha_tx_resume(conn);
    }
    uct_ha_failover_finish(conn);
    if (todo & UCT_HA_TODO_GONE) {
        /* The peer saw its last messages succeed: they are in the queues. */
        for (int i = 0; i < GONE_POLLS && uct_ha_iface_poll(iface) > 0; i++) {
        }
        pthread_mutex_lock(&iface->ctl.lock);
        if (conn->ep == NULL) {
            uct_ha_conn_destroy(conn);
        }
        pthread_mutex_unlock(&iface->ctl.lock);
    }
    return 1;
}

static void accept_locked(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl   *ctl = &iface->ctl;
    struct uct_ha_accept accept;

    while (ctl->num_accepts > 0) {
        accept = ctl->accepts[0];
        memmove(&ctl->accepts[0], &ctl->accepts[1],
                --ctl->num_accepts * sizeof(ctl->accepts[0]));
        uct_ha_ctl_accept_locked(iface, &accept);
    }
}

static void reap_parked_locked(struct uct_ha_iface *iface, uint64_t now)
{
    struct uct_ha_lane **link, *lane;

    for (link = &iface->ctl.parked; (lane = *link) != NULL;) {
        if (lane->busy || lane->fencing || lane->park_until > now) {
            link = &lane->parked;
        } else {
            *link = lane->parked;
            uct_ha_lane_bury(lane);
        }
    }
}

unsigned uct_ha_ctl_progress(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl  *ctl = &iface->ctl;
    struct uct_ha_conn *conn;
    unsigned            served = 0, todo;

    uct_ha_room_reclaim(iface);

    pthread_mutex_lock(&ctl->lock);
    __atomic_store_n(&ctl->pending, 0, __ATOMIC_RELEASE);
    accept_locked(iface);
    reap_parked_locked(iface, uct_ha_now());
    while (!ucs_list_is_empty(&ctl->attention)) {
        if (served == ATTENTION_BATCH) {
            __atomic_store_n(&ctl->pending, 1, __ATOMIC_RELEASE);
            break;
        }
        conn = ucs_list_head(&ctl->attention, struct uct_ha_conn, attention_link);
        ucs_list_del(&conn->attention_link);
        conn->attention = 0;
        attend_locked(conn);
        todo       = conn->todo;
        conn->todo = 0;
        uct_ha_ctl_flush_locked(iface);
        pthread_mutex_unlock(&ctl->lock);
        served += after(conn, todo);
        pthread_mutex_lock(&ctl->lock);
    }
    uct_ha_ctl_flush_locked(iface);
    pthread_mutex_unlock(&ctl->lock);
    return served;
}

void uct_ha_ctl_flush_locked(struct uct_ha_iface *iface)
{
    uct_ha_ctl_msg_flush_locked(iface);
    uct_ha_ctl_timer_locked(iface);
    wake_user(&iface->ctl);
}

/* ---- life --------------------------------------------------------------- */

static uint64_t nsec(double seconds)
{
    return (uint64_t)(seconds * (double)SEC);
}

static void configure(struct uct_ha_iface *iface)
{
    const struct uct_ha_iface_config *config = &iface->config;
    struct uct_ha_ctl                *ctl    = &iface->ctl;

    ctl->pair_config = (struct ha_pair_config) {
        .connect_timeout = nsec(config->connect_timeout),
        .deadline        = nsec(config->dead_peer),
        .linger          = nsec(config->dead_peer),
        .standby_delay   = SEC, /* when the first rail is silent at the start */
        .cooldown        = 20 * MSEC,
        .drain_timeout   = SEC,
        .rtx_min         = 2 * MSEC,
        .rtx_max         = 64 * MSEC,
        .failback        = config->failback == UCT_HA_FAILBACK_AUTO ? HA_FAILBACK_AUTO :
                                                                      nsec(config->failback),
    };
    ctl->cooldown     = nsec(config->cooldown);
    ctl->cooldown_max = config->cooldown > 0 ? nsec(config->cooldown_max) : 0;
    ctl->heartbeat = nsec(config->heartbeat);
    ctl->dead_peer = nsec(config->dead_peer);
    ctl->silence   = nsec(config->dead_peer) / 2;
    ctl->fresh_ns  = ucs_max(SEC, 3 * ctl->heartbeat);
    ha_rto_init(&ctl->rto, nsec(config->rto), nsec(config->rto_max), uct_ha_now());
}

static void open_tcp(struct uct_ha_iface *iface)
{
    struct ha_rail_addr rails[HA_SLOTS];

    for (int s = 0; s < iface->slots; s++) {
        rails[s] = ha_rail_addr(iface->rail[s]);
    }
    if (iface->config.control != UCT_HA_CONTROL_UD &&
        uct_ha_tcp_open(iface->config.tcp_interface, rails, (unsigned)iface->slots,
                        &iface->ctl.lock, uct_ha_ctl_msg_tcp, iface,
                        &iface->ctl.tcp) != UCS_OK) {
        iface->ctl.tcp = NULL;
    }
}

static ucs_status_t open_ud(struct uct_ha_iface *iface)
{
    unsigned opened = 0;
    int      status = 0, last = 0;

    for (int s = 0; s < iface->slots && iface->config.control != UCT_HA_CONTROL_TCP; s++) {
        status = ha_ud_create(iface->rail[s], iface->config.ctl_queue_len, HA_PACKET_MTU,
                              &iface->ctl.ud[s]);
        if (status == 0) {
            opened++;
        } else {
            last = status;
            iface->ctl.ud[s] = NULL;
            ucs_diag("ha_rc: no control queue pair on %s: %s; its control packets take "
                     "another way", ha_rail_name(iface->rail[s]), strerror(-status));
        }
    }
    if (opened == 0 && iface->ctl.tcp == NULL) {
        ucs_error("ha_rc: nothing can carry control packets: %s on the rails (ulimit -l too "
                  "low?), and no TCP address (UCX_HA_RC_CONTROL, UCX_HA_RC_TCP_INTERFACE=%s)",
                  strerror(-last), iface->config.tcp_interface);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_ha_ctl_open(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl *ctl = &iface->ctl;
    ucs_status_t       status;

    ucs_list_head_init(&ctl->peers);
    ucs_list_head_init(&ctl->conns);
    ucs_list_head_init(&ctl->attention);
    pthread_mutex_init(&ctl->lock, NULL);
    ctl->nonce    = (uint32_t)iface->cookie;
    ctl->timer_at = UINT64_MAX;
    ctl->wake_fd  = -1;
    ctl->timer_fd = -1;
    configure(iface);
    ctl->accepts = calloc(UCT_HA_ACCEPTS_MAX, sizeof(*ctl->accepts));
    ctl->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (ctl->accepts == NULL || ctl->wake_fd < 0) {
        status = UCS_ERR_NO_MEMORY;
    } else {
        open_tcp(iface);
        status = open_ud(iface);
    }
    if (status == UCS_OK) {
        status = uct_ha_ctl_async_open(iface);
    }
    return status;
}

/* A peer still needs us while we owe it answers to its own failover, and while
 * it has not said that it owes us nothing. */
static int all_settled_locked(struct uct_ha_iface *iface, int said_bye)
{
    struct uct_ha_conn *conn;
    struct uct_ha_peer *peer;
    int                 settled = 1;

    ucs_list_for_each(conn, &iface->ctl.conns, list) {
        if (!conn->dead && ha_log_used(&conn->log) > 0) {
            settled = 0;
        }
    }
    if (settled && said_bye) {
        ucs_list_for_each(peer, &iface->ctl.peers, list) {
            if (!peer->bye_rx && !peer->lost && !ucs_list_is_empty(&peer->conns) &&
                !peer->all_dead) {
                settled = 0;
                uct_ha_ctl_msg_bye_locked(peer, 1);
            }
        }
    }
    return settled;
}

static void mark_dead_peers_locked(struct uct_ha_iface *iface)
{
    struct uct_ha_peer *peer;
    struct uct_ha_conn *conn;

    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        peer->all_dead = 1;
        ucs_list_for_each(conn, &peer->conns, peer_link) {
            peer->all_dead &= conn->dead || conn->pair.epoch == 0;
        }
    }
}

void uct_ha_ctl_leave(struct uct_ha_iface *iface)
{
    uint64_t now = uct_ha_now(), deadline = now + 3 * SEC, bye_at = 0;
    int      settled = 0;

    __atomic_store_n(&iface->discard, 1, __ATOMIC_RELAXED);
    while (!settled && now < deadline) {
        uct_ha_iface_progress(&iface->super.super);
        now = uct_ha_now();
        pthread_mutex_lock(&iface->ctl.lock);
        mark_dead_peers_locked(iface);
        settled = all_settled_locked(iface, 0);
        if (settled && now >= bye_at) {
            settled = all_settled_locked(iface, 1);
            bye_at  = now + 5 * MSEC;
        } else {
            settled = 0;
        }
        pthread_mutex_unlock(&iface->ctl.lock);
        if (!settled) {
            usleep(200);
        }
    }
    pthread_mutex_lock(&iface->ctl.lock);
    iface->ctl.leaving = 1;
    pthread_mutex_unlock(&iface->ctl.lock);
}

static void destroy_lane(struct uct_ha_job *job)
{
    uct_ha_lane_destroy(ucs_container_of(job, struct uct_ha_lane, job));
}

void uct_ha_ctl_close(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl  *ctl = &iface->ctl;
    struct uct_ha_conn *conn, *next_conn;
    struct uct_ha_peer *peer, *next_peer;

    uct_ha_ctl_async_close(iface);
    uct_ha_failover_cancel_jobs(iface);

    pthread_mutex_lock(&ctl->lock);
    ucs_list_for_each_safe(conn, next_conn, &ctl->conns, list) {
        uct_ha_conn_destroy(conn);
    }
    pthread_mutex_unlock(&ctl->lock);
    uct_ha_fence_cancel(iface);
    pthread_mutex_lock(&ctl->lock);
    reap_parked_locked(iface, UINT64_MAX);
    pthread_mutex_unlock(&ctl->lock);
    uct_ha_job_cancel(UCT_HA_JOB_DESTROY, iface, destroy_lane);
    pthread_mutex_lock(&ctl->lock);
    ucs_list_for_each_safe(peer, next_peer, &ctl->peers, list) {
        uct_ha_peer_destroy(peer);
    }
    pthread_mutex_unlock(&ctl->lock);

    if (ctl->tcp != NULL) {
        uct_ha_tcp_close(ctl->tcp);
    }
    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->ud[s] != NULL) {
            ha_ud_destroy(ctl->ud[s]);
        }
    }
    if (ctl->wake_fd >= 0) {
        close(ctl->wake_fd);
    }
    free(ctl->accepts);
    free(ctl->table);
    pthread_mutex_destroy(&ctl->lock);
}
