/* SPDX-License-Identifier: BSD-3-Clause */

/* What the peer's device does with a packet that has reached it, and what it answers. */

#include "fake_priv.h"

#include <string.h>

/* Bytes [from, from + length) of the operation, out of its gather list. */
static int gather(const struct ha_rc *rc, const struct fake_wqe *wqe, uint64_t from, uint8_t *to, uint64_t length)
{
    for (int i = 0; i < wqe->send.num_sge && length > 0; i++) {
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
        to += part;
        length -= part;
        from = 0;
    }
    return 0;
}

static int fetch(const struct ha_rc *rc, const struct fake_wqe *wqe, uint64_t from, uint8_t *to, uint64_t length)
{
    if (wqe->send.flags & HA_SEND_INLINE) {
        memcpy(to, wqe->bytes + from, length);
        return 0;
    }
    return gather(rc, wqe, from, to, length);
}

static enum fake_answer execute_send(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe, uint64_t from,
                                     uint64_t length, int last)
{
    const struct fake_rqe *rqe = fake_rqe_of(peer);
    uint8_t               *to;

    if (rqe == NULL) {
        return FAKE_ANSWER_RNR;
    }
    if (wqe->length > rqe->sge.length) {
        fake.counts.bad_length++;
        return FAKE_ANSWER_REFUSED;
    }
    to = fake_local(peer->rail, rqe->sge.addr + from, length, rqe->sge.lkey);
    if (to == NULL || fetch(rc, wqe, from, to, length) != 0) {
        return FAKE_ANSWER_REFUSED;
    }
    if (last && !(peer->state == FAKE_ERR && peer->rail->knob[FAKE_LATE_LOST])) {
        fake_complete_recv(peer, HA_WC_OK, (uint32_t)wqe->length, ha_imm(wqe->send.imm));
    }
    return FAKE_ANSWER_NONE;
}

static enum fake_answer execute_write(struct ha_rc *rc, struct ha_rc *peer, const struct fake_wqe *wqe, uint64_t from,
                                      uint64_t length, int last)
{
    int      notice = wqe->send.op == HA_WRITE_IMM && last;
    uint8_t *to     = NULL;

    if (wqe->length > 0) { /* else no key is looked at */
        to = fake_remote(peer->rail, wqe->send.remote_addr, wqe->length, wqe->send.rkey, HA_ACCESS_REMOTE_PUT);
    }

    if (fake.broken > 0 && wqe->send.remote_addr == fake.broken_addr) {
        fake.broken--;
        return FAKE_ANSWER_BROKEN;
    }
    if (notice && fake_rqe_of(peer) == NULL) {
        return FAKE_ANSWER_RNR;
    }
    if (wqe->length > 0 && (to == NULL || fetch(rc, wqe, from, to + from, length) != 0)) {
        return FAKE_ANSWER_REFUSED;
    }
    if (notice) {
        fake_complete_recv(peer, HA_WC_OK, (uint32_t)wqe->length, ha_imm(wqe->send.imm));
    }
    if (last && fake.on_write != NULL && wqe->length > 0) {
        fake.on_write(fake.on_write_arg, wqe->send.remote_addr, wqe->length);
    }
    return FAKE_ANSWER_NONE;
}

int fake_ack_arrives(const struct ha_rc *rc, const struct ha_rc *peer)
{
    if (fake_path_leads(peer->rail, rc->rail, &peer->way) && !(peer->state == FAKE_ERR && peer->deaf) &&
        !fake_luck(peer->rail->knob[FAKE_LOSE_ACK_OUT]) && !fake_luck(rc->rail->knob[FAKE_LOSE_ACK_IN])) {
        return 1;
    }
    fake.counts.acks_lost++;
    return 0;
}

/* The answer is lost like an acknowledgement; asked again, it is read again. */
static enum fake_answer execute_read(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    const uint8_t *from = fake_remote(peer->rail, wqe->send.remote_addr, wqe->length, wqe->send.rkey,
                                      HA_ACCESS_REMOTE_GET);
    uint8_t       *to;

    if (from == NULL) {
        return FAKE_ANSWER_REFUSED;
    }
    if (!fake_ack_arrives(rc, peer)) {
        return FAKE_ANSWER_NONE;
    }
    for (int i = 0; i < wqe->send.num_sge; i++) {
        to = fake_local(rc->rail, wqe->sge[i].addr, wqe->sge[i].length, wqe->sge[i].lkey);
        if (to == NULL) {
            return FAKE_ANSWER_REFUSED;
        }
        memcpy(to, from, wqe->sge[i].length);
        from += wqe->sge[i].length;
    }
    wqe->read_done = 1;
    return FAKE_ANSWER_NONE;
}

int fake_has_answer(const struct fake_wqe *wqe)
{
    return wqe->send.op >= HA_READ;
}

/* The responder keeps its answer: asked again, it executes nothing. */
static enum fake_answer answer_atomic(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    void *to = fake_local(rc->rail, wqe->sge[0].addr, sizeof(uint64_t), wqe->sge[0].lkey);

    if (to == NULL) {
        return FAKE_ANSWER_REFUSED;
    }
    if (fake_ack_arrives(rc, peer)) {
        memcpy(to, &wqe->old, sizeof(wqe->old));
        wqe->read_done = 1;
    }
    return FAKE_ANSWER_NONE;
}

static enum fake_answer execute_atomic(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe)
{
    uint64_t *word = fake_remote(peer->rail, wqe->send.remote_addr, sizeof(*word), wqe->send.atomic.rkey,
                                 HA_ACCESS_REMOTE_ATOMIC);

    if (word == NULL || wqe->send.remote_addr % sizeof(*word) != 0 || wqe->length != 8) {
        return FAKE_ANSWER_REFUSED;
    }
    wqe->old = __atomic_load_n(word, __ATOMIC_RELAXED); /* a test may look at it meanwhile */
    if (wqe->send.op == HA_FETCH_ADD) {
        __atomic_store_n(word, wqe->old + wqe->send.atomic.compare_add, __ATOMIC_RELAXED);
    } else if (wqe->old == wqe->send.atomic.compare_add) {
        __atomic_store_n(word, wqe->send.atomic.swap, __ATOMIC_RELAXED);
    }
    fake.counts.atomics++;
    return answer_atomic(rc, peer, wqe);
}

static enum fake_answer execute(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe, uint32_t pkt)
{
    uint64_t         from   = (uint64_t)pkt * rc->path.mtu;
    uint64_t         length = wqe->length - from < rc->path.mtu ? wqe->length - from : rc->path.mtu;
    int              last   = pkt + 1 == wqe->npsn;
    enum fake_answer answer;

    if (length > peer->path.mtu && wqe->send.op != HA_READ) {
        fake.counts.too_long++;
        return FAKE_ANSWER_GAP;
    }
    if (ha_send_op_is_atomic(wqe->send.op)) {
        answer = execute_atomic(rc, peer, wqe);
    } else if (wqe->send.op == HA_READ) {
        answer = execute_read(rc, peer, wqe);
    } else if (wqe->send.op == HA_WRITE || wqe->send.op == HA_WRITE_IMM) {
        answer = execute_write(rc, peer, wqe, from, length, last);
    } else {
        answer = execute_send(rc, peer, wqe, from, length, last);
    }
    if (answer == FAKE_ANSWER_NONE) {
        fake.counts.packets++;
        fake.counts.after_reset += peer->rail->card == FAKE_CARD_UNDEAD;
        peer->expected_psn = (peer->expected_psn + (wqe->send.op == HA_READ ? wqe->npsn : 1)) & FAKE_PSN_MASK;
    }
    return answer;
}

enum fake_answer fake_respond(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe, uint32_t pkt)
{
    int32_t ahead = fake_psn_diff(wqe->psn + pkt, peer->expected_psn);

    if (ahead > 0) {
        return FAKE_ANSWER_GAP;
    }
    if (ahead == 0) {
        return execute(rc, peer, wqe, pkt);
    }
    if (ha_send_op_is_atomic(wqe->send.op)) {
        return answer_atomic(rc, peer, wqe);
    }
    return wqe->send.op == HA_READ ? execute_read(rc, peer, wqe) : FAKE_ANSWER_NONE;
}
