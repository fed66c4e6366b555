/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SELFTEST_H_
#define UCT_HA_SELFTEST_H_

/*
 * Does a device report, exactly and up to date, which packet its responder
 * expects next? No standard promises it, so it is tried: a queue pair pair of
 * the rail, connected to itself, sends operations of every kind and asks; then
 * it is stopped in the middle of a burst, and what is in memory is compared
 * with what the device says in the error state.
 *
 * Done when the first interface opens on a device of this model, and kept for
 * the life of the process: before UCX exchanges addresses, so it costs no
 * message anything. A few milliseconds; where the device does not answer,
 * two seconds, and not again for a minute. Nothing but this rail is needed, but its port must be up.
 *
 * Any thread; one test at a time in the process. Blocks.
 */

#include "verbs/ha_rail.h"

enum uct_ha_selftest_verdict {
    UCT_HA_SELFTEST_PASSED,
    UCT_HA_SELFTEST_FAILED,
    UCT_HA_SELFTEST_NOT_RUN, /* the port is down, or the device does not talk to itself: ask again later */
};

struct uct_ha_selftest_result {
    enum uct_ha_selftest_verdict verdict;
    uint64_t                     ns;      /* that it took, 0 = known before */
    char                         why[80]; /* in words */
};

struct uct_ha_selftest_result uct_ha_selftest(struct ha_rail *rail);

#endif
