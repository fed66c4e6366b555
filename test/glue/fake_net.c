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

/* a - b on the circle of packet numbers */
static int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

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
    struct ha_wc wc = { .wr_id = wqe_at(rc, rc->head)->send.wr_id, .status = status,
                        .raw = status, .src_qpn = rc->qpn };

    int silent = status == HA_WC_OK && (wqe_at(rc, rc->head)->send.flags & HA_SEND_SILENT);

    rc->head++;
    if (!silent) {
        fake_cq_push(rc->cq, &wc);
    }
}

static void complete_recv(struct ha_rc *rc, enum ha_wc_status status, uint32_t length, uint32_t imm)
{
    struct ha_wc wc = { .wr_id = rc->rq[rc->rq_head % rc->caps.recv_depth].wr_id,
                        .status = status, .raw = status, .byte_len = length, .imm = imm,
                        .src_qpn = rc->qpn };

    rc->rq_head++;
    fake_cq_push(rc->cq, &wc);
}

/* ---- the end of a queue pair --------------------------------------------------- */

void fake_rc_to_err(struct ha_rc *rc)
{
    if (rc->state == FAKE_ERR) {
        return;
    }
    rc->late     = rc->state == FAKE_RTS && fake_luck(rc->rail->knob[FAKE_LATE]);
    rc->deaf     = fake_luck(500);
    rc->state    = FAKE_ERR;
    rc->flush_at = fake_now() + (rc->late ? FAKE_LATE_NS : 0);
    fake_kick();
}

static void fail_head(struct ha_rc *rc, enum ha_wc_status status)
{
    complete_send(rc, status);
    fake_rc_to_err(rc);
}

/* Sends and receives flush each in their order, mixed as it comes. */
static int flush(struct ha_rc *rc)
{
    int left = rc->head != rc->tail || rc->rq_head != rc->rq_tail;

    if (!left || fake_now() < rc->flush_at) {
        return left;
    }
    rc->late = 0;
    while (rc->head != rc->tail || rc->rq_head != rc->rq_tail) {
        if (rc->head != rc->tail && (rc->rq_head == rc->rq_tail || fake_luck(500))) {
            complete_send(rc, HA_WC_FLUSHED);
        } else {
            complete_recv(rc, HA_WC_FLUSHED, 0, 0);
        }
    }
    return 0;
}

/* ---- responder --------------------------------------------------------------------- */

/* What the sender hears at once. */
enum answer { ANSWER_NONE, ANSWER_RNR, ANSWER_GAP, ANSWER_REFUSED, ANSWER_BROKEN };

/* Bytes [from, from + length) of the operation, out of its gather list. */
static int gather(const struct ha_rc *rc, const struct fake_wqe *wqe, uint64_t from, uint8_t *to,
                  uint64_t length)
{
    for (unsigned i = 0; i < wqe->send.num_sge && length > 0; i++) {
        const struct ha_sge *sge = &wqe->sge[i];
        uint64_t             part;
        const uint8_t       *at;

        if (from >= sge->length) {
            from -= sge->length;
            continue;
        }
        part = sge->length - from < length ? sge->length - from : length;
        at   = fake_local(rc->rail, sge->addr + from, part, sge->lkey);
        if (at == NULL) {
            return -1;
        }
        memcpy(to, at, part);
        to     += part;
        length -= part;
        from    = 0;
    }
    return 0;
}

static int fetch(const struct ha_rc *rc, const struct fake_wqe *wqe, uint64_t from, uint8_t *to,
                 uint64_t length)
{
    if (wqe->send.flags & HA_SEND_INLINE) {
        memcpy(to, wqe->bytes + from, length);
        return 0;
    }
    return gather(rc, wqe, from, to, length);
}

static enum answer execute_send(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe,
                                uint64_t from, uint64_t length, int last)
{
    const struct fake_rqe *rqe = &peer->rq[peer->rq_head % peer->caps.recv_depth];
    uint8_t               *to;

    if (peer->rq_head == peer->rq_tail) {
        fake.counts.rnr++;
        return ANSWER_RNR;
    }
    if (wqe->length > rqe->sge.length) {
        fake.counts.bad_length++;
        return ANSWER_REFUSED;
    }
    to = fake_local(peer->rail, rqe->sge.addr + from, length, rqe->sge.lkey);
    if (to == NULL || fetch(rc, wqe, from, to, length) != 0) {
        return ANSWER_REFUSED;
    }
    if (last) {
        complete_recv(peer, HA_WC_OK, (uint32_t)wqe->length, wqe->send.imm);
    }
    return ANSWER_NONE;
}

static enum answer execute_write(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe,
                                 uint64_t from, uint64_t length, int last)
{
    int notice = wqe->send.op == HA_WRITE_IMM && last;
    uint8_t *to = fake_remote(peer->rail, wqe->send.remote_addr, wqe->length, wqe->send.rkey,
                              HA_ACCESS_REMOTE_PUT);

    if (fake.broken > 0 && wqe->send.remote_addr == fake.broken_addr) {
        fake.broken--;
        return ANSWER_BROKEN;
    }
    if (notice && peer->rq_head == peer->rq_tail) {
        fake.counts.rnr++;
        return ANSWER_RNR;
    }
    if (to == NULL || fetch(rc, wqe, from, to + from, length) != 0) {
        return ANSWER_REFUSED;
    }
    if (notice) {
        complete_recv(peer, HA_WC_OK, (uint32_t)wqe->length, wqe->send.imm);
    }
    if (last && fake.on_write != NULL) {
        fake.on_write(fake.on_write_arg, wqe->send.remote_addr, wqe->length);
    }
    return ANSWER_NONE;
}

static int ack_arrives(const struct ha_rc *rc, const struct ha_rc *peer)
{
    if (fake_path_leads(peer->rail, rc->rail, &peer->way) && !(peer->state == FAKE_ERR && peer->deaf) &&
        !fake_luck(peer->rail->knob[FAKE_LOSE_ACK_OUT]) &&
        !fake_luck(rc->rail->knob[FAKE_LOSE_ACK_IN])) {
        return 1;
    }
    fake.counts.acks_lost++;
    return 0;
}

/* The answer is lost like an acknowledgement; asked again, it is read again. */
static enum answer execute_read(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    const uint8_t *from = fake_remote(peer->rail, wqe->send.remote_addr, wqe->length,
                                      wqe->send.rkey, HA_ACCESS_REMOTE_GET);
    uint8_t       *to;

    if (from == NULL) {
        return ANSWER_REFUSED;
    }
    if (!ack_arrives(rc, peer)) {
        return ANSWER_NONE;
    }
    for (unsigned i = 0; i < wqe->send.num_sge; i++) {
        to = fake_local(rc->rail, wqe->sge[i].addr, wqe->sge[i].length, wqe->sge[i].lkey);
        if (to == NULL) {
            return ANSWER_REFUSED;
        }
        memcpy(to, from, wqe->sge[i].length);
        from += wqe->sge[i].length;
    }
    wqe->read_done = 1;
    return ANSWER_NONE;
}

static int has_answer(const struct fake_wqe *wqe)
{
    return wqe->send.op >= HA_READ;
}

/* The responder keeps its answer: asked again, it executes nothing. */
static enum answer answer_atomic(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    void *to = fake_local(rc->rail, wqe->sge[0].addr, sizeof(uint64_t), wqe->sge[0].lkey);

    if (to == NULL) {
        return ANSWER_REFUSED;
    }
    if (ack_arrives(rc, peer)) {
        memcpy(to, &wqe->old, sizeof(wqe->old));
        wqe->read_done = 1;
    }
    return ANSWER_NONE;
}

static enum answer execute_atomic(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    uint64_t *word = fake_remote(peer->rail, wqe->send.remote_addr, sizeof(*word), wqe->send.rkey,
                                 HA_ACCESS_REMOTE_ATOMIC);

    if (word == NULL || wqe->send.remote_addr % sizeof(*word) != 0 || wqe->length != 8) {
        return ANSWER_REFUSED;
    }
    wqe->old = *word;
    if (wqe->send.op == HA_FETCH_ADD) {
        *word += wqe->send.compare_add;
    } else if (*word == wqe->send.compare_add) {
        *word = wqe->send.swap;
    }
    fake.counts.atomics++;
    return answer_atomic(rc, peer, wqe);
}

static enum answer execute(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe, uint32_t pkt)
{
    uint64_t    from   = (uint64_t)pkt * rc->path.mtu;
    uint64_t    length = wqe->length - from < rc->path.mtu ? wqe->length - from : rc->path.mtu;
    int         last   = pkt + 1 == wqe->npsn;
    enum answer answer;

    if (wqe->send.op >= HA_FETCH_ADD) {
        answer = execute_atomic(rc, peer, wqe);
    } else if (wqe->send.op == HA_READ) {
        answer = execute_read(rc, peer, wqe);
    } else if (wqe->send.op == HA_WRITE || wqe->send.op == HA_WRITE_IMM) {
        answer = execute_write(rc, peer, wqe, from, length, last);
    } else {
        answer = execute_send(rc, peer, wqe, from, length, last);
    }
    if (answer == ANSWER_NONE) {
        fake.counts.packets++;
        peer->expected_psn = (peer->expected_psn + (wqe->send.op == HA_READ ? wqe->npsn : 1)) &
                             FAKE_PSN_MASK;
    }
    return answer;
}

static enum answer respond(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe, uint32_t pkt)
{
    int32_t ahead = psn_diff(wqe->psn + pkt, peer->expected_psn);

    if (ahead > 0) {
        return ANSWER_GAP;
    }
    if (ahead == 0) {
        return execute(rc, peer, wqe, pkt);
    }
    if (wqe->send.op >= HA_FETCH_ADD) {
        return answer_atomic(rc, peer, wqe);
    }
    return wqe->send.op == HA_READ ? execute_read(rc, peer, wqe) : ANSWER_NONE;
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
    if (peer->state != FAKE_ERR || !peer->late || fake_now() >= peer->flush_at) {
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
        if (has_answer(wqe_at(rc, i))) {
            return 1;
        }
    }
    return 0;
}

static int is_lost_on_the_way(const struct ha_rc *rc)
{
    return !fake_path_leads(rc->rail, rc->dest_rail, &rc->way) ||
           fake_luck(rc->rail->knob[FAKE_LOSE_DATA_OUT]) ||
           fake_luck(rc->dest_rail->knob[FAKE_LOSE_DATA_IN]);
}

/* Everything before it was executed; both ends are lost by it. */
static void refused(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe,
                    enum ha_wc_status status)
{
    while (wqe_at(rc, rc->head) != wqe) {
        if (has_answer(wqe_at(rc, rc->head)) && !wqe_at(rc, rc->head)->read_done) {
            go_back(rc);
            return;
        }
        complete_send(rc, HA_WC_OK);
    }
    fail_head(rc, status);
    fake_rc_to_err(peer);
}

static void take_answer(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe,
                        enum answer answer)
{
    switch (answer) {
    case ANSWER_RNR:
        rc->rnr_until = fake_now() + 1000000;
        if (rc->path.rnr_retry != 7 && rc->rnr_retries-- == 0) {
            fail_head(rc, HA_WC_NOT_READY);
        } else {
            go_back(rc);
        }
        break;
    case ANSWER_REFUSED:
        refused(rc, peer, wqe, HA_WC_PROGRAM);
        break;
    case ANSWER_BROKEN:
        refused(rc, peer, wqe, HA_WC_OP_FAILED);
        break;
    case ANSWER_GAP:
        retry_later(rc);
        break;
    case ANSWER_NONE:
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
    take_answer(rc, peer, wqe, respond(rc, peer, wqe, pkt));
    return 1;
}

static int is_done(const struct fake_wqe *wqe, uint32_t expected)
{
    return psn_diff(wqe->psn + wqe->npsn, expected) <= 0 &&
           (!has_answer(wqe) || wqe->read_done);
}

static void take_acks(struct ha_rc *rc)
{
    struct ha_rc *peer = peer_of(rc);
    int           done = 0;

    if (rc->state != FAKE_RTS || rc->head == rc->tail || peer == NULL ||
        peer->state == FAKE_INIT || peer->path.qpn != rc->qpn) {
        return;
    }
    if (!ack_arrives(rc, peer)) {
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
