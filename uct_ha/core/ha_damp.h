/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_DAMP_H_
#define HA_DAMP_H_

/*
 * How long a rail that has failed is left alone before lanes are built on it
 * again: `base` after its first failure, twice as long after each further one,
 * up to `max`. Calm is rewarded: for each HA_DAMP_CALM_NS (or hold, if that is
 * longer) without a failure after a hold is over, one failure is forgotten.
 *
 * Many lanes die with one failure, not all in the same moment. One that was
 * built before the latest failure was counted says nothing new.
 *
 * Pure; times in nanoseconds.
 */

#include <stdint.h>

#define HA_DAMP_CALM_NS 10000000000ull

struct ha_damp {
    uint64_t base, max;
    uint64_t flap_at;    /* the latest failure that was counted */
    uint64_t calm_since; /* end of its hold, or the last time one was forgotten */
    unsigned flaps;
};

static inline void ha_damp_init(struct ha_damp *damp, uint64_t base, uint64_t max)
{
    damp->base       = base;
    damp->max        = max > base ? max : base;
    damp->flap_at    = 0;
    damp->calm_since = 0;
    damp->flaps      = 0;
}

/* The present hold, counted from the latest failure. */
static inline uint64_t ha_damp_hold(const struct ha_damp *damp)
{
    uint64_t hold = damp->flaps == 0 ? 0 : damp->base;

    for (unsigned i = 1; i < damp->flaps && hold < damp->max; i++) {
        hold *= 2;
    }
    return hold < damp->max ? hold : damp->max;
}

/* Something that was built at `born` failed. Returns 1 when that is news. */
static inline int ha_damp_flap(struct ha_damp *damp, uint64_t born, uint64_t now)
{
    if (damp->flap_at != 0 && born <= damp->flap_at) {
        return 0;
    }
    if (ha_damp_hold(damp) < damp->max) {
        damp->flaps++;
    }
    damp->flap_at    = now;
    damp->calm_since = now + ha_damp_hold(damp);
    return 1;
}

/* What is left of the hold. */
static inline uint64_t ha_damp_left(const struct ha_damp *damp, uint64_t now)
{
    uint64_t until = damp->flap_at + ha_damp_hold(damp);

    return now < until ? until - now : 0;
}

/* Call now and then. */
static inline void ha_damp_calm(struct ha_damp *damp, uint64_t now)
{
    uint64_t hold = ha_damp_hold(damp);
    uint64_t step = hold > HA_DAMP_CALM_NS ? hold : HA_DAMP_CALM_NS;

    if (damp->flaps > 0 && now >= damp->calm_since && now - damp->calm_since >= step) {
        damp->flaps--;
        damp->calm_since = now;
    }
}

#endif
