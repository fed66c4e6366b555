/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/proof.h"

#include "lane/ledger.h"
#include "lane/selftest.h"
#include "base/stats.h"

void uct_ha_proof_read(struct uct_ha_lane *lane, struct ha_event *event)
{
    event->proof = HA_PROOF_EMPTY;
    if (!lane->connected) {
        return; /* no packet can have been accepted */
    }
    event->proof    = lane->proof;
    event->received = __atomic_load_n(&lane->received, __ATOMIC_RELAXED);
    if (lane->final ||
        (lane->proof == HA_PROOF_PSN && ha_rc_final_psn(lane->rc, &event->psn) != 0) ||
        (lane->proof == HA_PROOF_LEDGER && uct_ha_ledger_read(lane, &event->psn) != 0)) {
        event->proof = HA_PROOF_NONE;
    }
}

void uct_ha_proof_tell(const struct uct_ha_lane *lane, const struct ha_event *event)
{
    UCT_HA_STATS_ADD(proofs_psn, event->proof == HA_PROOF_PSN);
    UCT_HA_STATS_ADD(proofs_count, event->proof == HA_PROOF_COUNT);
    UCT_HA_STATS_ADD(proofs_ledger, event->proof == HA_PROOF_LEDGER);
    UCT_HA_STATS_ADD(proofs_none, event->proof == HA_PROOF_NONE);
    if (ucs_unlikely(lane->iface->config.trace)) {
        ucs_warn("ha_rc trace: conn %u lane %u.%u proves by %s: word 0x%06x, received %u",
                 lane->conn->id, lane->slot, lane->gen, ha_proof_name(event->proof), event->psn,
                 event->received);
    }
}

/* ---- choosing ------------------------------------------------------------------ */

static ucs_status_t choose(struct uct_ha_iface *iface, int slot)
{
    unsigned                         mode = iface->config.proof;
    struct uct_ha_selftest_result    test;

    iface->proof[slot] = mode == UCT_HA_PROOF_COUNT  ? HA_PROOF_COUNT :
                         mode == UCT_HA_PROOF_LEDGER ? HA_PROOF_LEDGER : HA_PROOF_PSN;
    if (mode == UCT_HA_PROOF_COUNT || mode == UCT_HA_PROOF_LEDGER) {
        ucs_debug("ha_rc: %s: proof %s, as configured", ha_rail_name(iface->rail[slot]),
                  ha_proof_name(iface->proof[slot]));
        return UCS_OK;
    }
    test = uct_ha_selftest(iface->rail[slot]);
    if (mode == UCT_HA_PROOF_PSN && test.verdict == UCT_HA_SELFTEST_FAILED) {
        ucs_error("ha_rc: UCX_HA_RC_PROOF=psn, but %s does not prove by packet numbers: %s; use "
                  "auto or count", ha_rail_name(iface->rail[slot]), test.why);
        return UCS_ERR_UNSUPPORTED;
    }
    if (mode == UCT_HA_PROOF_AUTO && test.verdict != UCT_HA_SELFTEST_PASSED) {
        iface->proof[slot] = HA_PROOF_COUNT;
    }
    ucs_debug("ha_rc: %s: proof %s, self-test: %s (%.1f ms)", ha_rail_name(iface->rail[slot]),
              ha_proof_name(iface->proof[slot]), test.why, (double)test.ns / 1e6);
    return UCS_OK;
}

ucs_status_t uct_ha_proof_choose(struct uct_ha_iface *iface)
{
    ucs_status_t status = UCS_OK;

    iface->caps = HA_CAP_PROOF_PSN;
    for (int s = 0; s < iface->slots && status == UCS_OK; s++) {
        status = choose(iface, s);
        if (iface->proof[s] != HA_PROOF_PSN) {
            iface->caps &= ~HA_CAP_PROOF_PSN;
            iface->caps |= iface->proof[s] == HA_PROOF_COUNT ? HA_CAP_COUNTED : HA_CAP_LEDGER;
        }
    }
    return status;
}
