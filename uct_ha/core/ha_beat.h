/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_BEAT_H_
#define HA_BEAT_H_

/*
 * How long may a rail leave probes unanswered before that means something? As long
 * as its answers have taken of late, twice over: a rail full of data, or a
 * peer whose processor was away, answers late and on one rail sooner than on the
 * other. The longest round trip fades by an eighth with every round of probes.
 *
 * A zeroed struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

struct ha_beat {
    uint64_t peak;  /* longest round trip of late */
    uint64_t since; /* the first probe without an answer was sent then; 0 = none */
};

/* A probe goes out while `missed` before it have had no answer. */
static inline void ha_beat_ask(struct ha_beat *beat, unsigned missed, uint64_t now)
{
    beat->peak -= beat->peak / 8;
    if (missed == 0 || beat->since == 0) {
        beat->since = now;
    }
}

/* An answer, to a probe that is not known to be younger than the first open one. */
static inline void ha_beat_answer(struct ha_beat *beat, uint64_t now)
{
    uint64_t rtt = beat->since == 0 ? 0 : now - beat->since;

    if (rtt > beat->peak) {
        beat->peak = rtt;
    }
    beat->since = 0;
}

/* Has this rail been silent for too long, seen how fast both have been? */
static inline int ha_beat_is_silent(const struct ha_beat *beat, const struct ha_beat *other, uint64_t now)
{
    uint64_t peak = beat->peak > other->peak ? beat->peak : other->peak;

    return beat->since != 0 && now - beat->since >= 2 * peak;
}

#endif
