/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_RTO_H_
#define HA_RTO_H_

/*
 * How long a lane may be without progress before it is suspected. Three false
 * alarms in a row widen it by half, up to a maximum; a calm period narrows it
 * again by the same step, down to where it began. Pure; times in nanoseconds.
 */

#include <stdint.h>

#define HA_RTO_FALSE_ALARM_NS 100000000ull   /* recovered so soon: nothing was wrong */
#define HA_RTO_CALM_NS        30000000000ull /* without any alarm */
#define HA_RTO_ALARMS         3u

struct ha_rto {
    uint64_t value; /* in force */
    uint64_t base, max;
    uint64_t calm_since; /* last alarm or last step of decay */
    unsigned false_alarms;
};

static inline void ha_rto_init(struct ha_rto *rto, uint64_t base, uint64_t max, uint64_t now)
{
    rto->value        = base;
    rto->base         = base;
    rto->max          = max > base ? max : base;
    rto->calm_since   = now;
    rto->false_alarms = 0;
}

/* The RTO struck and work went on after `recovery`. Returns 1 when it was a
 * false alarm. */
static inline int ha_rto_alarm(struct ha_rto *rto, uint64_t recovery, uint64_t now)
{
    uint64_t wider = rto->value + rto->value / 2;

    rto->calm_since = now;
    if (recovery >= HA_RTO_FALSE_ALARM_NS) {
        rto->false_alarms = 0;
        return 0;
    }
    if (++rto->false_alarms == HA_RTO_ALARMS) {
        rto->false_alarms = 0;
        rto->value        = wider < rto->max ? wider : rto->max;
    }
    return 1;
}

/* Call now and then. */
static inline void ha_rto_calm(struct ha_rto *rto, uint64_t now)
{
    uint64_t narrower = rto->value - rto->value / 3;

    if (now - rto->calm_since < HA_RTO_CALM_NS) {
        return;
    }
    rto->calm_since   = now;
    rto->false_alarms = 0;
    rto->value        = narrower > rto->base ? narrower : rto->base;
}

#endif
