/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A state as bytes. One walk over everything that matters serves both
 * directions, and the search continues from what was unpacked: a field that is
 * missing here is missing in the world, never hidden in it. Numbers are four
 * bits; one that does not fit is reported.
 *
 * Left out: times (one constant, armed or not), which cause, counters of tries,
 * constants of a slot, and what no queue pair refers to any more.
 */

#include <string.h>

#include "model.h"

struct stream {
    int      writing; /* constant in each of the two inlined copies of the walk */
    uint8_t *bytes;
    uint64_t word;
    unsigned at;
    uint32_t too_big;
};

#define WALK static inline __attribute__((always_inline))

WALK uint32_t number(struct stream *s, uint32_t value)
{
    unsigned shift = s->at % 16 * 4;

    if (s->writing) {
        s->too_big |= value & ~15u;
        s->word |= (uint64_t)(value & 15) << shift;
        if (shift == 60) {
            memcpy(s->bytes + s->at / 16 * 8, &s->word, 8);
            s->word = 0;
        }
    } else {
        if (shift == 0) {
            memcpy(&s->word, s->bytes + s->at / 16 * 8, 8);
        }
        value = s->word >> shift & 15;
    }
    s->at++;
    return value;
}

#define NUMBER(s, field) ((field) = (__typeof__(field))number((s), (uint32_t)(field)))

WALK uint32_t flags4(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return (a & 1) | (b & 1) << 1 | (c & 1) << 2 | (d & 1) << 3;
}

/* ---- the core ---- */

WALK void walk_lane(struct stream *s, struct ha_lane *lane, int slot)
{
    uint32_t flags;

    NUMBER(s, lane->gen);
    NUMBER(s, lane->act);
    NUMBER(s, lane->rxpsn);
    NUMBER(s, lane->k);
    NUMBER(s, lane->st);
    NUMBER(s, lane->q);
    NUMBER(s, lane->proof);
    NUMBER(s, lane->asked);
    flags = number(s, flags4(lane->usable, lane->drained, lane->qpn != 0, lane->cause != HA_CAUSE_NONE));
    if (model_counts()) {
        NUMBER(s, lane->received);
    }
    if (s->writing) {
        return;
    }
    lane->cause    = flags & 8 ? HA_CAUSE_FLUSH : HA_CAUSE_NONE;
    lane->usable   = flags & 1;
    lane->drained  = flags >> 1 & 1;
    lane->renew_at = MODEL_NOW;
    if (flags & 4) {
        lane->qpn = lane->gen * 2 + (uint32_t)slot;
        lane->psn = model_psn(slot);
        lane->mtu = model_mtu(slot);
    }
}

WALK void walk_view(struct stream *s, struct ha_view *view, int slot)
{
    uint32_t built, built2;

    NUMBER(s, view->gen);
    NUMBER(s, view->act);
    NUMBER(s, view->rxpsn);
    NUMBER(s, view->k);
    NUMBER(s, view->st);
    NUMBER(s, view->seen_gen);
    NUMBER(s, view->seen_st);
    built       = number(s, flags4(view->proof, view->proof >> 1, view->qpn != 0, view->cause != HA_CAUSE_NONE));
    view->proof = (uint8_t)(s->writing ? view->proof : built & 3);
    view->cause = built & 8 ? HA_CAUSE_FLUSH : HA_CAUSE_NONE;
    if (model_counts()) {
        NUMBER(s, view->received);
    }
    if (model_options.proof) {
        built2      = number(s, flags4(view->proof >> 2, view->offer != HA_PROOF_NONE, 0, 0));
        view->proof = (uint8_t)(view->proof | (built2 & 1) << 2);
        view->offer = built2 & 2 ? model_options.proof : HA_PROOF_NONE;
    }
    if (!s->writing && (built & 4)) {
        view->qpn = view->gen * 2 + (uint32_t)slot;
        view->psn = model_psn(slot);
        view->mtu = model_mtu(slot);
    }
}

WALK void walk_pair(struct stream *s, struct ha_pair *pair)
{
    uint32_t flags;

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        walk_lane(s, &pair->lane[slot], slot);
        walk_view(s, &pair->view[slot], slot);
    }
    NUMBER(s, pair->epoch);
    NUMBER(s, pair->seen_epoch);
    NUMBER(s, pair->flags);
    NUMBER(s, pair->view_flags);
    NUMBER(s, pair->seen_flags);
    NUMBER(s, pair->fail);
    flags           = number(s, flags4(pair->fail_told, pair->dirty, pair->started, pair->gone_told));
    pair->fail_told = flags & 1;
    pair->dirty     = flags >> 1 & 1;
    pair->started   = flags >> 2 & 1;
    pair->gone_told = flags >> 3 & 1;
    flags = number(s, flags4(pair->deadline != 0, pair->linger_at != 0, pair->drain_at != 0, pair->failback_at != 0));
    if (s->writing) {
        return;
    }
    pair->now         = MODEL_NOW;
    pair->rtx_at      = MODEL_NOW + 1;
    pair->deadline    = flags & 1 ? MODEL_NOW + MODEL_LATER : 0;
    pair->linger_at   = flags & 2 ? MODEL_NOW + MODEL_LATER : 0;
    pair->drain_at    = flags & 4 ? MODEL_NOW + MODEL_LATER : 0;
    pair->failback_at = flags & 8 ? MODEL_NOW + MODEL_SOON : 0;
}

/* Returns with the entry as the core may look at it: where it was posted is of
 * interest only while it is POSTED. */
WALK void walk_op(struct stream *s, struct ha_op *op, int x, unsigned i)
{
    static const uint8_t kinds[128] = {['S'] = HA_OP_SEND, ['W'] = HA_OP_WRITE, ['F'] = HA_OP_WRITE,
                                       ['R'] = HA_OP_READ, ['A'] = HA_OP_FETCH, ['T'] = HA_OP_TAIL};

    NUMBER(s, op->state);
    if (op->state == HA_OP_DONE) {
        NUMBER(s, op->result);
    }
    if (op->state == HA_OP_POSTED) {
        NUMBER(s, op->slot);
        NUMBER(s, op->gen);
        NUMBER(s, op->psn_first);
    }
    if (model_is_quiet(x, i)) {
        op->posts = (uint8_t)number(s, op->posts > 0);
    }
    if (s->writing) {
        return;
    }
    op->kind   = kinds[(unsigned char)model_kind(x, i)];
    op->flags  = model_kind(x, i) == 'F' ? HA_OP_FLAG_FENCE : model_is_quiet(x, i) ? HA_OP_FLAG_QUIET : 0;
    op->length = model_packets(x, i) == 2 ? 2u * model_mtu(0) : 8;
    if (model_proof() == HA_PROOF_COUNT && op->kind == HA_OP_WRITE) {
        op->flags |= HA_OP_FLAG_RECEIVE;
    }
    op->npsn = model_npsn(op);
}

/* Wherever it begins, what has left the log does not matter, nor does the lane of none. */
WALK void walk_run(struct stream *s, struct ha_log *log)
{
    if (s->writing && ha_log_is_clean(log)) {
        log->run = log->head;
    }
    if (s->writing && log->run == log->tail) {
        log->run_slot = 0;
    }
    NUMBER(s, log->run);
    NUMBER(s, log->run_slot);
}

WALK void walk_log(struct stream *s, struct model_side *side, int x)
{
    struct ha_log *log = &side->log;

    NUMBER(s, log->head);
    NUMBER(s, log->post);
    NUMBER(s, log->tail);
    if (s->writing && log->read - log->head - 1u >= log->post - log->head) {
        log->read = 0; /* an older one says as little */
    }
    if (model_ops_of_kind(x, 'F')) {
        NUMBER(s, log->read);
    }
    walk_run(s, log);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        struct ha_log_lane *lane = &log->lane[slot];
        struct ha_log_acks *acks = &log->acks[slot];

        NUMBER(s, lane->gen);
        if (side->qp[slot].state == MODEL_QP_NONE) {
            continue; /* nothing is posted there */
        }
        NUMBER(s, acks->una);
        NUMBER(s, lane->nxt);
        NUMBER(s, lane->takes);
        NUMBER(s, acks->first);
        NUMBER(s, acks->acked);
        if (model_has_quiet(x)) {
            NUMBER(s, lane->silent);
        }
    }
    for (unsigned i = 0; i < model_num_ops(x); i++) {
        walk_op(s, &side->log_ops[i], x, i);
    }
}

/* ---- around it ---- */

WALK void walk_qp(struct stream *s, struct model_qp *qp, int x)
{
    uint32_t flags;

    NUMBER(s, qp->state);
    NUMBER(s, qp->gen);
    if (qp->state == MODEL_QP_NONE) {
        return;
    }
    NUMBER(s, qp->num_ops);
    for (unsigned i = 0; i < qp->num_ops; i++) {
        NUMBER(s, qp->op[i]);
    }
    NUMBER(s, qp->acked);
    NUMBER(s, qp->polled);
    if (model_has_quiet(x)) {
        NUMBER(s, qp->silent);
    }
    NUMBER(s, qp->rx);
    NUMBER(s, qp->rx_ops);
    if (model_proof() == HA_PROOF_LEDGER) {
        NUMBER(s, qp->marks);
    }
    NUMBER(s, qp->num_msg);
    for (unsigned i = 0; i < qp->num_msg; i++) {
        NUMBER(s, qp->msg[i]);
    }
    NUMBER(s, qp->visible);
    NUMBER(s, qp->delivered);
    flags              = number(s, flags4(qp->job, qp->fence_asked, qp->settled_told, qp->drained_told));
    qp->job            = flags & 1;
    qp->fence_asked    = flags >> 1 & 1;
    qp->settled_told   = flags >> 2 & 1;
    qp->drained_told   = flags >> 3 & 1;
    flags              = number(s, flags4(qp->resolve_untold, qp->close_asked, qp->gone, qp->final));
    qp->resolve_untold = flags & 1;
    qp->close_asked    = flags >> 1 & 1;
    qp->gone           = flags >> 2 & 1;
    qp->final          = flags >> 3 & 1;
    if (model_options.cards) {
        NUMBER(s, qp->mute);
    }
    if (qp->resolve_untold) {
        NUMBER(s, qp->resolved_k);
    }
    if (qp->close_asked) {
        NUMBER(s, qp->close_k);
    }
}

WALK void walk_side(struct stream *s, struct model_side *side, int x)
{
    uint32_t flags;

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        walk_qp(s, &side->qp[slot], x);
    }
    walk_pair(s, &side->pair);
    walk_log(s, side, x);
    NUMBER(s, side->executed);
    NUMBER(s, side->has_data);
    NUMBER(s, side->ended);
    NUMBER(s, side->delivered);
    if (model_counts()) {
        NUMBER(s, side->doubt);
    }
    NUMBER(s, side->failed);
    flags             = number(s, flags4(side->send_wanted, side->closed, side->gone, 0));
    side->send_wanted = flags & 1;
    side->closed      = flags >> 1 & 1;
    side->gone        = flags >> 2 & 1;
}

WALK void walk_record(struct stream *s, struct ha_record *record)
{
    uint32_t flags;

    NUMBER(s, record->epoch);
    NUMBER(s, record->seen_epoch);
    NUMBER(s, record->flags);
    NUMBER(s, record->seen_flags);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        struct ha_record_lane *lane = &record->lane[slot];

        NUMBER(s, lane->gen);
        NUMBER(s, lane->act);
        NUMBER(s, lane->rxpsn);
        NUMBER(s, lane->k);
        NUMBER(s, lane->st);
        NUMBER(s, lane->seen_gen);
        NUMBER(s, lane->seen_st);
        flags       = number(s, flags4(lane->proof, lane->proof >> 1, lane->qpn != 0, lane->cause != HA_CAUSE_NONE));
        lane->proof = (uint8_t)(s->writing ? lane->proof : flags & 3);
        lane->cause = flags & 8 ? HA_CAUSE_FLUSH : HA_CAUSE_NONE;
        if (model_options.proof) {
            lane->proof = (uint8_t)(lane->proof | number(s, lane->proof >> 2) << 2);
        }
        if (model_counts()) {
            NUMBER(s, lane->received);
        }
        if (!s->writing && (flags & 4)) {
            lane->qpn = lane->gen * 2 + (uint32_t)slot;
            lane->psn = model_psn(slot);
            lane->mtu = model_mtu(slot);
        }
    }
}

WALK void walk(struct stream *s, struct model_world *w)
{
    for (int x = 0; x < 2; x++) {
        walk_side(s, &w->side[x], x);
        NUMBER(s, w->net_used[x]);
        NUMBER(s, w->net_heard[x]);
        for (int i = 0; i < w->net_used[x]; i++) {
            walk_record(s, &w->net[x][i]);
        }
        NUMBER(s, w->dead[x]); /* as many rails as sides */
    }
    NUMBER(s, w->cuts);
    NUMBER(s, w->alarms);
    NUMBER(s, w->suspicions);
    NUMBER(s, w->giveups);
    if (model_options.cards) {
        NUMBER(s, w->cards);
    }
}

/* What would make the core send again at any time need not be remembered; the
 * order of packets on the way means nothing. */
static void normalise(struct model_world *w)
{
    for (int x = 0; x < 2; x++) {
        struct model_side *side = &w->side[x];
        struct ha_record   swap;

        if (side->send_wanted && model_side_would_resend(side)) {
            side->send_wanted = 0;
        }
        if (w->net_used[x] == 2 && memcmp(&w->net[x][0], &w->net[x][1], sizeof(swap)) > 0) {
            swap            = w->net[x][0];
            w->net[x][0]    = w->net[x][1];
            w->net[x][1]    = swap;
            w->net_heard[x] = (uint8_t)(w->net_heard[x] >> 1 | (w->net_heard[x] & 1) << 1);
        }
    }
}

unsigned model_pack(struct model_world *w, uint8_t *buf)
{
    struct stream s = {.writing = 1, .bytes = buf};

    normalise(w);
    if (model_eager) {
        model_reduce_net(w);
    }
    memset(buf, 0, MODEL_BYTES_MAX);
    walk(&s, w);
    memcpy(buf + s.at / 16 * 8, &s.word, 8);
    if (s.too_big) {
        model_violation(w, "(model) a number does not fit into 4 bits: choose smaller bounds");
    }
    return ((s.at + 1) / 2 + 7) & ~7u;
}

void model_unpack(struct model_world *w, const uint8_t *buf)
{
    static const struct ha_pair_config cfg = {.connect_timeout = MODEL_LATER,
                                              .deadline        = MODEL_LATER,
                                              .linger          = MODEL_LATER,
                                              .drain_timeout   = MODEL_LATER,
                                              .rtx_min         = 1,
                                              .rtx_max         = 1};
    uint8_t                            bytes[MODEL_BYTES_MAX];
    struct stream                      s = {.writing = 0, .bytes = bytes};

    memcpy(bytes, buf, sizeof(bytes));
    memset(w, 0, sizeof(*w));
    for (int x = 0; x < 2; x++) {
        struct model_side *side = &w->side[x];

        ha_pair_init(&side->pair, &cfg, x == 0, model_slots());
        side->pair.cfg.failback = model_options.failback ? MODEL_SOON : 0;
        ha_log_init(&side->log, side->log_ops, MODEL_OPS_MAX);
    }
    walk(&s, w);
    for (int x = 0; x < 2; x++) {
        model_side_refresh(&w->side[x]);
    }
}
