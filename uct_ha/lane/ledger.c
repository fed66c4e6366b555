/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/ledger.h"

#include "core/ha_psn.h"

#include <errno.h>
#include <stdlib.h>

#define LINE 64 /* a cache line of its own */

/* Behind the word, in a line of its own. */
struct ending {
    struct uct_ha_job job;
    struct ha_mr     *mr;
};

_Static_assert(sizeof(struct ending) <= LINE, "it has one line");

int uct_ha_ledger_init(struct uct_ha_ledger *ledger, struct ha_rail *rail)
{
    void *word;
    int   status;

    if (posix_memalign(&word, LINE, 2 * LINE) != 0) {
        return -ENOMEM;
    }
    status = ha_mr_reg(rail, word, LINE, HA_ACCESS_REMOTE_PUT, &ledger->mr);
    if (status != 0) {
        free(word);
        return status;
    }
    ledger->word = word;
    return 0;
}

void uct_ha_ledger_end(struct uct_ha_ledger *ledger)
{
    if (ledger->word != NULL) {
        ha_mr_dereg(ledger->mr);
        free(ledger->word);
        ledger->word = NULL;
    }
}

static void end(struct uct_ha_job *job)
{
    struct ending *ending = ucs_container_of(job, struct ending, job);

    ha_mr_dereg(ending->mr);
    free(UCS_PTR_BYTE_OFFSET(ending, -LINE));
}

void uct_ha_ledger_leave(struct uct_ha_ledger *ledger, struct uct_ha_lanes *lanes, int slot)
{
    struct ending *ending;

    if (ledger->word == NULL) {
        return;
    }
    ending            = UCS_PTR_BYTE_OFFSET(ledger->word, LINE);
    ending->mr        = ledger->mr;
    ending->job.owner = lanes;
    ending->job.run   = end;
    ledger->word      = NULL;
    uct_ha_job_post(UCT_HA_JOB_DESTROY, lanes->rail_no[slot], &ending->job);
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
                           .flags       = HA_SEND_INLINE | HA_SEND_TELL,
                           .remote_addr = lane->mark_addr,
                           .rkey        = lane->mark_key};

    return ha_rc_error(ha_rc_post_send(lane->rc, &send));
}
