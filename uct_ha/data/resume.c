/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/resume.h"

#include "data/amo.h"
#include "data/tx.h"

static void leave_backlog(struct uct_ha_flow *flow)
{
    if (flow->backlogged) {
        flow->backlogged = 0;
        ucs_list_del(&flow->backlog_link);
    }
}

void uct_ha_resume(struct uct_ha_flow *flow)
{
    if (flow->tx_slot == HA_NO_SLOT) { /* who gives it a lane resumes it: thousands may wait for one */
        leave_backlog(flow);
        return;
    }
    if (flow->credit_due) {
        uct_ha_tx_credit(flow);
    }
    uct_ha_amo_resume(flow);
    uct_ha_tx_post_waiting(flow);
    if (ha_log_no_backlog(&flow->tx.log) && !flow->credit_due && !uct_ha_amo_owes(flow) && flow->backlogged) {
        leave_backlog(flow);
        if (!flow->is_held || !ucs_list_is_empty(&flow->flushes)) {
            uct_ha_tx_tail(flow);
        }
    }
}

void uct_ha_resume_backlog(struct uct_ha_flows *flows)
{
    struct uct_ha_flow *flow, *next;

    ucs_list_for_each_safe (flow, next, &flows->backlog, backlog_link) {
        uct_ha_resume(flow);
    }
}
