/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_GO_H_
#define UCT_HA_GO_H_

/*
 * The short way out. While nothing is the matter with a connection, an operation enters its log and goes out on its
 * lane in one go, and what uct_ha_tx_check() and uct_ha_tx_post() ask is one comparison of the log's tail with a
 * limit. uct_ha_go_open() asks all of it, and says for how many operations the answers hold:
 *
 *   room in the log; credits               so many are left
 *   connection alive, a lane, no ledger;   while nobody calls uct_ha_flow_close_go()
 *   nothing waits; no fence; listed as
 *   silent
 *   window of packet numbers               a full log of light operations fits: longer ones go the long way
 *
 * What others change without a word is asked each time: places in the completion queue, the fence of the interface.
 * Who goes the long way leaves the same entry in the log. Progress only.
 */

#include "data/tx.h"
#include "pair/attention.h"

/* What is seldom, of the operation whose entry comes next; that has all of it, so that nobody needs the address of what
 * is in registers. A bounce buffer that is not one packet, or that the rail does not know. */
void uct_ha_go_far(struct uct_ha_flow *flow, int go, enum ha_op_kind kind, unsigned flags);

/* ... One that nobody waits for, but that tells of its success. */
void uct_ha_go_tell(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags, uint32_t npsn, unsigned send_flags,
                    struct ha_send *send);

/* Asks again: may an operation, or a `message`, go the short way? Of one that was not closed only what has reached a
 * limit. */
int uct_ha_go_open(struct uct_ha_flow *flow, int message);

static inline int uct_ha_go_is_open(const struct uct_ha_flow *flow, int message)
{
    const struct ha_log *log = &flow->tx.log;

    return ucs_likely((int32_t)(log->tail - flow->go.limit[message]) < 0 && log->post == log->tail &&
                      flow->go.fence_seen == flow->flows->fence_seq && uct_ha_room_for_send(flow->go.room));
}

/* May an operation enter the log? 1: by the short way; 0: by the long one; else *status says why not. */
static inline int uct_ha_go(struct uct_ha_flow *flow, int message, ucs_status_t *status)
{
    *status = UCS_OK;
    if (uct_ha_go_is_open(flow, message) || uct_ha_go_open(flow, message)) {
        return 1;
    }
    *status = uct_ha_tx_check(flow, message);
    return 0;
}

/* The same for a PUT or a GET. */
static inline int uct_ha_go_rma(struct uct_ha_flow *flow, int message, ucs_status_t *status)
{
    *status = UCS_OK;
    if (uct_ha_go_is_open(flow, message)) {
        return 1;
    }
    if (ucs_unlikely(uct_ha_flow_fenced_atomics(flow) && !flow->tx.dead)) {
        flow->amo_refused = 0;
        *status           = UCS_ERR_NO_RESOURCE;
        return 0;
    }
    return uct_ha_go(flow, message, status);
}

/* Packets of a light operation. */
static inline uint32_t uct_ha_go_packets(const struct uct_ha_flow *flow, uint32_t length)
{
    return length <= flow->go.mtu ? 1 : (length + flow->go.mtu - 1) >> flow->go.shift;
}

/* As uct_ha_tx_send(); `send` has where the bytes are. Little is kept while the device takes it. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_post(struct uct_ha_flow *flow, const struct uct_ha_out *out, uint32_t npsn,
                                               unsigned send_flags, int silent, struct ha_send *send)
{
    struct ha_log      *log  = &flow->tx.log;
    unsigned            slot = flow->go.slot;
    struct ha_log_lane *lane = &log->lane[slot];
    int                 status;

    uct_ha_tx_describe(flow, out, flow->go.send_tag, slot, send_flags | (silent ? 0 : HA_SEND_TELL), send);
    ha_log_draft(&out->txop->core, lane, slot, out->kind, out->flags, out->length, npsn);
    status = ha_rc_post_send(flow->go.rc, send);
    if (ucs_unlikely(status != 0)) {
        uct_ha_tx_not_taken(flow, out->kind, out->flags, status);
        return;
    }
    ha_log_enter(log, lane, out->kind, out->flags, npsn, silent);
    flow->flows->outstanding++;
    flow->go.room->sends++; /* as uct_ha_lane_sent(), without the lane */
    flow->go.sends[slot]++;
    if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {
        uct_ha_attention_posted(flow->road.conn);
    }
}

/* Of those that nobody waits for, one in so many tells, by its place in the log: nothing has to be counted. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_out(struct uct_ha_flow *flow, const struct uct_ha_out *out, uint32_t npsn,
                                              unsigned send_flags, struct ha_send *send)
{
    if (!(out->flags & HA_OP_FLAG_QUIET)) {
        uct_ha_go_post(flow, out, npsn, send_flags, 0, send);
    } else if (ucs_likely((out->index & flow->go.told_mask) != 0)) {
        uct_ha_go_post(flow, out, npsn, send_flags, 1, send);
    } else {
        uct_ha_go_tell(flow, out->kind, out->flags, npsn, send_flags, send);
    }
}

/* Its bytes are in the entry; they fit into one packet. `some`: there are any. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_short(struct uct_ha_flow *flow, int go, const struct uct_ha_out *out,
                                                int some)
{
    struct ha_sge  sge;
    struct ha_send send;

    if (ucs_unlikely(!go)) {
        uct_ha_tx_send(flow, out->kind, out->flags);
        return;
    }
    ha_sge_set(&sge, (uintptr_t)out->bytes, out->length, 0);
    send.sge     = &sge;
    send.num_sge = some;
    uct_ha_go_out(flow, out, 1, HA_SEND_INLINE, &send);
}

/* Are all pieces known to the rail? Then `sge` says how. */
static UCS_F_ALWAYS_INLINE int uct_ha_go_sge(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop,
                                             unsigned pieces, struct ha_sge *sge)
{
    unsigned i = 0;

    do {
        if (ucs_unlikely(uct_ha_piece_sge(&txop->more->piece[i], flow->go.slot, flow->go.rail_no, &sge[i]) != 0)) {
            return 0;
        }
    } while (++i < pieces);
    return 1;
}

/* Pieces of registered memory, of a light operation for which the short way is open. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_light(struct uct_ha_flow *flow, const struct uct_ha_out *out, unsigned pieces)
{
    struct ha_sge  sge[UCT_HA_IOV_MAX];
    struct ha_send send;

    if (ucs_unlikely(!uct_ha_go_sge(flow, out->txop, pieces, sge))) {
        uct_ha_tx_send(flow, out->kind, out->flags);
        return;
    }
    send.sge     = sge;
    send.num_sge = (int)pieces;
    uct_ha_go_out(flow, out, uct_ha_go_packets(flow, out->length), 0, &send);
}

static UCS_F_ALWAYS_INLINE void uct_ha_go_pieces(struct uct_ha_flow *flow, int go, const struct uct_ha_out *out,
                                                 unsigned pieces)
{
    if (ucs_unlikely(!go || out->length > flow->light)) {
        uct_ha_tx_send(flow, out->kind, out->flags);
        return;
    }
    uct_ha_go_light(flow, out, pieces);
}

/* One packet from a bounce buffer, as most are; else as any pieces. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_desc(struct uct_ha_flow *flow, int go, const struct uct_ha_out *out,
                                               struct uct_ha_desc *desc)
{
    struct ha_sge  sge;
    struct ha_send send;

    if (ucs_unlikely(!go || out->length > flow->go.mtu || !uct_ha_reg_is_on(desc->mem, flow->go.rail_no))) {
        uct_ha_go_far(flow, go, out->kind, out->flags);
        return;
    }
    ha_sge_set(&sge, (uintptr_t)desc->data, out->length, desc->mem->lkey[flow->go.rail_no]);
    send.sge     = &sge;
    send.num_sge = 1;
    uct_ha_go_out(flow, out, 1, 0, &send);
}

#endif
