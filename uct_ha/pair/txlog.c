/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/txlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RINGS 8192u /* entries of all logs, while these are few: they fit into the cache of a core */

struct rings {
    struct uct_ha_txop *first;
    struct uct_ha_more *second;
};

static void free_ring(struct uct_ha_slab *slab, struct uct_ha_txop *ring, uint32_t length)
{
    if (length == UCT_HA_RING_FIRST && ring != NULL) {
        uct_ha_slab_free(slab, ring);
    } else {
        free(ring);
    }
}

/* Of the second one nothing is touched before it is needed. 0 or -ENOMEM. */
static int make_rings(struct uct_ha_slab *slab, uint32_t length, struct rings *rings)
{
    size_t bytes = length * sizeof(*rings->first);

    rings->first  = length == UCT_HA_RING_FIRST ? uct_ha_slab_alloc(slab) : aligned_alloc(UCT_HA_LINE, bytes);
    rings->second = aligned_alloc(UCT_HA_LINE, length * sizeof(*rings->second));
    if (rings->first == NULL || rings->second == NULL) {
        free_ring(slab, rings->first, length);
        free(rings->second);
        return -ENOMEM;
    }
    memset(rings->first, 0, bytes);
    return 0;
}

/* To begin with: the whole of it for few, little for each of many. */
static uint32_t first_ring(uint32_t length, uint32_t others)
{
    while (length > UCT_HA_RING_FIRST && length > RINGS / (others + 1)) {
        length /= 2;
    }
    return length;
}

int uct_ha_txlog_open(struct uct_ha_txlog *tx, uint32_t length, uint32_t others, struct uct_ha_slab *slab)
{
    uint32_t     first = first_ring(length, others);
    struct rings rings;

    tx->length = length;
    tx->slab   = slab;
    if (make_rings(slab, first, &rings) != 0) {
        return -ENOMEM;
    }
    tx->more = rings.second;
    ha_log_init_apart(&tx->log, &rings.first->core, sizeof(*rings.first), first);
    return 0;
}

static void move(const struct uct_ha_txop *from, struct uct_ha_txop *to, struct uct_ha_more *more)
{
    *to = *from;
    if (!uct_ha_txop_has_more(from)) {
        return;
    }
    *more    = *from->more;
    to->more = more;
    if (to->flags & UCT_HA_TXOP_BOUNCED) {
        more->unpack_arg = to;
    }
}

int uct_ha_txlog_grow(struct uct_ha_txlog *tx)
{
    uint32_t            length = tx->log.mask + 1, i;
    struct uct_ha_txop *old    = uct_ha_txlog_op(tx, 0);
    struct uct_ha_more *more   = tx->more;
    struct rings        rings;

    if (length == tx->length) {
        return -ENOSPC;
    }
    if (make_rings(tx->slab, 2 * length, &rings) != 0) {
        return -ENOMEM;
    }
    for (uint32_t index = tx->log.head; index != tx->log.tail; index++) {
        i = index & (2 * length - 1);
        move(uct_ha_txlog_op(tx, index), &rings.first[i], &rings.second[i]);
    }
    ha_log_move(&tx->log, &rings.first->core, 2 * length);
    tx->more = rings.second;
    free_ring(tx->slab, old, length);
    free(more);
    return 0;
}

void uct_ha_txlog_close(struct uct_ha_txlog *tx)
{
    free_ring(tx->slab, uct_ha_txlog_op(tx, 0), tx->log.mask + 1);
    free(tx->more);
}

void uct_ha_txlog_reject(struct uct_ha_txlog *tx, uint32_t index)
{
    const struct uct_ha_txop *txop = uct_ha_txlog_op(tx, index);

    ha_log_reject(&tx->log, index);
    if (uct_ha_txop_comp(txop) == NULL) {
        tx->fatal = HA_FAIL_REFUSED;
    } else if (ha_send_op_has_imm(txop->op)) {
        tx->sent--; /* the peer will never count it */
    }
}

/* It cannot say that it is in doubt: its endpoint has to. */
static void end_in_doubt(struct uct_ha_txlog *tx, const struct uct_ha_txop *txop, uint32_t id)
{
    static const char *const names[] = {[HA_WRITE]        = "PUT",
                                        [HA_WRITE_IMM]    = "PUT",
                                        [HA_SEND_IMM]     = "message",
                                        [HA_READ]         = "GET",
                                        [HA_COMPARE_SWAP] = "compare-and-swap",
                                        [HA_FETCH_ADD]    = "fetch-add"};

    if (tx->fatal == HA_FAIL_NONE) {
        ucs_error("ha_rc [HA-512]: endpoint %u ends: a %s of %u bytes to 0x%lx was executed or not, nobody can tell, "
                  "and it has no "
                  "completion to say so",
                  id, names[txop->op], txop->core.length, (unsigned long)txop->remote_addr);
    }
    tx->fatal = HA_FAIL_DOUBT;
}

int uct_ha_txlog_doubt(struct uct_ha_txlog *tx, int bound, uint32_t id)
{
    int mute = 0;

    for (uint32_t i = tx->log.head; i != tx->log.tail; i++) {
        const struct ha_op *op   = ha_log_op(&tx->log, i);
        struct uct_ha_txop *txop = uct_ha_txlog_op(tx, i);

        if (op->state != HA_OP_DONE || op->result != HA_RESULT_UNKNOWN || (txop->flags & UCT_HA_TXOP_DOUBT)) {
            continue;
        }
        txop->flags |= UCT_HA_TXOP_DOUBT;
        if (ha_op_consumes_receive(op)) {
            tx->sent--; /* the peer has not counted it, and never will */
        }
        if (bound && uct_ha_txop_comp(txop) == NULL) {
            end_in_doubt(tx, txop, id);
            mute = 1;
        }
    }
    return mute;
}

void uct_ha_txlog_stain(struct uct_ha_txlog *tx, int slot, uint32_t gen)
{
    for (uint32_t i = tx->log.head; i != tx->log.tail; i++) {
        if (ha_op_is_posted_on(ha_log_op(&tx->log, i), slot, gen)) {
            uct_ha_txlog_op(tx, i)->flags |= UCT_HA_TXOP_STAINED;
        }
    }
}
