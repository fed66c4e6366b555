/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PROBE_H_
#define HA_PROBE_H_

/*
 * How many probes may go out, however many peers there are: `rate` per second in the long run. One half is earned by
 * probes that cannot wait, and saved for up to HA_PROBE_SAVE_S seconds: many peers fall silent at once, and
 * rarely. The other half, and what the first cannot save any more, is for those whose turn it is; a part of it goes
 * first to peers that are in doubt, which may be so for ever.
 *
 * A zeroed struct is ready, and full. Pure; times in nanoseconds, amounts in billionths of a probe.
 */

#include <stdint.h>

#define HA_PROBE_ONE    1000000000ull
#define HA_PROBE_SAVE_S 10u

enum ha_probe_class {
    HA_PROBE_URGENT, /* work is under way there, and no sign of life */
    HA_PROBE_DOUBT,  /* the latest question had no answer */
    HA_PROBE_TURN,   /* everybody's */
    HA_PROBE_CLASSES,
};

struct ha_probe {
    uint64_t at; /* earned until then */
    uint64_t urgent, turn;
    uint64_t kept; /* of `turn`, not for those in doubt */
};

/* At the beginning of a round. */
static inline void ha_probe_earn(struct ha_probe *probe, uint64_t rate, uint64_t now)
{
    uint64_t full   = HA_PROBE_SAVE_S * rate * HA_PROBE_ONE;
    uint64_t took   = now > probe->at ? now - probe->at : 0;
    uint64_t earned = (took < 2 * HA_PROBE_SAVE_S * HA_PROBE_ONE ? took : 2 * HA_PROBE_SAVE_S * HA_PROBE_ONE) * rate;

    probe->at = now;
    probe->urgent += earned / 2;
    probe->turn += earned - earned / 2;
    if (probe->urgent > full) {
        probe->turn += probe->urgent - full;
        probe->urgent = full;
    }
    if (probe->turn > rate * HA_PROBE_ONE) {
        probe->turn = rate * HA_PROBE_ONE;
    }
    probe->kept = probe->turn / 2;
}

/* May `count` probes go out at once? Then they are taken. */
static inline int ha_probe_take(struct ha_probe *probe, enum ha_probe_class kind, unsigned count)
{
    uint64_t price = count * HA_PROBE_ONE;

    if (kind == HA_PROBE_URGENT && probe->urgent >= price) {
        probe->urgent -= price;
        return 1;
    }
    if (probe->turn < price + (kind == HA_PROBE_DOUBT ? probe->kept : 0)) {
        return 0;
    }
    probe->turn -= price;
    return 1;
}

#endif
