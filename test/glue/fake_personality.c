/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Kinds of cards: what of their ways matters to a failover. Sends and receives flush each in their order
 * everywhere; which of the two comes first does not follow from anything, so all are there.
 */

#include "fake_priv.h"

#include <string.h>

#define MIXED 500

static const struct fake_personality table[] = {
    /* nothing is certain */
    {.name = "plain", .forgets = 500, .sends_first = MIXED, .takes_along = MIXED, .says_drained = MIXED},
    /* commands go to the firmware; retries take longer than asked for */
    {.name         = "mlx5",
     .forgets      = 1000,
     .sends_first  = MIXED,
     .command_ms   = 2,
     .max_inline   = 220,
     .max_cqe      = 4194303,
     .atomics      = HA_ATOMICS_CARD,
     .says_drained = 1000,
     .mlx5         = 1},
    /* tells the packet number that it was given; the library makes flushes, sends first */
    {.name        = "irdma",
     .psn         = FAKE_PSN_STALE,
     .forgets     = 1000,
     .sends_first = 1000,
     .command_ms  = 1,
     .max_inline  = 101,
     .max_cqe     = 1048575,
     .atomics     = HA_ATOMICS_NONE,
     .no_srq      = 1},
    /* says that a queue pair is in error whenever one is */
    {.name         = "bnxt_re",
     .forgets      = 1000,
     .sends_first  = 1000,
     .command_ms   = 1,
     .max_inline   = 96,
     .max_cqe      = 65535,
     .atomics      = HA_ATOMICS_CARD,
     .says_drained = 1000,
     .err_event    = 1},
    /* a mailbox for each command */
    {.name         = "hns",
     .forgets      = 1000,
     .sends_first  = MIXED,
     .command_ms   = 3,
     .max_inline   = 64,
     .max_cqe      = 4194303,
     .atomics      = HA_ATOMICS_CARD,
     .says_drained = 1000},
    /* a packet more after the command to stop; a port that goes down takes its queue pairs along with their
     * next send; leaves completions of queue pairs that are gone; says everything about ports twice */
    {.name           = "rxe",
     .forgets        = 0,
     .sends_first    = 0,
     .late           = 1000,
     .max_inline     = 220,
     .max_cqe        = 32767,
     .atomics        = HA_ATOMICS_CARD,
     .port_kills     = HA_WC_FLUSHED,
     .twice          = 1,
     .takes_along    = 1000,
     .retry7_forever = 1},
    {.name           = "rxe-old",
     .forgets        = 0,
     .sends_first    = 1000,
     .late           = 1000,
     .max_inline     = 220,
     .max_cqe        = 32767,
     .atomics        = HA_ATOMICS_CARD,
     .port_kills     = HA_WC_OP_FAILED,
     .twice          = 1,
     .retry7_forever = 1,
     .takes_along    = 1000,
     .late_receive   = 1},
};

const struct fake_personality *const fake_plain = &table[0];

int fake_personality(int index, const char *name)
{
    struct ha_rail *rail = &fake.rail[index];

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strcmp(table[i].name, name) == 0) {
            rail->is                    = &table[i];
            rail->knob[FAKE_PSN]        = table[i].psn;
            rail->knob[FAKE_LATE]       = table[i].late;
            rail->knob[FAKE_HANG_MS]    = table[i].command_ms;
            rail->limits.mlx5           = table[i].mlx5;
            rail->limits.retry7_forever = table[i].retry7_forever;
            rail->limits.max_srq_wr     = table[i].no_srq ? 0 : rail->limits.max_srq_wr;
            if (table[i].max_cqe != 0) {
                rail->limits.max_cqe = table[i].max_cqe < fake.max_cqe ? table[i].max_cqe : fake.max_cqe;
                rail->limits.atomics = table[i].atomics;
                fake_model(index, name);
            }
            return 0;
        }
    }
    return -1;
}

const char *fake_personality_name(unsigned n)
{
    return n < sizeof(table) / sizeof(*table) ? table[n].name : NULL;
}

int fake_port_kills(const struct ha_rc *rc)
{
    return rc->rail->is->port_kills != HA_WC_OK && !rc->rail->port_up;
}
