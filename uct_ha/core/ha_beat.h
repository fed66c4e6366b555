/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_BEAT_H_
#define HA_BEAT_H_

/*
 * How long may a rail leave probes unanswered before that means something? Twice as
 * long as any silence of late that ended with an answer, on either rail: a rail full of data, or
 * a peer whose processor was away, answers late and on one rail sooner than on the
 * other. The longest such silence fades by an eighth with every round of probes.
 *
 * A zeroed struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

struct ha_beat {
    uint64_t peak;  /* longest silence of late: from a first open probe to any answer */
    uint64_t since; /* the first probe after the last answer was sent then; 0 = none */
};

/* A probe goes out while `missed` before it have had no answer. */
static inline void ha_beat_ask(struct ha_beat *beat, unsigned missed, uint64_t now)
{
    beat->peak -= beat->peak / 8;
    if (missed == 0 || beat->since == 0) {
        beat->since = now;
    }
}

/* An answer, to whichever probe. */
static inline void ha_beat_answer(struct ha_beat *beat, uint64_t now)
{
    uint64_t silence = beat->since == 0 ? 0 : now - beat->since;

    if (silence > beat->peak) {
        beat->peak = silence;
    }
    beat->since = 0;
}

/* Has this rail been silent for too long, seen how long both have been and yet answered? */
static inline int ha_beat_is_silent(const struct ha_beat *beat, const struct ha_beat *other, uint64_t now)
{
    uint64_t peak = beat->peak > other->peak ? beat->peak : other->peak;

    return beat->since != 0 && now - beat->since >= 2 * peak;
}

#endif
