/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/failover.h"

#include "base/now.h"
#include "base/stats.h"
#include "lane/fence.h"
#include "lane/lane.h"
#include "lane/ledger.h"
#include "pair/attention.h"
#include "pair/cold.h"
#include "pair/conn.h"
#include "pair/outage.h"
#include "pair/peer.h"
#include "pair/tell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PARK_NS       2000000000ull
#define EVENTS_MAX    64            /* seen: 3 */
#define FIRST_NS      1000000000ull /* the first standby waits so long for others' first lanes */
#define AGAIN_BURST   64u
#define AGAIN_NS      500000ull /* 2000 a second */
#define PACE_BURST    16
#define PACE_NS       5000000ull /* 200 lanes per second and rail */
#define CONNECT_TRIES 5          /* each may wait a second for the neighbour */

/* One call of the core and all that follows from it. */
struct step {
    struct uct_ha_conn *conn;
    enum ha_context     ctx;
    uint64_t            now;
    unsigned            head, tail;
    struct ha_event     queue[EVENTS_MAX];
};

static void push(struct step *step, struct ha_event event)
{
    if (step->tail - step->head == EVENTS_MAX) {
        ucs_error(
            "ha_rc [HA-511]: endpoint %u: more facts at once than there is room for, one is lost: please report this",
            step->conn->id);
        return;
    }
    step->queue[step->tail++ % EVENTS_MAX] = event;
}

/* ---- connecting a lane: on the job thread ------------------------------- */

struct connect_job {
    struct uct_ha_job    super;
    struct uct_ha_pairs *pairs;
    struct uct_ha_lane  *lane; /* busy: not destroyed before the job is done */
    unsigned             tries;
    struct ha_rc_path    path;
};

static void connect_run(struct uct_ha_job *super)
{
    struct connect_job  *job   = ucs_container_of(super, struct connect_job, super);
    struct uct_ha_pairs *pairs = job->pairs;
    struct uct_ha_lane  *lane  = job->lane;
    struct ha_event      event = {.slot = lane->slot, .gen = lane->gen};
    int                  status;

    status = ha_rc_connect(lane->rc, &job->path);
    pthread_mutex_lock(&pairs->lanes->wake.lock);
    if (status != 0 && lane->road != NULL && !lane->fenced && ++job->tries < CONNECT_TRIES) {
        /* Usually the neighbour did not answer in time: behind the jobs of
         * other rails it may try again, the queue pair is still in INIT. */
        uct_ha_job_post(UCT_HA_JOB_CONNECT, pairs->lanes->rail_no[lane->slot], &job->super);
        pthread_mutex_unlock(&pairs->lanes->wake.lock);
        return;
    }
    lane->busy = 0;
    if (lane->road != NULL && !lane->fenced) {
        event.kind = status == 0 ? HA_EV_QP_CONNECTED : HA_EV_QP_FAILED;
        if (status == 0) {
            lane->connected = 1;
        } else {
            lane->road->conn->connect_error = (int16_t)-status;
            ucs_debug("ha_rc: %s: cannot connect lane %u.%u: %s", ha_rail_name(pairs->lanes->rail[lane->slot]),
                      lane->slot, lane->gen, strerror(-status));
        }
        uct_ha_failover_event_locked(lane->road->conn, &event, HA_CTX_ASYNC);
        pairs->flush(pairs);
    }
    pthread_mutex_unlock(&pairs->lanes->wake.lock);
    free(job);
}

static void drop_job(struct uct_ha_job *super)
{
    free(ucs_container_of(super, struct connect_job, super));
}

void uct_ha_failover_cancel_jobs(struct uct_ha_pairs *pairs)
{
    uct_ha_job_cancel(UCT_HA_JOB_CONNECT, pairs->lanes, drop_job);
    uct_ha_lane_cancel(pairs->lanes);
    pthread_mutex_lock(&pairs->lanes->wake.lock);
    uct_ha_lane_rest(pairs->lanes);
    pthread_mutex_unlock(&pairs->lanes->wake.lock);
}

static void connect_lane(struct step *step, int slot)
{
    struct uct_ha_conn   *conn  = step->conn;
    struct uct_ha_pairs  *pairs = conn->pairs;
    struct uct_ha_lane   *lane  = conn->road->lane[slot];
    const struct ha_view *view  = &conn->pair.view[slot];
    struct connect_job   *job   = calloc(1, sizeof(*job));
    struct ha_lane_opts   opts;
    char                  text[192];

    if (job == NULL || lane == NULL || !conn->peer->opts_known) {
        free(job);
        push(step, (struct ha_event){.kind = HA_EV_QP_FAILED, .slot = slot, .gen = conn->pair.lane[slot].gen});
        return;
    }
    lane->mtu     = ucs_min(conn->pair.lane[slot].mtu, view->mtu);
    lane->log_mtu = ha_pair_ledger(&conn->pair, slot, &lane->mark_addr, &lane->mark_key) ? 0 : lane->mtu;
    /* Counts and marks tell less of what is behind the latest success: there each operation tells. */
    lane->tell_every = view->offer == HA_PROOF_PSN ? pairs->lanes->tell_every : 0;
    if (lane->proof == HA_PROOF_LEDGER) {
        uct_ha_ledger_begin(lane, view->psn);
    }
    ha_opts_agree(&pairs->opts, &conn->peer->opts, slot, &opts);
    ucs_debug("ha_rc: endpoint %u, lane %d.%u on %s: %s", conn->id, slot, lane->gen,
              ha_rail_name(pairs->lanes->rail[slot]), ha_lane_opts_text(&opts, text, sizeof(text)));
    lane->busy       = 1;
    job->super.owner = pairs->lanes;
    job->super.run   = connect_run;
    job->pairs       = pairs;
    job->lane        = lane;
    job->path        = (struct ha_rc_path){
               .remote        = conn->peer->rail[slot].where.addr,
               .qpn           = view->qpn,
               .recv_psn      = view->psn,
               .send_psn      = lane->psn,
               .mtu           = lane->mtu,
               .timeout       = opts.timeout,
               .retry_count   = opts.retry_count,
               .rnr_retry     = opts.rnr_retry,
               .min_rnr_timer = opts.min_rnr_timer,
               .rd_init       = opts.rd_init,
               .rd_resp       = opts.rd_resp,
               .sl            = opts.sl,
               .traffic_class = opts.traffic_class,
    };
    uct_ha_job_post(UCT_HA_JOB_CONNECT, pairs->lanes->rail_no[slot], &job->super);
}

/* ---- the other actions ---------------------------------------------------- */

/* Many connections may begin in the same moment: first a lane for each of them, and their
 * first messages. */
static int is_first_standby_early(const struct step *step, int slot, uint32_t gen)
{
    const struct uct_ha_road *road  = step->conn->road;
    const struct uct_ha_lane *first = road->lane[!slot] != NULL ? road->lane[!slot] : road->next[!slot];

    return gen == 1 && first != NULL && step->now - first->born < FIRST_NS && uct_ha_setup_is_busy(step->now);
}

/* Hundreds of endpoints may want a new standby in the same moment: each costs device
 * commands in progress, which others wait for. Those whose peer has begun are not held
 * up, nor those that have nothing else. */
static int is_too_soon(struct step *step, int slot, uint32_t gen)
{
    struct uct_ha_conn *conn = step->conn;

    if (ha_pair_tx_slot(&conn->pair) != !slot || conn->pair.view[slot].gen == gen) {
        return 0;
    }
    if (!is_first_standby_early(step, slot, gen) &&
        ha_pace_take(&conn->pairs->pace[slot], PACE_BURST, PACE_NS, step->now)) {
        return 0;
    }
    UCT_HA_STATS_ADD(paced, 1);
    return 1;
}

static void create_lane(struct step *step, int slot, uint32_t gen)
{
    struct uct_ha_conn *conn = step->conn;

    if (conn->road->next[slot] != NULL || is_too_soon(step, slot, gen) ||
        uct_ha_lane_begin(conn->road, slot, gen) != 0) {
        push(step, (struct ha_event){.kind = HA_EV_QP_FAILED, .slot = slot, .gen = gen});
    } else {
        conn->pairs->find_way(conn->peer, step->now); /* the rail is needed from here on */
    }
}

static void created(struct step *step, int slot, uint32_t gen)
{
    struct uct_ha_conn       *conn  = step->conn;
    const struct uct_ha_lane *lane  = conn->road->lane[slot];
    struct ha_event           event = {.kind  = HA_EV_QP_CREATED,
                                       .slot  = slot,
                                       .gen   = gen,
                                       .qpn   = ha_rc_qpn(lane->rc),
                                       .psn   = lane->psn,
                                       .proof = lane->proof,
                                       .mtu   = ha_rail_addr(conn->pairs->lanes->rail[slot]).mtu};

    ha_log_lane_start(&conn->tx->log, slot, gen, lane->psn);
    if (event.proof == HA_PROOF_LEDGER) {
        event.ledger_addr = (uintptr_t)conn->road->ledger[slot].word;
        event.ledger_key  = ha_mr_rkey(conn->road->ledger[slot].mr);
    }
    push(step, event);
}

/* What a job has built meanwhile. */
static void take_built(struct step *step)
{
    struct uct_ha_road *road = step->conn->road;
    uint32_t            gen;
    int                 status;

    for (int s = 0; s < HA_SLOTS; s++) {
        if (road->next[s] == NULL) {
            continue;
        }
        gen    = road->next[s]->gen;
        status = uct_ha_lane_complete(road, s);
        if (status == 0) {
            created(step, s, gen);
        } else if (status != -EINPROGRESS) {
            push(step, (struct ha_event){.kind = HA_EV_QP_FAILED, .slot = s, .gen = gen});
        }
    }
}

static void fence_lane(struct step *step, int slot)
{
    struct uct_ha_conn *conn = step->conn;
    struct uct_ha_lane *lane = conn->road->lane[slot];
    struct ha_lane     *ctl  = &conn->pair.lane[slot];
    unsigned            cause;
    uint64_t            hold;

    uct_ha_outage_begin_locked(conn, slot, step->now);
    if (lane == NULL || lane->fenced) {
        return;
    }
    uct_ha_fence_begin_locked(lane);
    cause = ctl->cause == HA_CAUSE_PEER ? conn->pair.view[slot].cause : ctl->cause;
    hold  = uct_ha_peer_rail_failed(conn->peer, slot, cause, lane->born, step->now);
    hold  = uct_ha_cold_hold(conn, slot, hold);
    if (hold > 0) {
        push(step, (struct ha_event){.kind = HA_EV_HOLD, .slot = slot, .wait = hold});
    }
    uct_ha_attention_locked(conn);
}

static void resolve(struct step *step, int slot, uint32_t gen)
{
    struct uct_ha_conn  *conn  = step->conn;
    struct ha_evidence   peer  = ha_pair_evidence(&conn->pair, slot);
    struct ha_event      event = {.kind = HA_EV_RESOLVED, .slot = slot, .gen = gen};
    struct uct_ha_lane  *lane  = conn->road->lane[slot];
    struct ha_resolution res;
    int                  status;

    if (lane != NULL && lane->rejects) {
        lane->rejects      = 0;
        conn->tx->rejected = lane->rejected;
        conn->todo |= UCT_HA_TODO_REJECT;
        uct_ha_txlog_reject(conn->tx, (uint32_t)lane->rejected.wr_id);
    }
    status = ha_log_resolve(&conn->tx->log, slot, gen, &peer, &res);
    if (status == 0) {
        event.value = res.k;
        conn->outage_replayed += res.replayed;
        conn->outage_retired += res.retired;
        UCT_HA_STATS_ADD(replayed, res.replayed);
        UCT_HA_STATS_ADD(retired, res.retired);
        UCT_HA_STATS_ADD(in_doubt, res.unknown);
        if (res.unknown > 0) {
            ucs_warn("ha_rc [HA-121]: endpoint %u: %u operations end with an error: proof by %s cannot tell "
                     "what became of them, or their result is lost",
                     conn->id, res.unknown, ha_proof_name(peer.kind));
            if (uct_ha_txlog_doubt(conn->tx, conn->bound, conn->id)) {
                conn->todo |= UCT_HA_TODO_REJECT;
            }
        }
    } else {
        ucs_error("ha_rc [HA-510]: endpoint %u, lane %d.%u: the peer's proof by %s (word 0x%06x, received "
                  "%u) is impossible; a device that misreports? Try UCX_HA_RC_PROOF=count there",
                  conn->id, slot, gen, ha_proof_name(peer.kind), peer.word, peer.received);
        event.kind  = HA_EV_BAD_PROOF;
        event.value = ha_pair_bad_proof(status);
    }
    push(step, event);
}

static ucs_status_t fail_status(unsigned fail)
{
    switch (fail) {
    case HA_FAIL_DEADLINE:
    case HA_FAIL_PEER_DEAD:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    case HA_FAIL_CONNECT:
    case HA_FAIL_OPTIONS:
    case HA_FAIL_SINGLE:
        return UCS_ERR_UNREACHABLE;
    case HA_FAIL_CANCELED:
        return UCS_ERR_CANCELED;
    case HA_FAIL_PEER_FAILED:
        return UCS_ERR_CONNECTION_RESET;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

static void fail(struct uct_ha_conn *conn, unsigned why)
{
    conn->status = fail_status(why);
    conn->todo |= UCT_HA_TODO_FAIL;
    uct_ha_attention_locked(conn);
    if (conn->bound && why != HA_FAIL_CANCELED && (ha_log_used(&conn->tx->log) > 0 || !conn->peer->bye_rx)) {
        uct_ha_tell_failure(conn, why);
    }
}

/* With thousands of connections that move, answers are late, not lost: to say everything again makes them later. */
static int may_send_again(struct step *step)
{
    if (ha_pace_take(&step->conn->pairs->again, AGAIN_BURST, AGAIN_NS, step->now)) {
        return 1;
    }
    UCT_HA_STATS_ADD(ctl_held, 1);
    return 0;
}

static void apply(struct step *step, const struct ha_action *action)
{
    struct uct_ha_conn *conn = step->conn;
    struct uct_ha_lane *lane = action->slot >= 0 ? conn->road->lane[action->slot] : NULL;

    switch (action->kind) {
    case HA_ACT_CREATE_QP:
        create_lane(step, action->slot, action->gen);
        break;
    case HA_ACT_CONNECT_QP:
        connect_lane(step, action->slot);
        break;
    case HA_ACT_FENCE:
        fence_lane(step, action->slot);
        break;
    case HA_ACT_RESOLVE:
        resolve(step, action->slot, action->gen);
        break;
    case HA_ACT_CHECK_CLOSE:
        if (lane != NULL) {
            lane->closing = 1;
            lane->close_k = action->value;
        } else { /* never built here: nothing was received on it */
            push(step,
                 (struct ha_event){.kind = HA_EV_DELIVERED, .slot = action->slot, .gen = action->gen, .value = 0});
        }
        uct_ha_attention_locked(conn);
        break;
    case HA_ACT_DESTROY_QP:
        if (lane != NULL && lane->gen == action->gen) {
            uct_ha_lane_park(conn->road, action->slot, step->now + PARK_NS);
        }
        break;
    case HA_ACT_SEND:
        if (!action->value || may_send_again(step)) {
            uct_ha_due_send(&conn->due, &conn->peer->due, action->value != 0);
        }
        break;
    case HA_ACT_LANES:
        uct_ha_attention_locked(conn);
        break;
    case HA_ACT_FAIL:
        fail(conn, action->value);
        break;
    case HA_ACT_GONE:
        conn->todo |= UCT_HA_TODO_GONE;
        uct_ha_attention_locked(conn);
        break;
    }
}

static void apply_all(struct step *step, const struct ha_action *actions, int count)
{
    for (int i = 0; i < count; i++) {
        apply(step, &actions[i]);
    }
}

static void trace_event(const struct uct_ha_conn *conn, const struct ha_event *event)
{
    const struct ha_pair *p = &conn->pair;

    if (ucs_unlikely(conn->pairs->config->trace)) {
        ucs_warn("ha_rc [HA-190]: trace: conn %u ev %d slot %d gen %u cause %s | epoch %u flags %x/%x "
                 "lane0 %u %s q%u act %u usable %u view %u %s | lane1 %u %s q%u act %u usable %u view %u %s",
                 conn->id, event->kind, event->slot, event->gen, ha_cause_name(event->cause), p->epoch, p->flags,
                 p->view_flags, p->lane[0].gen, ha_lane_status_name(p->lane[0].st), p->lane[0].q, p->lane[0].act,
                 p->lane[0].usable, p->view[0].gen, ha_lane_status_name(p->view[0].st), p->lane[1].gen,
                 ha_lane_status_name(p->lane[1].st), p->lane[1].q, p->lane[1].act, p->lane[1].usable, p->view[1].gen,
                 ha_lane_status_name(p->view[1].st));
    }
}

/* Suspicion needs a standby, so it came to nothing while there was none. Now there is one, and the rail is silent
 * all the same. */
static int is_suspect_still(struct step *step, int had_spare)
{
    const struct uct_ha_conn *conn  = step->conn;
    int                       slot  = ha_pair_tx_slot(&conn->pair);
    struct ha_event           event = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .cause = HA_CAUSE_HEARTBEAT};

    if (had_spare || !conn->counted_spare || slot == HA_NO_SLOT || !conn->peer->rail[slot].bad ||
        conn->peer->rail[slot].bad_at == 0) { /* 0: for another reason than silence */
        return 0;
    }
    event.gen = conn->pair.lane[slot].gen;
    push(step, event);
    return 1;
}

/* Until nothing more follows. */
static void settle(struct step *step)
{
    int              had_spare = step->conn->counted_spare;
    struct ha_action actions[HA_ACTIONS_MAX];
    struct ha_event  event;
    int              count;

    do {
        while (step->head != step->tail) {
            event = step->queue[step->head++ % EVENTS_MAX];
            count = ha_pair_step(&step->conn->pair, &event, step->now, actions);
            trace_event(step->conn, &event);
            apply_all(step, actions, count);
        }
        count = ha_pair_run(&step->conn->pair, step->ctx, step->now, actions);
        if (count > 0) {
            apply_all(step, actions, count);
        }
    } while (count >= 0 || step->head != step->tail);
    uct_ha_due_touch(&step->conn->due);
    uct_ha_conn_count(step->conn, ha_pair_tx_slot(&step->conn->pair) != HA_NO_SLOT,
                      ha_pair_standby(&step->conn->pair) != HA_NO_SLOT && !ha_pair_failed(&step->conn->pair));
    uct_ha_setup_follow(&step->conn->setup, step->conn->counted_works, ha_pair_failed(&step->conn->pair), step->now);
    if (step->ctx == HA_CTX_ASYNC && ha_pair_wants_progress(&step->conn->pair, step->now)) {
        uct_ha_attention_locked(step->conn);
    }
    if (is_suspect_still(step, had_spare)) {
        settle(step);
    }
}

void uct_ha_failover_event_locked(struct uct_ha_conn *conn, const struct ha_event *event, enum ha_context ctx)
{
    struct step step = {.conn = conn, .ctx = ctx, .now = uct_ha_now()};

    push(&step, *event);
    settle(&step);
}

void uct_ha_failover_run_locked(struct uct_ha_conn *conn, enum ha_context ctx)
{
    struct step step = {.conn = conn, .ctx = ctx, .now = uct_ha_now()};

    if (ctx == HA_CTX_PROGRESS) {
        take_built(&step);
    }
    settle(&step);
}
