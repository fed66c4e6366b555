/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/settle.h"

#include "base/stats.h"
#include "lane/ledger.h"

void uct_ha_settle_read(struct uct_ha_lane *lane, struct ha_event *event)
{
    event->proof = HA_PROOF_EMPTY;
    if (!lane->connected) {
        return; /* no packet can have been accepted */
    }
    event->proof    = lane->proof;
    event->received = __atomic_load_n(&lane->received, __ATOMIC_RELAXED);
    if (lane->final || (lane->proof == HA_PROOF_PSN && ha_rc_final_psn(lane->rc, &event->psn) != 0) ||
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
