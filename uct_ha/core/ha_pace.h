/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PACE_H_
#define HA_PACE_H_

/*
 * At most `burst` at once and one per `interval` in the long run. A zeroed
 * struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

struct ha_pace {
    uint64_t full_at; /* then as many as `burst` may go at once again */
};

/* 1 = go ahead, 0 = not now. */
static inline int ha_pace_take(struct ha_pace *pace, unsigned burst, uint64_t interval, uint64_t now)
{
    uint64_t full_at = pace->full_at > now ? pace->full_at : now;

    if (full_at - now > (burst - 1) * interval) {
        return 0;
    }
    pace->full_at = full_at + interval;
    return 1;
}

#endif
