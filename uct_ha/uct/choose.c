/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/choose.h"

#include "lane/selftest.h"

static ucs_status_t choose_proof(struct uct_ha_iface *iface, int slot)
{
    unsigned                      mode = iface->config.proof;
    struct uct_ha_selftest_result test;

    iface->lanes.proof[slot] = mode == UCT_HA_PROOF_COUNT    ? HA_PROOF_COUNT
                               : mode == UCT_HA_PROOF_LEDGER ? HA_PROOF_LEDGER
                                                             : HA_PROOF_PSN;
    if (mode == UCT_HA_PROOF_COUNT || mode == UCT_HA_PROOF_LEDGER) {
        ucs_debug("ha_rc: %s: proof %s, as configured", ha_rail_name(iface->lanes.rail[slot]),
                  ha_proof_name(iface->lanes.proof[slot]));
        return UCS_OK;
    }
    test = uct_ha_selftest(iface->lanes.rail[slot]);
    if (mode == UCT_HA_PROOF_PSN && test.verdict == UCT_HA_SELFTEST_FAILED) {
        ucs_error("ha_rc [HA-318]: UCX_HA_RC_PROOF=psn, but %s does not prove by packet numbers: %s; use "
                  "auto or count",
                  ha_rail_name(iface->lanes.rail[slot]), test.why);
        return UCS_ERR_UNSUPPORTED;
    }
    if (mode == UCT_HA_PROOF_AUTO && test.verdict != UCT_HA_SELFTEST_PASSED) {
        iface->lanes.proof[slot] = HA_PROOF_COUNT;
    }
    ucs_debug("ha_rc: %s: proof %s, self-test: %s (%.1f ms)", ha_rail_name(iface->lanes.rail[slot]),
              ha_proof_name(iface->lanes.proof[slot]), test.why, (double)test.ns / 1e6);
    return UCS_OK;
}

static ucs_status_t choose_proofs(struct uct_ha_iface *iface)
{
    ucs_status_t status = UCS_OK;

    iface->pairs.caps = HA_CAP_PROOF_PSN;
    for (int s = 0; s < iface->lanes.slots && status == UCS_OK; s++) {
        status = choose_proof(iface, s);
        if (iface->lanes.proof[s] != HA_PROOF_PSN) {
            iface->pairs.caps &= ~HA_CAP_PROOF_PSN;
            iface->pairs.caps |= iface->lanes.proof[s] == HA_PROOF_COUNT ? HA_CAP_COUNTED : HA_CAP_LEDGER;
        }
    }
    return status;
}

/* Atomics by the card: what it cannot do, or cannot prove, is done by messages
 * as without the knob. Towards each peer it is the peer's choice that counts. */
static void choose_atomics(struct uct_ha_iface *iface)
{
    const struct ha_rail_limits *first = ha_rail_limits(iface->lanes.rail[0]);

    if (iface->config.atomics != UCT_HA_ATOMICS_HW) {
        return;
    }
    for (int s = 0; s < iface->lanes.slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->lanes.rail[s]);

        if (limits->atomics == HA_ATOMICS_NONE || limits->max_rd_init == 0 || limits->max_rd_resp == 0) {
            ucs_warn("ha_rc [HA-319]: UCX_HA_RC_ATOMICS=hw, but %s executes no atomics; using sw",
                     ha_rail_name(iface->lanes.rail[s]));
            return;
        }
        if (iface->lanes.proof[s] == HA_PROOF_COUNT) {
            ucs_warn("ha_rc [HA-319]: UCX_HA_RC_ATOMICS=hw needs a proof that covers them, and %s proves by "
                     "count; using sw",
                     ha_rail_name(iface->lanes.rail[s]));
            return;
        }
        if (limits->atomics == HA_ATOMICS_CARD && limits->node_guid != first->node_guid) {
            ucs_diag("ha_rc [HA-320]: UCX_HA_RC_ATOMICS=hw: %s and %s are two cards; atomics that reach a "
                     "word through both are not atomic to each other",
                     ha_rail_name(iface->lanes.rail[0]), ha_rail_name(iface->lanes.rail[s]));
        }
    }
    iface->pairs.caps |= HA_CAP_ATOMIC_HW;
}

ucs_status_t uct_ha_choose(struct uct_ha_iface *iface)
{
    ucs_status_t status = choose_proofs(iface);

    choose_atomics(iface);
    return status;
}
