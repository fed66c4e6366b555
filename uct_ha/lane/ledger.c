/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/ledger.h"

#include "core/ha_psn.h"

#include <errno.h>
#include <stdlib.h>

#define LINE 64 /* a cache line of its own */

int uct_ha_ledger_init(struct uct_ha_road *road, int slot)
{
    struct uct_ha_ledger *ledger = &road->ledger[slot];
    void                 *word;
    int                   status;

    if (ledger->word != NULL) {
        return 0;
    }
    if (posix_memalign(&word, LINE, LINE) != 0) {
        return -ENOMEM;
    }
    status = ha_mr_reg(road->lanes->rail[slot], word, LINE, HA_ACCESS_REMOTE_PUT, &ledger->mr);
    if (status != 0) {
        free(word);
        return status;
    }
    ledger->word = word;
    return 0;
}

void uct_ha_ledger_cleanup(struct uct_ha_road *road, int slot)
{
    struct uct_ha_ledger *ledger = &road->ledger[slot];

    if (ledger->word != NULL) {
        ha_mr_dereg(ledger->mr);
        free(ledger->word);
        ledger->word = NULL;
    }
}

static uint64_t mark(const struct uct_ha_lane *lane, uint32_t number)
{
    return (uint64_t)lane->gen << 32 | (number & HA_PSN_MASK);
}

void uct_ha_ledger_begin(struct uct_ha_lane *lane, uint32_t number)
{
    __atomic_store_n(lane->road->ledger[lane->slot].word, mark(lane, number), __ATOMIC_SEQ_CST);
}

int uct_ha_ledger_read(const struct uct_ha_lane *lane, uint32_t *number)
{
    uint64_t word = __atomic_load_n(lane->road->ledger[lane->slot].word, __ATOMIC_SEQ_CST);

    *number = (uint32_t)word & HA_PSN_MASK;
    return word == mark(lane, (uint32_t)word) ? 0 : -EPROTO;
}

int uct_ha_ledger_mark(struct uct_ha_lane *lane, uint64_t wr_id, uint32_t number)
{
    uint64_t       word = mark(lane, number);
    struct ha_sge  sge  = {.addr = (uintptr_t)&word, .length = UCT_HA_LEDGER_MARK};
    struct ha_send send = {.wr_id       = wr_id,
                           .sge         = &sge,
                           .num_sge     = 1,
                           .op          = HA_WRITE,
                           .flags       = HA_SEND_INLINE,
                           .remote_addr = lane->mark_addr,
                           .rkey        = lane->mark_key};

    return ha_rc_post_send(lane->rc, &send);
}
