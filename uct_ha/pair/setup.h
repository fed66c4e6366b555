/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SETUP_H_
#define UCT_HA_SETUP_H_

/*
 * How connections come up, for the counters `connect*` and `accept*` of
 * struct uct_ha_stats: from the creation of a connection to the first lane
 * that can carry work, or to its end before that.
 *
 *   begin ──▶ under way ──┬─ follow: a lane works ──▶ counted, with its latency
 *                         ├─ follow: it failed ─────▶ counted as failed
 *                         └─ end: dropped ──────────▶ no longer under way, nothing counted
 */

#include <stdint.h>

struct uct_ha_setup {
    uint64_t since;    /* when it began; 0 = decided */
    uint8_t  accepted; /* the peer began it */
};

void uct_ha_setup_begin(struct uct_ha_setup *setup, int accepted, uint64_t now);

/* `works`: a lane carries work now; `failed`: the pair has ended with an error.
 * Cheap when the matter is decided. */
void uct_ha_setup_follow(struct uct_ha_setup *setup, int works, int failed, uint64_t now);

void uct_ha_setup_end(struct uct_ha_setup *setup);

/* Is a connection of this process without a lane, or has one got it only just, so that its
 * first messages may be on their way? */
int uct_ha_setup_is_busy(uint64_t now);

/* Place of a latency in uct_ha_stats.setup_hist: 0 = below 1 ms, each next one
 * twice as long, the last one everything longer. */
unsigned uct_ha_setup_bin(uint64_t ns);

#endif
