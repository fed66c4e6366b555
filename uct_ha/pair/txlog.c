/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/txlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 64u   /* entries; a power of two */
#define RINGS    8192u /* ... of all logs, while these are few: they fit into the cache of a core */

/* Both: of the second one nothing is touched before it is needed. */
static struct uct_ha_txop *make_rings(uint32_t length)
{
    size_t              first = length * sizeof(struct uct_ha_txop);
    struct uct_ha_txop *ring  = aligned_alloc(UCT_HA_LINE, first + length * sizeof(struct uct_ha_more));

    return ring == NULL ? NULL : memset(ring, 0, first);
}

/* To begin with: the whole of it for few, little for each of many. */
static uint32_t first_ring(uint32_t length, uint32_t others)
{
    while (length > RING_MIN && length > RINGS / (others + 1)) {
        length /= 2;
    }
    return length;
}

int uct_ha_txlog_open(struct uct_ha_txlog *tx, uint32_t length, uint32_t others)
{
    uint32_t            first = first_ring(length, others);
    struct uct_ha_txop *ring  = make_rings(first);

    tx->length = length;
    if (ring == NULL) {
        return -ENOMEM;
    }
    ha_log_init_apart(&tx->log, &ring->core, sizeof(*ring), first);
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
    struct uct_ha_txop *ring, *old = uct_ha_txlog_op(tx, 0);
    struct uct_ha_more *more;

    if (length == tx->length) {
        return -ENOSPC;
    }
    ring = make_rings(2 * length);
    if (ring == NULL) {
        return -ENOMEM;
    }
    more = (struct uct_ha_more *)(void *)(ring + 2 * length);
    for (uint32_t index = tx->log.head; index != tx->log.tail; index++) {
        i = index & (2 * length - 1);
        move(uct_ha_txlog_op(tx, index), &ring[i], &more[i]);
    }
    ha_log_move(&tx->log, &ring->core, 2 * length);
    free(old);
    return 0;
}

void uct_ha_txlog_close(struct uct_ha_txlog *tx)
{
    free(tx->log.ops);
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
