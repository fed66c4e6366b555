/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_REPORT_H_
#define UCT_HA_REPORT_H_

/*
 * What people read of failovers: one line for all endpoints that left a rail, as soon as no more of them
 * follow, and at most one every 5 s for each rail of the process. Lines of single endpoints are on the
 * level info. Nothing is lost by that: what the limit holds back is summed up in the next line.
 *
 * Process-wide, with a lock of its own; any thread, with the control lock or without.
 */

#include "core/ha_state.h"
#include "verbs/ha_rail.h"

#include <stdint.h>

#define UCT_HA_ADDR_TEXT_MAX 64

/* An endpoint has moved. */
struct uct_ha_move {
    const char *from, *to; /* rails */
    const char *peer;      /* address */
    unsigned    id, epoch;
    unsigned    cause, peer_cause; /* enum ha_cause; the second one if the first is HA_CAUSE_PEER */
    uint64_t    begin;             /* its lane was lost then, */
    uint64_t    silent, took;      /* ... and nothing had come for so long before; ns */
    uint32_t    replayed, retired;
};

/* Interfaces that may have something to say. With the last one everything is said, and forgotten. */
void uct_ha_report_open(void);
void uct_ha_report_close(uint64_t now);

void uct_ha_report_move(const struct uct_ha_move *move, uint64_t now);

/* Write what is ripe; with `all` what waits too. */
void uct_ha_report_flush(uint64_t now, int all);

/* An endpoint ends; `was_bare`: it had been without a standby for long. */
void uct_ha_report_bare_end(int was_bare);

/* What became of a rail since the first interface was opened. */
struct uct_ha_report_rail {
    char     name[HA_RAIL_NAME_MAX];
    unsigned failures, last_cause;
    uint64_t left[HA_CAUSE_LAST]; /* endpoints that left it, by cause, whoever noticed */
};

/* Number `index`; 0, or -1 when there are no more. */
int uct_ha_report_rail(unsigned index, struct uct_ha_report_rail *rail);

/* "10.1.0.7", "LID 7", "fe80::1"; returns buf. */
const char *uct_ha_addr_text(const struct ha_rail_addr *addr, char buf[UCT_HA_ADDR_TEXT_MAX]);

#endif
