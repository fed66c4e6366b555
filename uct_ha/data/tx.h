/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TX_H_
#define UCT_HA_TX_H_

/*
 * Sending: from an appended operation to its posting. Data part only:
 * progress, no lock. How it ends: data/retire.h.
 *
 *   uct_ha_tx_check()      may it be sent?
 *   uct_ha_tx_begin()      an entry to fill in
 *   uct_ha_tx_send()       into the log, and out at once when the lane is there and nothing waits
 */

#include "data/flow.h"
#include "mem/rkey.h"

#include <endian.h>
#include <string.h>

/* The connection has ended: its status. The user is told from progress, once. */
ucs_status_t uct_ha_tx_refuse(struct uct_ha_flow *flow);

/* It is full. Is a longer one to be had? */
int uct_ha_tx_grow(struct uct_ha_flow *flow);

static inline int uct_ha_tx_has_room(struct uct_ha_flow *flow)
{
    return ucs_likely(ha_log_room(&flow->tx.log) > 0) || uct_ha_tx_grow(flow);
}

/* A window that has grown makes the difference negative. */
static inline int uct_ha_tx_has_credit(const struct uct_ha_flow *flow)
{
    return (int16_t)(flow->tx.sent - flow->tx_granted) < (int)flow->tx_credits;
}

static inline uint32_t uct_ha_tx_imm(struct uct_ha_flow *flow, unsigned imm)
{
    /* Always the present total: a message that is sent again tells no less
     * than it did the first time. */
    flow->go.rx_told = flow->go.rx_consumed;
    return imm | (uint32_t)flow->go.rx_consumed << UCT_HA_IMM_CREDIT_SHIFT;
}

/* May a new operation enter the log? UCS_OK, UCS_ERR_NO_RESOURCE, or the error
 * of a dead connection. `message`: it needs a credit. */
static inline ucs_status_t uct_ha_tx_check(struct uct_ha_flow *flow, int message)
{
    if (ucs_unlikely(!uct_ha_tx_has_room(flow) || flow->tx.dead || (message && !uct_ha_tx_has_credit(flow)) ||
                     (!ucs_list_is_empty(&flow->pending) && flow->flows->dispatching != flow))) {
        flow->amo_refused = 0;
        return flow->tx.dead ? uct_ha_tx_refuse(flow) : UCS_ERR_NO_RESOURCE;
    }
    return UCS_OK;
}

/* An operation as it goes out: what its entry has as well, for the next time. Where it goes out as soon as it comes,
 * all of it is in registers, or known as the program is compiled. */
struct uct_ha_out {
    enum ha_send_op op;
    enum ha_op_kind kind;
    unsigned        flags; /* HA_OP_FLAG_*: QUIET where nobody waits for the end, and what is sent is in the log
                            * or in a bounce buffer */
    unsigned            imm;
    uint32_t            length;
    uint32_t            index; /* in the log */
    uint64_t            remote_addr;
    uct_rkey_t          rkey;
    struct uct_ha_txop *txop;
    uint8_t            *bytes; /* of one that has them in the log */
};

/* What the entry will have, see pair/txlog.h. */
enum uct_ha_form { UCT_HA_BYTES, UCT_HA_COPY, UCT_HA_PIECES };

/* The entry that the next operation gets, to be filled in; the caller checked. */
static inline struct uct_ha_txop *uct_ha_tx_begin(struct uct_ha_flow *flow, enum ha_send_op op, enum uct_ha_form form,
                                                  unsigned imm, size_t length)
{
    uint32_t            index = flow->tx.log.tail;
    struct uct_ha_txop *txop  = uct_ha_txlog_op(&flow->tx, index);

    txop->op          = (uint8_t)op;
    txop->pieces      = form != UCT_HA_BYTES;
    txop->flags       = 0;
    txop->imm         = (uint16_t)imm;
    txop->core.length = (uint32_t)length;
    if (form == UCT_HA_COPY) {
        txop->more = NULL;
    } else if (form == UCT_HA_PIECES || ucs_unlikely(length > UCT_HA_BYTES_FEW)) {
        txop->more = uct_ha_txlog_more(&flow->tx, index);
    }
    if (form == UCT_HA_PIECES) {
        txop->desc         = NULL;
        txop->more->comp   = NULL;
        txop->more->unpack = NULL;
    }
    if (form != UCT_HA_BYTES) {
        flow->tx.held = index + 1;
    }
    return txop;
}

/* The same, of `out`, which knows its entry from here on. */
static UCS_F_ALWAYS_INLINE void uct_ha_tx_begin_out(struct uct_ha_flow *flow, struct uct_ha_out *out,
                                                    enum uct_ha_form form)
{
    out->index = flow->tx.log.tail;
    out->txop  = uct_ha_tx_begin(flow, out->op, form, out->imm, out->length);
    out->bytes = form == UCT_HA_BYTES ? uct_ha_txop_bytes(out->txop, out->length) : NULL;
    if (out->op != HA_SEND_IMM) {
        out->txop->remote_addr = out->remote_addr;
        out->txop->rkey        = out->rkey;
    }
}

/* As the entry at `index` has it. */
static inline struct uct_ha_out uct_ha_tx_out(const struct uct_ha_flow *flow, uint32_t index, enum ha_op_kind kind,
                                              unsigned flags)
{
    struct uct_ha_txop *txop = uct_ha_txlog_op(&flow->tx, index);

    return (struct uct_ha_out){.op          = (enum ha_send_op)txop->op,
                               .kind        = kind,
                               .flags       = flags,
                               .imm         = txop->imm,
                               .length      = txop->core.length,
                               .index       = index,
                               .remote_addr = txop->remote_addr,
                               .rkey        = txop->rkey,
                               .txop        = txop};
}

/* Bytes that are no more than one word, mostly that; the rest of it is 0. Put together in a register, see
 * ha_words_store(). */
static inline uint64_t uct_ha_tx_word(const void *from, size_t length)
{
    uint64_t word = 0;

    if (ucs_likely(length == sizeof(word))) {
        memcpy(&word, from, sizeof(word));
        return word;
    }
    while (length-- > 0) {
        word = word << 8 | ((const uint8_t *)from)[length];
    }
    return htole64(word);
}

/* Bytes that go from the entry, which has room for a word at least. Without a call, for which the caller would keep
 * more than for the post. */
static inline void uct_ha_tx_copy(void *to, const void *from, size_t length)
{
    const size_t word = sizeof(uint64_t);
    size_t       last = length - word;

    if (ucs_likely(length <= word)) {
        memcpy(to, &(uint64_t){uct_ha_tx_word(from, length)}, word);
        return;
    }
    for (size_t i = 0; i < last; i += word) {
        memcpy((uint8_t *)to + i, (const uint8_t *)from + i, word);
    }
    memcpy((uint8_t *)to + last, (const uint8_t *)from + last, word);
}

/* It is filled in: it enters the log, and goes out now or when its turn comes. `flags`: HA_OP_FLAG_QUIET where nobody
 * waits for the end, and what is sent is in the log or in a bounce buffer. data/go.h has the short way. */
void uct_ha_tx_send(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags);

/* The device would not take it: `status` is what it said. */
void uct_ha_tx_not_taken(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags, int status);

/* What of a request is the same on the short way and on the long one: all but where the bytes are. */
static UCS_F_ALWAYS_INLINE void uct_ha_tx_describe(struct uct_ha_flow *flow, const struct uct_ha_out *out,
                                                   uint32_t send_tag, unsigned slot, unsigned flags,
                                                   struct ha_send *send)
{
    send->wr_id = (uint64_t)send_tag << 32 | out->index;
    send->next  = NULL;
    send->op    = out->op;
    send->flags = flags;
    if (ha_send_op_has_imm(out->op)) {
        send->imm = ha_imm(uct_ha_tx_imm(flow, out->imm));
    }
    if (out->op != HA_SEND_IMM) {
        send->remote_addr = out->remote_addr;
        send->rkey        = uct_ha_rkey_at(&out->txop->rkey, slot);
    }
}

/* Post the entry at log.post on the active lane; UCS_ERR_NO_RESOURCE leaves it
 * waiting. */
ucs_status_t uct_ha_tx_post(struct uct_ha_flow *flow);

void uct_ha_tx_backlog(struct uct_ha_flow *flow);

/* Post what waits, as far as it goes. */
void uct_ha_tx_post_waiting(struct uct_ha_flow *flow);

/* Somebody waits for the end of all that is under way: when nothing would tell, something is sent that does. */
void uct_ha_tx_tail(struct uct_ha_flow *flow);

/* ... of every connection, or of those that have sent nothing since the last call. */
void uct_ha_tx_tails(struct uct_ha_flows *flows, int all);

/* A message that only tells the peer how many of its messages were consumed. */
void uct_ha_tx_credit(struct uct_ha_flow *flow);

/* An operation was rejected. Outside of any lock: tell, and end the connection if the operation
 * could not report it. */
void uct_ha_tx_rejected(struct uct_ha_flow *flow);

#endif
