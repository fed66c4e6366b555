/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/settle.h"

#include "base/stats.h"
#include "lane/ledger.h"

static void ask_run(struct uct_ha_job *job)
{
    struct uct_ha_lane  *lane  = ucs_container_of(job, struct uct_ha_lane, job);
    struct uct_ha_lanes *lanes = lane->lanes;
    uint32_t             psn;
    int                  status = ha_rc_final_psn(lane->rc, &psn);

    pthread_mutex_lock(&lanes->wake.lock);
    lane->asking     = 0;
    lane->answer     = status;
    lane->answer_psn = psn;
    if (lane->road != NULL && !lanes->leaving) {
        lanes->answered(lane);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
}

void uct_ha_settle_ask_locked(struct uct_ha_lane *lane, int final)
{
    if (lane->asking || lane->fencing) {
        return;
    }
    lane->asking      = 1;
    lane->asked_final = final != 0;
    lane->job.owner   = lane->lanes;
    lane->job.run     = ask_run;
    uct_ha_job_post(UCT_HA_JOB_FENCE, lane->lanes->rail_no[lane->slot], &lane->job);
}

void uct_ha_settle_read(struct uct_ha_lane *lane, struct ha_event *event)
{
    event->proof = HA_PROOF_EMPTY;
    if (!lane->connected) {
        return; /* no packet can have been accepted */
    }
    event->proof    = lane->proof;
    event->received = uct_ha_lane_received(lane);
    event->psn      = lane->answer_psn;
    if (lane->final || (lane->proof == HA_PROOF_PSN && (lane->lanes->gone[lane->slot] || lane->answer != 0)) ||
        (lane->proof == HA_PROOF_LEDGER && uct_ha_ledger_read(lane, &event->psn) != 0)) {
        event->proof = HA_PROOF_NONE;
    }
}

void uct_ha_settle_tell(const struct uct_ha_lane *lane, const struct ha_event *event)
{
    UCT_HA_STATS_ADD(proofs_psn, event->proof == HA_PROOF_PSN);
    UCT_HA_STATS_ADD(proofs_count, event->proof == HA_PROOF_COUNT);
    UCT_HA_STATS_ADD(proofs_ledger, event->proof == HA_PROOF_LEDGER);
    UCT_HA_STATS_ADD(proofs_none, event->proof == HA_PROOF_NONE);
    if (ucs_unlikely(lane->lanes->config->trace)) {
        ucs_warn("ha_rc [HA-190]: trace: conn %u lane %u.%u proves by %s: word 0x%06x, received %u", lane->road->id,
                 lane->slot, lane->gen, ha_proof_name(event->proof), event->psn, event->received);
    }
}
