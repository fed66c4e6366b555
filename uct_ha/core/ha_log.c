/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "ha_log.h"

void ha_log_init_apart(struct ha_log *log, struct ha_op *ops, uint32_t stride, uint32_t capacity)
{
    memset(log, 0, sizeof(*log));
    log->mask   = capacity - 1;
    log->ops    = ops;
    log->stride = stride;
    for (uint32_t i = 0; i < capacity; i++) {
        memset(ha_log_op(log, i), 0, sizeof(*ops));
    }
}

void ha_log_move(struct ha_log *log, struct ha_op *ops, uint32_t capacity)
{
    struct ha_log moved = *log;

    moved.mask = capacity - 1;
    moved.ops  = ops;
    for (uint32_t i = log->head; i != log->tail; i++) {
        *ha_log_op(&moved, i) = *ha_log_op(log, i);
    }
    log->mask = moved.mask; /* nothing else: head and tail are watched */
    log->ops  = moved.ops;
}

void ha_log_lane_start(struct ha_log *log, int slot, uint32_t gen, uint32_t psn)
{
    log->lane[slot] = (struct ha_log_lane){.gen = gen, .nxt = psn & HA_PSN_MASK};
    log->acks[slot] = (struct ha_log_acks){.una = psn & HA_PSN_MASK, .first = log->head};
    log->run        = log->tail;
}

/* The receive that it was to take, it does not. */
static void ha_log_take_back(struct ha_log *log, const struct ha_op *op)
{
    struct ha_log_lane *lane = &log->lane[op->slot];

    if (ha_op_is_posted_on(op, op->slot, lane->gen)) {
        lane->takes -= (uint32_t)ha_op_consumes_receive(op);
    }
}

/* Receives that operations which are under way on this lane would take. */
static uint32_t ha_log_takes_posted(const struct ha_log *log, int slot)
{
    uint32_t takes = 0;

    for (uint32_t i = log->head; i != log->tail; i++) {
        if (ha_op_is_posted_on(ha_log_op(log, i), slot, log->lane[slot].gen)) {
            takes += (uint32_t)ha_op_consumes_receive(ha_log_op(log, i));
        }
    }
    return takes;
}

/* Receives that operations known executed on it have taken. */
static uint32_t ha_log_taken(const struct ha_log *log, int slot)
{
    return log->lane[slot].takes - ha_log_takes_posted(log, slot);
}

void ha_log_reject(struct ha_log *log, uint32_t index)
{
    struct ha_op *op = ha_log_op(log, index);

    if (index - log->head >= ha_log_used(log) || op->state == HA_OP_DONE) {
        return;
    }
    ha_log_take_back(log, op);
    op->state  = HA_OP_DONE;
    op->result = HA_RESULT_REJECTED;
    log->run   = log->tail;
    ha_log_skip_to_wait(log);
}

/* ---- what a proof says about one operation ---- */

enum ha_verdict { HA_NOT_EXECUTED, HA_EXECUTED, HA_IN_DOUBT };

/* Goes along the operations of one lane in their order. */
struct ha_judge {
    uint32_t una;
    unsigned kind;
    uint32_t reached;      /* numbers from una on that the peer has had */
    uint32_t left;         /* receives consumed by operations that are still to come */
    int      stopped;      /* nothing from here on was executed */
    int      order_broken; /* a mark behind a message that was never received */
};

static void ha_judge_init(struct ha_judge *judge, const struct ha_log *log, int slot, const struct ha_evidence *peer)
{
    memset(judge, 0, sizeof(*judge));
    judge->una  = log->acks[slot].una;
    judge->kind = peer->kind;
    if (ha_proof_has_word(peer->kind)) {
        judge->reached = ha_psn_distance(judge->una, peer->word);
    }
    if (ha_proof_has_count(peer->kind)) {
        judge->left = peer->received - ha_log_taken(log, slot);
    }
}

static int ha_judge_number_reached(const struct ha_judge *judge, const struct ha_op *op)
{
    uint32_t end = ha_psn_distance(judge->una, op->psn_first) + op->npsn;

    return end <= judge->reached;
}

/* Lanes execute in order: a message that arrived proves everything before it,
 * one that did not disproves everything behind it. */
static enum ha_verdict ha_judge_by_count(struct ha_judge *judge, const struct ha_op *op)
{
    int marked = judge->kind == HA_PROOF_LEDGER && op->npsn > 0 && ha_judge_number_reached(judge, op);

    if (marked && judge->stopped) {
        judge->order_broken = 1;
    }
    if (judge->left > 0 || marked) {
        judge->left -= (uint32_t)(judge->left > 0 && ha_op_consumes_receive(op));
        return HA_EXECUTED;
    }
    if (ha_op_consumes_receive(op)) {
        judge->stopped = 1;
        return HA_NOT_EXECUTED;
    }
    if (judge->stopped || op->kind == HA_OP_READ) {
        return HA_NOT_EXECUTED;
    }
    if (op->npsn > 0 && judge->kind == HA_PROOF_LEDGER) {
        judge->stopped = 1; /* its own mark is missing, so what came behind that did not run */
    }
    return HA_IN_DOUBT;
}

/* The device may have executed anything. A message that was not counted is never taken: it did
 * not happen, but that disproves nothing behind it. */
static enum ha_verdict ha_judge_by_software(struct ha_judge *judge, const struct ha_op *op)
{
    if (judge->left > 0) {
        judge->left -= (uint32_t)ha_op_consumes_receive(op);
        return HA_EXECUTED;
    }
    return op->kind == HA_OP_SEND || op->kind == HA_OP_READ ? HA_NOT_EXECUTED : HA_IN_DOUBT;
}

static enum ha_verdict ha_judge_op(struct ha_judge *judge, const struct ha_op *op)
{
    if (op->kind == HA_OP_TAIL) {
        return HA_NOT_EXECUTED; /* says nothing about the others, nor does it matter */
    }
    switch (judge->kind) {
    case HA_PROOF_NONE:
        return ha_judge_by_software(judge, op);
    case HA_PROOF_PSN:
        return ha_judge_number_reached(judge, op) ? HA_EXECUTED : HA_NOT_EXECUTED;
    case HA_PROOF_COUNT:
    case HA_PROOF_LEDGER:
        return ha_judge_by_count(judge, op);
    default: /* EMPTY */
        return HA_NOT_EXECUTED;
    }
}

/* ---- is the proof possible? ---- */

/* `una` is behind the last success, `nxt` behind the last posting; all
 * distances are forward. */
static int ha_log_check_word(uint32_t una, uint32_t nxt, uint32_t word)
{
    if (ha_psn_distance(una, word) <= ha_psn_distance(una, nxt)) {
        return 0;
    }
    return ha_psn_distance(word, una) <= ha_psn_distance(nxt, word) ? HA_EPROOF_ACKED : HA_EPROOF_WINDOW;
}

static int ha_log_check_count(const struct ha_log *log, int slot, uint32_t received)
{
    uint32_t more = received - ha_log_taken(log, slot);

    if (more <= ha_log_takes_posted(log, slot)) {
        return 0;
    }
    return more > UINT32_MAX / 2 ? HA_EPROOF_ACKED : HA_EPROOF_WINDOW;
}

static int ha_log_check_order(const struct ha_log *log, int slot, const struct ha_evidence *peer)
{
    struct ha_judge judge;

    ha_judge_init(&judge, log, slot, peer);
    for (uint32_t i = log->head; i != log->tail; i++) {
        if (ha_op_is_posted_on(ha_log_op(log, i), slot, log->lane[slot].gen)) {
            (void)ha_judge_op(&judge, ha_log_op(log, i));
        }
    }
    return judge.order_broken ? HA_EPROOF_ORDER : 0;
}

static int ha_log_check_proof(const struct ha_log *log, int slot, const struct ha_evidence *peer)
{
    const struct ha_log_acks *acks = &log->acks[slot];
    int                       rc   = 0;

    if (peer->kind == HA_PROOF_EMPTY) {
        return acks->acked ? HA_EPROOF_ACKED : 0;
    }
    if (ha_proof_has_word(peer->kind)) {
        rc = ha_log_check_word(acks->una, log->lane[slot].nxt, peer->word);
    }
    if (rc == 0 && ha_proof_has_count(peer->kind)) {
        rc = ha_log_check_count(log, slot, peer->received);
    }
    if (rc == 0 && peer->kind == HA_PROOF_LEDGER) {
        rc = ha_log_check_order(log, slot, peer);
    }
    return rc;
}

/* ---- resolve ---- */

/* An operation without success on a lane that is over. */
static void ha_log_resolve_op(struct ha_op *op, enum ha_verdict verdict, struct ha_resolution *res)
{
    if (op->kind == HA_OP_TAIL) { /* what it would have told is known now */
        op->state  = HA_OP_DONE;
        op->result = HA_RESULT_PROVEN;
        return;
    }
    if (verdict == HA_EXECUTED && ha_op_consumes_receive(op)) {
        res->k++;
    }
    if (verdict == HA_NOT_EXECUTED || op->kind == HA_OP_READ) {
        op->state = HA_OP_WAIT; /* a READ that ran is repeated: its data is not here */
        res->replayed++;
        return;
    }
    op->state = HA_OP_DONE;
    if (op->kind == HA_OP_FETCH || verdict == HA_IN_DOUBT) {
        op->result = HA_RESULT_UNKNOWN;
        res->unknown++;
    } else {
        op->result = HA_RESULT_PROVEN;
        res->retired++;
    }
}

int ha_log_resolve(struct ha_log *log, int slot, uint32_t gen, const struct ha_evidence *peer,
                   struct ha_resolution *res)
{
    struct ha_log_lane *lane = &log->lane[slot];
    struct ha_judge     judge;
    int                 rc;

    memset(res, 0, sizeof(*res));
    if (lane->gen != gen) {
        return 0; /* that queue pair never sent: nothing of ours is on it */
    }
    rc = ha_log_check_proof(log, slot, peer);
    if (rc != 0) {
        return rc;
    }
    ha_judge_init(&judge, log, slot, peer);
    res->k = ha_log_taken(log, slot);
    for (uint32_t i = log->head; i != log->tail; i++) {
        struct ha_op *op = ha_log_op(log, i);

        if (ha_op_is_posted_on(op, slot, gen)) {
            ha_log_resolve_op(op, ha_judge_op(&judge, op), res);
        }
    }
    log->acks[slot].una = lane->nxt; /* nobody asks again before the next generation; but nothing is out any more */
    lane->takes         = res->k;
    lane->silent        = 0;
    log->post           = log->head;
    log->run            = log->tail;
    /* The other one takes over: it was started long ago, and 2^32 operations later what it begins with would be ahead
     * of what it is given now. */
    log->acks[!slot].first = log->head;
    ha_log_skip_to_wait(log);
    return 0;
}

void ha_log_cancel(struct ha_log *log)
{
    for (uint32_t i = log->head; i != log->tail; i++) {
        struct ha_op *op = ha_log_op(log, i);

        if (op->state != HA_OP_DONE) {
            ha_log_take_back(log, op);
            op->state  = HA_OP_DONE;
            op->result = HA_RESULT_CANCELED;
        }
    }
    log->post = log->run = log->tail;
    log->lane[0].silent = log->lane[1].silent = 0;
}

int ha_log_posted_on(const struct ha_log *log, int slot, uint32_t gen)
{
    const struct ha_log_lane *lane = &log->lane[slot];

    if (lane->gen != gen) {
        return 0;
    }
    for (uint32_t i = log->head; i != log->tail; i++) {
        if (ha_op_is_posted_on(ha_log_op(log, i), slot, gen)) {
            return 1;
        }
    }
    return 0;
}
