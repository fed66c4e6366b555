/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/end.h"

#include "base/stats.h"
#include "data/amo.h"
#include "data/retire.h"
#include "pair/attention.h"
#include "pair/fact.h"

#include <stdlib.h>

void uct_ha_end_report(struct uct_ha_flow *flow)
{
    if (flow->reported || !flow->is_held || flow->canceled) {
        return;
    }
    flow->reported = 1;
    UCT_HA_STATS_ADD(ep_errors, 1);
    uct_iface_handle_ep_err(&flow->flows->base->super, &flow->super.super, flow->status);
}

/* What a card may still come to is not used again. */
static void stain(struct uct_ha_flow *flow)
{
    const struct uct_ha_lane *lane;

    for (int s = 0; s < HA_SLOTS; s++) {
        lane = flow->road.lane[s];
        if (lane != NULL && !lane->drained) {
            uct_ha_txlog_stain(&flow->tx, s, lane->gen);
        }
    }
}

void uct_ha_end_fail(struct uct_ha_flow *flow, ucs_status_t status)
{
    int owed = ha_log_used(&flow->tx.log) > 0 || !ucs_list_is_empty(&flow->flushes) || uct_ha_flow_atomics(flow) > 0 ||
               !ucs_list_is_empty(&flow->pending);

    flow->status = status;
    __atomic_store_n(&flow->tx.dead, 1, __ATOMIC_RELAXED);
    uct_ha_flow_stop(flow);
    stain(flow);
    ha_log_cancel(&flow->tx.log);
    uct_ha_amo_cancel(flow);
    uct_ha_tx_retire(flow);
    /* A peer that has taken its leave while nothing is under way is simply
     * done. The next operation, if there is one, will tell. */
    if (owed || !uct_ha_fact_has_left(flow->road.conn)) {
        uct_ha_end_report(flow);
    }
    if (!flow->is_held) {
        uct_ha_attention(flow->road.conn); /* nobody will close it */
    }
}

static void let_go_op(struct uct_ha_txop *txop)
{
    uct_completion_t *comp = uct_ha_txop_comp(txop);

    if (txop->pieces == 0 || uct_ha_txop_is_copy(txop)) {
        return; /* its bytes have to go out yet, and its end concerns nobody */
    }
    txop->more->comp   = NULL;
    txop->more->unpack = NULL;
    if (comp != NULL) {
        uct_ha_completion_invoke(comp, UCS_ERR_CANCELED);
    }
}

void uct_ha_end_let_go(struct uct_ha_flow *flow)
{
    struct uct_ha_flush *flush;
    uct_completion_t    *comp;

    for (uint32_t i = flow->tx.log.head; i != flow->tx.log.tail; i++) {
        let_go_op(uct_ha_txlog_op(&flow->tx, i));
    }
    uct_ha_amo_let_go(flow);
    while (!ucs_list_is_empty(&flow->flushes)) {
        flush = ucs_list_extract_head(&flow->flushes, struct uct_ha_flush, list);
        comp  = flush->comp;
        free(flush);
        uct_ha_completion_invoke(comp, UCS_ERR_CANCELED);
    }
}
