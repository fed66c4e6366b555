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

/* Asks everything again: may an operation, or a `message`, go the short way? */
int uct_ha_go_open(struct uct_ha_flow *flow, int message);

static inline int uct_ha_go_is_open(const struct uct_ha_flow *flow, int message)
{
    const struct ha_log *log = &flow->tx.log;

    return ucs_likely((int32_t)(log->tail - flow->go.limit[message]) < 0 && log->post == log->tail &&
                      flow->fence_seen == flow->flows->fence_seq && uct_ha_room_for_send(flow->go.room));
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

/* Packets of a light operation. */
static inline uint32_t uct_ha_go_packets(const struct uct_ha_flow *flow, uint32_t length)
{
    uint32_t shift = flow->go.shift;

    return length >> shift == 0 ? 1 : (uint32_t)(length + (1u << shift) - 1) >> shift;
}

/* As uct_ha_tx_send(), with what of the request is not in the entry. Little is kept while the device takes it. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_post(struct uct_ha_flow *flow, const struct uct_ha_txop *txop, unsigned op,
                                               enum ha_op_kind kind, unsigned flags, uint32_t length, uint32_t npsn,
                                               struct ha_sge *sge, int num_sge, unsigned send_flags)
{
    const struct uct_ha_lane *lane   = flow->go.lane;
    const struct ha_log_lane *of_log = flow->go.of_log;
    struct ha_log            *log    = &flow->tx.log;
    int                       silent = (flags & HA_OP_FLAG_QUIET) && of_log->silent < flow->go.silent_max;
    unsigned                  slot   = flow->go.slot;
    struct ha_send            send;
    int                       status;

    send_flags |= silent ? HA_SEND_SILENT : 0;
    uct_ha_tx_describe(flow, txop, lane, slot, log->tail, op, send_flags, &send);
    send.sge     = sge;
    send.num_sge = num_sge;
    ha_log_draft(log, of_log, (int)slot, kind, flags, length, npsn);
    status = ha_rc_post_send(lane->rc, &send);
    if (ucs_unlikely(status != 0)) {
        uct_ha_tx_not_taken(flow, kind, flags, status);
        return;
    }
    ha_log_enter(log, flow->go.of_log, flow->go.slot, kind, flags, npsn, silent);
    flow->flows->outstanding++;
    flow->go.room->sends++;
    flow->go.lane->sends++;
    if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {
        uct_ha_attention_posted(flow->road.conn);
    }
}

/* `length` bytes that are in the entry; they fit into one packet. `some`: there are any. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_short(struct uct_ha_flow *flow, int go, struct uct_ha_txop *txop, unsigned op,
                                                enum ha_op_kind kind, uint32_t length, int some)
{
    struct ha_sge sge;

    if (ucs_unlikely(!go)) {
        uct_ha_tx_send(flow, kind, HA_OP_FLAG_QUIET);
        return;
    }
    sge.addr   = (uintptr_t)txop->bytes;
    sge.length = length;
    uct_ha_go_post(flow, txop, op, kind, HA_OP_FLAG_QUIET, length, 1, &sge, some, HA_SEND_INLINE);
}

/* Are all pieces known to the rail? Then `sge` says how. */
static UCS_F_ALWAYS_INLINE int uct_ha_go_sge(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop,
                                             unsigned pieces, struct ha_sge *sge)
{
    unsigned i = 0;

    do {
        if (ucs_unlikely(uct_ha_piece_sge(&txop->piece[i], flow->go.slot, flow->go.rail_no, &sge[i]) != 0)) {
            return 0;
        }
    } while (++i < pieces);
    return 1;
}

/* Pieces of registered memory, of a light operation for which the short way is open. */
static UCS_F_ALWAYS_INLINE void uct_ha_go_light(struct uct_ha_flow *flow, struct uct_ha_txop *txop, unsigned op,
                                                enum ha_op_kind kind, unsigned flags, unsigned pieces, uint32_t length)
{
    struct ha_sge sge[UCT_HA_IOV_MAX];

    if (ucs_unlikely(!uct_ha_go_sge(flow, txop, pieces, sge))) {
        uct_ha_tx_send(flow, kind, flags);
        return;
    }
    uct_ha_go_post(flow, txop, op, kind, flags, length, uct_ha_go_packets(flow, length), sge, (int)pieces, 0);
}

static UCS_F_ALWAYS_INLINE void uct_ha_go_pieces(struct uct_ha_flow *flow, int go, struct uct_ha_txop *txop,
                                                 unsigned op, enum ha_op_kind kind, unsigned flags, unsigned pieces,
                                                 uint32_t length)
{
    if (ucs_unlikely(!go || length > flow->go.light)) {
        uct_ha_tx_send(flow, kind, flags);
        return;
    }
    uct_ha_go_light(flow, txop, op, kind, flags, pieces, length);
}

#endif
