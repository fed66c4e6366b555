/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The network between RC queue pairs. A step sends a few packets of each queue
 * pair and lets acknowledgements through. A packet is executed by the peer in
 * the moment it is sent, or is lost; what may lag behind is the sender's
 * knowledge: it learns the peer's expected packet number, and by that what was
 * executed, when an acknowledgement is not lost.
 */

#include "fake_priv.h"

#include <string.h>

#define PACKETS_PER_STEP 4

static struct fake_wqe *wqe_at(struct ha_rc *rc, unsigned index)
{
    return &rc->sq[index % rc->caps.send_depth];
}

static struct ha_rc *peer_of(const struct ha_rc *rc)
{
    struct ha_rc *peer;

    for (peer = fake.rcs; peer != NULL; peer = peer->next) {
        if (peer->qpn == rc->path.qpn && peer->rail == rc->dest_rail) {
            break;
        }
    }
    return peer;
}

static void complete_send(struct ha_rc *rc, enum ha_wc_status status)
{
    struct ha_wc wc = {.wr_id = wqe_at(rc, rc->head)->send.wr_id, .status = status, .raw = status, .src_qpn = rc->qpn};

    int silent = status == HA_WC_OK && !(wqe_at(rc, rc->head)->send.flags & HA_SEND_TELL);

    wc.imm = ++rc->head; /* the places that its poll frees, fake_cq.c */
    if (status == HA_WC_FLUSHED && (rc->rail->knob[FAKE_LOSE_FLUSHES] & FAKE_FLUSHES_NO_SENDS)) {
        fake_cq_lose(rc->cq);
    } else if (silent) {
        rc->cq->promised--;
        fake.counts.silent++;
    } else {
        fake_cq_push(rc->cq, &wc);
    }
}

void fake_complete_recv(struct ha_rc *rc, enum ha_wc_status status, uint32_t length, uint32_t imm)
{
    struct ha_wc wc = {.wr_id    = fake_rqe_of(rc)->wr_id,
                       .qpn      = rc->qpn,
                       .status   = status,
                       .raw      = status,
                       .byte_len = length,
                       .imm      = imm,
                       .src_qpn  = rc->qpn};

    if (rc->srq != NULL) {
        rc->has_taken = 0;
    } else {
        rc->rq.head++;
    }
    if (status == HA_WC_FLUSHED && (rc->rail->knob[FAKE_LOSE_FLUSHES] & FAKE_FLUSHES_NO_RECVS)) {
        fake_cq_lose(rc->cq);
    } else {
        fake_cq_push(rc->cq, &wc);
    }
}

/* ---- the end of a queue pair --------------------------------------------------- */

void fake_rc_to_err(struct ha_rc *rc)
{
    if (rc->state == FAKE_ERR) {
        return;
    }
    rc->late       = rc->state == FAKE_RTS && fake_luck(rc->rail->knob[FAKE_LATE]);
    rc->late_reads = rc->late ? rc->rail->knob[FAKE_LATE_READS] : 0;
    rc->err_at     = rc->state == FAKE_RTS ? fake_now() : 0;
    rc->deaf       = fake_luck(500);
    if (rc->rail->is->err_event && rc->state == FAKE_RTS) {
        fake_push_qp_event(rc, HA_RAIL_EVENT_QP_FATAL);
        fake.counts.err_events++;
    }
    rc->state    = FAKE_ERR;
    rc->flush_at = fake_now() + (rc->late_reads > 0 ? FAKE_LATER_NS : rc->late ? FAKE_LATE_NS : 0);
    fake_kick();
}

static void fail_head(struct ha_rc *rc, enum ha_wc_status status)
{
    complete_send(rc, status);
    fake_rc_to_err(rc);
}

/* Of a message that was cut off the device may have written any part. */
static void scribble(struct ha_rc *rc)
{
    const struct ha_sge *sge = &fake_rqe_of(rc)->sge;
    uint8_t             *to;

    if (fake_luck(rc->rail->knob[FAKE_SCRIBBLE])) {
        to = fake_local(rc->rail, sge->addr, sge->length, sge->lkey);
        if (to != NULL) {
            memset(to, 0xee, sge->length);
        }
    }
}

/* Sends and receives flush each in their order, mixed as it comes. */
static int flush(struct ha_rc *rc)
{
    int left = rc->head != rc->tail || rc->rq.head != rc->rq.tail || (rc->srq != NULL && !rc->at_rest);

    if (!left || fake_now() < rc->flush_at) {
        return left;
    }
    rc->late = 0;
    while (rc->head != rc->tail || rc->rq.head != rc->rq.tail) {
        if (rc->head != rc->tail && (rc->rq.head == rc->rq.tail || fake_luck(rc->rail->is->sends_first))) {
            complete_send(rc, HA_WC_FLUSHED);
        } else {
            scribble(rc);
            fake_complete_recv(rc, HA_WC_FLUSHED, 0, 0);
        }
    }
    if (rc->srq != NULL && !rc->at_rest) {
        rc->at_rest = 1;
        fake_srq_leave(rc);
    }
    return 0;
}

/* Does the peer's queue pair take packets of ours? One that was fenced may take
 * a last one. */
static int is_open(const struct ha_rc *rc, struct ha_rc *peer)
{
    if (peer == NULL || peer->dest_rail != rc->rail || peer->path.qpn != rc->qpn) {
        return 0;
    }
    if (peer->state == FAKE_RTS) {
        return 1;
    }
    if (peer->state != FAKE_ERR || !peer->late || peer->late_reads > 0 || fake_now() >= peer->flush_at) {
        return 0;
    }
    peer->late     = 0;
    peer->flush_at = fake_now();
    fake.counts.late++;
    return 1;
}

/* ---- requester ------------------------------------------------------------------------ */

static void retry_later(struct ha_rc *rc)
{
    if (rc->retry_at == 0) {
        rc->retry_at = fake_now() + (4096ull << rc->path.timeout);
    }
}

static void go_back(struct ha_rc *rc)
{
    rc->send     = rc->head;
    rc->send_pkt = 0;
}

/* An operation with the fence flag waits for the data of earlier READs. */
static int is_held_back(struct ha_rc *rc, const struct fake_wqe *wqe)
{
    if (!(wqe->send.flags & HA_SEND_FENCE)) {
        return 0;
    }
    for (unsigned i = rc->head; i != rc->send; i++) {
        if (fake_has_answer(wqe_at(rc, i))) {
            return 1;
        }
    }
    return 0;
}

static int is_lost_on_the_way(const struct ha_rc *rc)
{
    return !fake_path_leads(rc->rail, rc->dest_rail, &rc->way) || fake_luck(rc->rail->knob[FAKE_LOSE_DATA_OUT]) ||
           fake_luck(rc->dest_rail->knob[FAKE_LOSE_DATA_IN]);
}

/* Everything before it was executed; both ends are lost by it. */
static void refused(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe, enum ha_wc_status status)
{
    while (wqe_at(rc, rc->head) != wqe) {
        if (fake_has_answer(wqe_at(rc, rc->head)) && !wqe_at(rc, rc->head)->read_done) {
            go_back(rc);
            return;
        }
        complete_send(rc, HA_WC_OK);
    }
    fail_head(rc, status);
    fake_rc_to_err(peer);
}

static void take_answer(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe, enum fake_answer answer)
{
    switch (answer) {
    case FAKE_ANSWER_RNR:
        rc->rnr_until = fake_now() + 1000000;
        if (rc->path.rnr_retry != 7 && rc->rnr_retries-- == 0) {
            fail_head(rc, HA_WC_NOT_READY);
        } else {
            go_back(rc);
        }
        break;
    case FAKE_ANSWER_REFUSED:
        refused(rc, peer, wqe, HA_WC_PROGRAM);
        break;
    case FAKE_ANSWER_BROKEN:
        refused(rc, peer, wqe, HA_WC_OP_FAILED);
        break;
    case FAKE_ANSWER_GAP:
        retry_later(rc);
        break;
    case FAKE_ANSWER_NONE:
        break;
    }
}

/* One packet of the operation being sent; 0 when there is none to send now. */
static int send_packet(struct ha_rc *rc)
{
    struct fake_wqe *wqe;
    struct ha_rc    *peer;
    uint32_t         pkt;

    if (rc->state != FAKE_RTS || rc->send == rc->tail || fake_now() < rc->rnr_until ||
        is_held_back(rc, wqe_at(rc, rc->send))) {
        return 0;
    }
    if (fake_port_kills(rc)) {
        fake.counts.port_kills++;
        fail_head(rc, rc->rail->is->port_kills);
        return 0;
    }
    wqe = wqe_at(rc, rc->send);
    pkt = rc->send_pkt++;
    if (wqe->send.op == HA_READ || rc->send_pkt == wqe->npsn) {
        rc->send++;
        rc->send_pkt = 0;
    }
    if (is_lost_on_the_way(rc)) {
        fake.counts.lost++;
        retry_later(rc);
        return 1;
    }
    peer = peer_of(rc);
    if (!is_open(rc, peer)) {
        fake.counts.wrong_peer++;
        retry_later(rc);
        return 1;
    }
    take_answer(rc, peer, wqe, fake_respond(rc, peer, wqe, pkt));
    return 1;
}

static int is_done(const struct fake_wqe *wqe, uint32_t expected)
{
    return fake_psn_diff(wqe->psn + wqe->npsn, expected) <= 0 && (!fake_has_answer(wqe) || wqe->read_done);
}

/* A packet that was on its way all the time: its sender may have been fenced meanwhile. */
void fake_rc_was_read(struct ha_rc *rc)
{
    struct ha_rc *sender = peer_of(rc);

    if (rc->late_reads == 0 || --rc->late_reads > 0) {
        return;
    }
    rc->late     = 0;
    rc->flush_at = fake_now();
    if (sender != NULL && sender->send != sender->tail) {
        fake.counts.late++;
        (void)fake_respond(sender, rc, wqe_at(sender, sender->send), sender->send_pkt++);
    }
    fake_kick();
}

static void take_acks(struct ha_rc *rc)
{
    struct ha_rc *peer = peer_of(rc);
    int           done = 0;

    if (rc->state != FAKE_RTS || rc->head == rc->tail || peer == NULL || peer->state == FAKE_INIT ||
        peer->path.qpn != rc->qpn) {
        return;
    }
    if (!fake_ack_arrives(rc, peer)) {
        retry_later(rc);
        return;
    }
    while (rc->head != rc->tail && is_done(wqe_at(rc, rc->head), peer->expected_psn)) {
        complete_send(rc, HA_WC_OK);
        done = 1;
    }
    if ((int)(rc->send - rc->head) < 0) {
        go_back(rc);
    }
    if (done) {
        rc->retries     = rc->path.retry_count;
        rc->rnr_retries = rc->path.rnr_retry;
        rc->retry_at    = 0;
    }
    if (rc->head != rc->send) {
        retry_later(rc); /* should nothing more come */
    }
}

static void check_retry(struct ha_rc *rc)
{
    if (rc->state != FAKE_RTS || rc->retry_at == 0 || fake_now() < rc->retry_at) {
        return;
    }
    rc->retry_at = 0;
    if (rc->head == rc->tail) {
        return;
    }
    if (rc->retries-- == 0) {
        fake.counts.retry_exceeded++;
        fail_head(rc, HA_WC_DEAD);
    } else {
        go_back(rc);
    }
}

static int step_one(struct ha_rc *rc)
{
    unsigned packets = 1 + fake_draw(PACKETS_PER_STEP);

    if (rc->rail->card == FAKE_CARD_DEAD) {
        return 0;
    }
    if (rc->state == FAKE_ERR) {
        return flush(rc);
    }
    if (rc->state == FAKE_INIT || rc->head == rc->tail) {
        return 0;
    }
    if (fake_luck(rc->rail->knob[FAKE_STALL])) {
        return 1;
    }
    while (packets > 0 && send_packet(rc)) {
        packets--;
    }
    if (!fake_luck(300)) { /* else later */
        take_acks(rc);
        check_retry(rc);
    }
    return rc->head != rc->tail;
}

int fake_rc_step(void)
{
    struct ha_rc *rc;
    int           busy = 0;

    for (rc = fake.rcs; rc != NULL; rc = rc->next) {
        busy |= step_one(rc);
    }
    return busy;
}
