/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Kinds of proof (option -K). By packet number a responder says how many packets it has executed. By count, how
 * many receives; then a write consumes one, too. By ledger, receives, and the last mark that it finds: each operation
 * that consumes no receive is followed by a packet of its own that makes the mark.
 */

#include "model.h"

unsigned model_proof(void)
{
    return model_options.proof == HA_PROOF_NONE ? HA_PROOF_PSN : model_options.proof;
}

int model_counts(void)
{
    return model_options.cards > 0 || model_options.proof != HA_PROOF_NONE;
}

int model_slots(void)
{
    return model_options.single ? 1 : HA_SLOTS;
}

uint8_t model_receivers(int x)
{
    uint8_t writes = (uint8_t)(model_ops_of_kind(x, 'W') | model_ops_of_kind(x, 'F'));

    return (uint8_t)(model_ops_of_kind(x, 'S') | (model_proof() == HA_PROOF_COUNT ? writes : 0));
}

unsigned model_mark(int x, unsigned op)
{
    char kind = model_kind(x, op);

    return model_proof() == HA_PROOF_LEDGER && (kind == 'W' || kind == 'F' || kind == 'A');
}

uint32_t model_npsn(const struct ha_op *op)
{
    return ha_log_npsn(op, model_proof() == HA_PROOF_LEDGER ? 0 : model_mtu(0));
}

uint32_t model_word(const struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot];

    return ha_psn_add(model_psn(slot), model_proof() == HA_PROOF_LEDGER ? qp->marks : qp->rx);
}

/* What x has been told by the peer, against what the peer has had. */
const char *model_proof_lie(const struct model_world *w, int x, int slot)
{
    const struct ha_view  *view = &w->side[x].pair.view[slot];
    const struct model_qp *mine = &w->side[x].qp[slot], *its = &w->side[!x].qp[slot];
    unsigned               rx = its->gen == mine->gen ? its->rx : 0;
    int                    lies;

    if (view->proof == HA_PROOF_EMPTY) {
        lies = rx != 0;
    } else if (its->gen != mine->gen) {
        lies = 0;
    } else {
        lies = (ha_proof_has_word(view->proof) && view->rxpsn != model_word(w, !x, slot)) ||
               (ha_proof_has_count(view->proof) && view->received != its->num_msg);
    }
    model_cover[MODEL_COVER_COUNT] += view->proof == HA_PROOF_COUNT;
    model_cover[MODEL_COVER_LEDGER] += view->proof == HA_PROOF_LEDGER;
    return lies ? "I10 the proof that is adopted is not the truth" : 0;
}
