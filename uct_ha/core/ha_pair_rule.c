/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What follows from the state of an endpoint pair: one table of rules, each a
 * guard and an effect, performed one at a time by ha_pair_run(). The guards
 * are those of docs/failover.md.
 */

#include "ha_pair_rule.h"

#include <string.h>

#include "ha_pair_msg_internal.h"

/* ---- one lane ---- */

/* The peer has stopped its end, or has begun to: it says why from then on. */
static int ha_may_fence_for_peer(const struct ha_pair *pair, int slot, uint64_t now)
{
    const struct ha_lane *lane = &pair->lane[slot];

    (void)now;
    return lane->st < HA_LANE_FENCED && lane->q != HA_QP_ERRING && lane->q != HA_QP_NONE &&
           ha_pair_same_gen(pair, slot) &&
           (pair->view[slot].st >= HA_LANE_FENCED || pair->view[slot].cause != HA_CAUSE_NONE);
}

static void ha_do_fence_for_peer(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    ha_lane_fence(pair, slot, HA_CAUSE_PEER, out);
}

/* A queue pair that waits for its peer while its rail is gone: let it go, so
 * that a fresh one is built when the rail is back. */
static int ha_may_abandon(const struct ha_pair *pair, int slot, uint64_t now)
{
    (void)now;
    return pair->lane[slot].q == HA_QP_INIT && !pair->lane[slot].usable;
}

static void ha_do_abandon(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    ha_lane_fence(pair, slot, HA_CAUSE_PORT, out);
}

/* A peer that has fenced is followed by a rule before this one; said here as well, so that the order
 * of the table is not what safety hangs on. */
static int ha_may_connect(const struct ha_pair *pair, int slot, uint64_t now)
{
    (void)now;
    return pair->lane[slot].q == HA_QP_INIT && ha_pair_same_gen(pair, slot) && pair->view[slot].st <= HA_LANE_READY;
}

static void ha_do_connect(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    pair->lane[slot].q = HA_QP_CONNECTING;
    ha_emit(out, HA_ACT_CONNECT_QP, slot, pair->lane[slot].gen, 0);
}

/* The first epoch may travel together with the own READY. */
static int ha_may_decide(const struct ha_pair *pair, int slot, uint64_t now)
{
    unsigned peer_st = pair->view[slot].st;

    (void)now;
    if (!pair->decider || pair->lane[slot].act != 0 || !ha_lane_works(pair, slot)) {
        return 0;
    }
    if (peer_st != HA_LANE_READY && !(pair->epoch == 0 && peer_st == HA_LANE_CONN)) {
        return 0;
    }
    for (int i = 0; i < HA_SLOTS && pair->epoch != 0; i++) {
        if (pair->lane[i].act == pair->epoch && pair->lane[i].st < HA_LANE_FENCED) {
            return 0;
        }
    }
    return 1;
}

static void ha_do_decide(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    (void)out;
    pair->epoch++;
    pair->lane[slot].act = pair->epoch;
}

/* The peer has fenced a generation which we have not begun and need not begin. */
static int ha_may_skip(const struct ha_pair *pair, int slot, uint64_t now)
{
    const struct ha_lane *lane = &pair->lane[slot];

    (void)now;
    return lane->st == HA_LANE_CLOSED && !(lane->asked & HA_ASKED_CREATE) && pair->view[slot].gen == lane->gen + 1 &&
           pair->view[slot].st >= HA_LANE_FENCED;
}

static void ha_do_skip(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    struct ha_lane *lane   = &pair->lane[slot];
    uint32_t        gen    = lane->gen + 1;
    uint8_t         usable = lane->usable;

    (void)now;
    (void)out;
    memset(lane, 0, sizeof(*lane));
    lane->gen     = gen;
    lane->usable  = usable;
    lane->st      = HA_LANE_FENCED;
    lane->cause   = HA_CAUSE_PEER;
    lane->proof   = HA_PROOF_EMPTY;
    lane->drained = 1;
}

static int ha_may_resolve(const struct ha_pair *pair, int slot, uint64_t now)
{
    const struct ha_lane *lane = &pair->lane[slot];

    (void)now;
    return lane->st == HA_LANE_FENCED && lane->drained && !(lane->asked & HA_ASKED_RESOLVE) &&
           ha_pair_same_gen(pair, slot) && pair->view[slot].st >= HA_LANE_FENCED;
}

static int ha_may_resolve_skipped(const struct ha_pair *pair, int slot, uint64_t now)
{
    return pair->lane[slot].q == HA_QP_NONE && ha_may_resolve(pair, slot, now);
}

static int ha_may_resolve_qp(const struct ha_pair *pair, int slot, uint64_t now)
{
    return pair->lane[slot].q == HA_QP_ERR && ha_may_resolve(pair, slot, now);
}

static void ha_do_resolve_skipped(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    (void)out;
    pair->lane[slot].st = HA_LANE_RESOLVED; /* nothing was posted there: k = 0 */
}

static void ha_do_resolve_qp(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    const struct ha_view *view = &pair->view[slot];

    /* We have counted for the kind that it offered. */
    if (view->offer != HA_PROOF_NONE && view->proof != view->offer && view->proof != HA_PROOF_EMPTY &&
        view->proof != HA_PROOF_NONE) {
        ha_pair_fail(pair, HA_FAIL_PROOF_KIND, now, out);
        return;
    }
    pair->lane[slot].asked |= HA_ASKED_RESOLVE;
    ha_emit(out, HA_ACT_RESOLVE, slot, pair->lane[slot].gen, 0);
}

static int ha_may_close(const struct ha_pair *pair, int slot, uint64_t now)
{
    const struct ha_lane *lane = &pair->lane[slot];

    (void)now;
    return lane->st == HA_LANE_RESOLVED && !(lane->asked & HA_ASKED_CLOSE) && ha_pair_same_gen(pair, slot) &&
           pair->view[slot].st >= HA_LANE_RESOLVED;
}

static int ha_may_close_skipped(const struct ha_pair *pair, int slot, uint64_t now)
{
    return pair->lane[slot].q == HA_QP_NONE && ha_may_close(pair, slot, now);
}

static int ha_may_close_qp(const struct ha_pair *pair, int slot, uint64_t now)
{
    return pair->lane[slot].q == HA_QP_ERR && ha_may_close(pair, slot, now);
}

static void ha_do_close_skipped(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    if (pair->view[slot].k != 0) {
        ha_pair_fail(pair, HA_FAIL_COUNT, now, out);
    } else {
        ha_lane_close(pair, slot, now, out);
    }
}

static void ha_do_close_qp(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    pair->lane[slot].asked |= HA_ASKED_CLOSE;
    ha_emit(out, HA_ACT_CHECK_CLOSE, slot, pair->lane[slot].gen, pair->view[slot].k);
}

/* At the start slot 0 goes first: the standby waits until it can do no harm. */
static int ha_first_is_due(const struct ha_pair *pair, int slot, uint64_t now)
{
    return slot == 0 || pair->lane[slot].gen != 0 || pair->view[slot].gen != 0 || !pair->lane[0].usable ||
           now >= pair->standby_at || (ha_lane_works(pair, 0) && pair->view[0].st == HA_LANE_READY);
}

/* A rail that keeps failing is not worth the trouble while there is another. */
static int ha_is_held(const struct ha_pair *pair, int slot, uint64_t now)
{
    return now < pair->hold_at[slot] && ha_pair_tx_slot(pair) == !slot;
}

static int ha_may_renew(const struct ha_pair *pair, int slot, uint64_t now)
{
    const struct ha_lane *lane        = &pair->lane[slot];
    const struct ha_view *view        = &pair->view[slot];
    int                   peer_closed = view->gen == lane->gen && view->st == HA_LANE_CLOSED;
    int                   peer_builds = view->gen == lane->gen + 1 && view->st < HA_LANE_FENCED;

    return pair->started && slot < pair->slots && lane->st == HA_LANE_CLOSED && lane->usable &&
           !(lane->asked & HA_ASKED_CREATE) && now >= lane->renew_at &&
           (peer_builds || (peer_closed && !ha_is_held(pair, slot, now))) && pair->linger_at == 0 &&
           ha_first_is_due(pair, slot, now);
}

static void ha_do_renew(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    pair->lane[slot].asked |= HA_ASKED_CREATE;
    ha_emit(out, HA_ACT_CREATE_QP, slot, pair->lane[slot].gen + 1, 0);
}

/* Leave a lane that works, because the preferred one has been well for long
 * enough: from here on a failover like any other. */
static int ha_may_fail_back(const struct ha_pair *pair, int slot, uint64_t now)
{
    return slot != HA_PREFERRED_SLOT && pair->failback_at != 0 && now >= pair->failback_at &&
           !((pair->flags | pair->view_flags) & HA_PAIR_CLOSING) && ha_pair_standby(pair) == HA_PREFERRED_SLOT &&
           ha_pair_tx_slot(pair) == slot;
}

static void ha_do_fail_back(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)now;
    ha_lane_fence(pair, slot, HA_CAUSE_FAILBACK, out);
}

/* ---- the pair ---- */

static int ha_lane_is_at_rest(const struct ha_lane *lane)
{
    return lane->q == HA_QP_NONE || (lane->q == HA_QP_ERR && lane->drained);
}

/* Operations are ended only when no queue pair can touch their buffers. */
static int ha_may_tell_failed(const struct ha_pair *pair, int slot, uint64_t now)
{
    return slot == 0 && ha_pair_failed(pair) && !pair->fail_told &&
           ((ha_lane_is_at_rest(&pair->lane[0]) && ha_lane_is_at_rest(&pair->lane[1])) || now >= pair->drain_at);
}

static void ha_do_tell_failed(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)slot;
    (void)now;
    pair->fail_told = 1;
    ha_emit(out, HA_ACT_FAIL, HA_NO_SLOT, 0, pair->fail);
}

static int ha_is_unfinished(unsigned st)
{
    return st == HA_LANE_FENCED || st == HA_LANE_RESOLVED;
}

/* Is a fence under way that we need the peer for, or it us? */
static int ha_pair_is_halfway(const struct ha_pair *pair)
{
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_lane *lane = &pair->lane[slot];
        const struct ha_view *view = &pair->view[slot];

        if (lane->q == HA_QP_ERRING || ha_is_unfinished(lane->st) || ha_is_unfinished(view->st)) {
            return 1;
        }
        if (view->seen_gen != lane->gen || view->seen_st != lane->st) {
            return 1; /* it may wait for just what it has not heard; mostly one of the above as well */
        }
    }
    return 0;
}

/* Both users have let go. Whoever knows that the peer knows it may leave. The
 * other one asks again, is told that nobody is there any more, and leaves as
 * well; the clock is for the case that nobody answers at all. */
static int ha_closing_is_over(const struct ha_pair *pair, uint64_t now)
{
    return (!pair->dirty && !ha_pair_is_halfway(pair)) || now >= pair->linger_at;
}

static int ha_may_be_gone(const struct ha_pair *pair, int slot, uint64_t now)
{
    if (slot != 0 || !(pair->flags & HA_PAIR_CLOSING)) {
        return 0;
    }
    if (ha_pair_failed(pair)) {
        return pair->fail_told && (((pair->view_flags | pair->seen_flags) & HA_PAIR_FAILED) || now >= pair->deadline);
    }
    if (pair->view_flags & HA_PAIR_FAILED) { /* or it has left, which looks the same */
        return 1;
    }
    return (pair->view_flags & HA_PAIR_CLOSING) && ha_closing_is_over(pair, now);
}

static void ha_do_be_gone(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    (void)slot;
    (void)now;
    pair->gone_told = 1;
    ha_emit(out, HA_ACT_GONE, HA_NO_SLOT, 0, 0);
}

/* ---- the table ---- */

#define HA_RULE_EVEN_FAILED 0x1u /* also after the endpoint has failed */

struct ha_rule {
    enum ha_context context;
    unsigned        flags;
    int (*may)(const struct ha_pair *pair, int slot, uint64_t now);
    void (*act)(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out);
};

static const struct ha_rule ha_rules[] = {
    {HA_CTX_ASYNC, 0, ha_may_fence_for_peer, ha_do_fence_for_peer},
    {HA_CTX_ASYNC, 0, ha_may_abandon, ha_do_abandon},
    {HA_CTX_ASYNC, 0, ha_may_connect, ha_do_connect},
    {HA_CTX_ASYNC, 0, ha_may_decide, ha_do_decide},
    {HA_CTX_ASYNC, 0, ha_may_skip, ha_do_skip},
    {HA_CTX_ASYNC, 0, ha_may_resolve_skipped, ha_do_resolve_skipped},
    {HA_CTX_ASYNC, 0, ha_may_close_skipped, ha_do_close_skipped},
    {HA_CTX_PROGRESS, 0, ha_may_resolve_qp, ha_do_resolve_qp},
    {HA_CTX_PROGRESS, 0, ha_may_close_qp, ha_do_close_qp},
    {HA_CTX_PROGRESS, 0, ha_may_renew, ha_do_renew},
    {HA_CTX_PROGRESS, 0, ha_may_fail_back, ha_do_fail_back},
    {HA_CTX_PROGRESS, HA_RULE_EVEN_FAILED, ha_may_tell_failed, ha_do_tell_failed},
    {HA_CTX_PROGRESS, HA_RULE_EVEN_FAILED, ha_may_be_gone, ha_do_be_gone},
};

#define HA_RULES ((int)(sizeof(ha_rules) / sizeof(ha_rules[0])))

static int ha_rule_is_enabled(const struct ha_rule *rule, const struct ha_pair *pair, int slot, uint64_t now)
{
    return (!ha_pair_failed(pair) || (rule->flags & HA_RULE_EVEN_FAILED)) && rule->may(pair, slot, now);
}

int ha_pair_run(struct ha_pair *pair, enum ha_context ctx, uint64_t now, struct ha_action *actions)
{
    struct ha_out    out = {actions, 0};
    struct ha_before before;

    pair->now = now;
    if (!pair->started || pair->gone_told) {
        return -1;
    }
    for (int i = 0; i < HA_RULES; i++) {
        if (ha_rules[i].context == HA_CTX_PROGRESS && ctx == HA_CTX_ASYNC) {
            continue;
        }
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            if (!ha_rule_is_enabled(&ha_rules[i], pair, slot, now)) {
                continue;
            }
            ha_pair_before(pair, &before);
            ha_rules[i].act(pair, slot, now, &out);
            ha_pair_after(pair, &before, 0, now, &out);
            return out.count;
        }
    }
    return -1;
}

int ha_pair_wants_progress(const struct ha_pair *pair, uint64_t now)
{
    if (!pair->started || pair->gone_told) {
        return 0;
    }
    for (int i = 0; i < HA_RULES; i++) {
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            if (ha_rules[i].context == HA_CTX_PROGRESS && ha_rule_is_enabled(&ha_rules[i], pair, slot, now)) {
                return 1;
            }
        }
    }
    return 0;
}

/* ---- timers ---- */

static void ha_earlier(uint64_t *at, uint64_t candidate)
{
    if (candidate < *at) {
        *at = candidate;
    }
}

/* Times that only make a rule of progress possible: once past, it is
 * ha_pair_wants_progress() that tells, not a timer that fires for ever. */
static void ha_earlier_to_come(uint64_t *at, uint64_t candidate, uint64_t now)
{
    if (candidate > now) {
        ha_earlier(at, candidate);
    }
}

uint64_t ha_pair_next_timer(const struct ha_pair *pair)
{
    int      failed = ha_pair_failed(pair);
    uint64_t at     = UINT64_MAX;

    if (!pair->started || pair->gone_told) {
        return at;
    }
    if (pair->dirty) {
        ha_earlier(&at, pair->rtx_at);
    }
    if (failed) {
        ha_earlier_to_come(&at, pair->fail_told ? pair->deadline : pair->drain_at, pair->now);
        return at;
    }
    if (pair->deadline != 0) {
        ha_earlier(&at, pair->deadline);
    }
    if (pair->linger_at != 0) {
        ha_earlier_to_come(&at, pair->linger_at, pair->now);
    }
    if (pair->failback_at != 0) {
        ha_earlier_to_come(&at, pair->failback_at, pair->now);
    }
    for (int slot = 0; slot < pair->slots; slot++) {
        const struct ha_lane *lane = &pair->lane[slot];

        if (lane->st != HA_LANE_CLOSED || !lane->usable || (lane->asked & HA_ASKED_CREATE)) {
            continue;
        }
        ha_earlier_to_come(&at, lane->renew_at, pair->now);
        ha_earlier_to_come(&at, pair->hold_at[slot], pair->now);
        if (slot == 1 && lane->gen == 0) {
            ha_earlier_to_come(&at, pair->standby_at, pair->now);
        }
    }
    return at;
}
