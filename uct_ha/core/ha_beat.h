/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_BEAT_H_
#define HA_BEAT_H_

/*
 * How long may a rail leave probes unanswered before that means something? Twice as
 * long as any silence of late that ended with an answer, on either rail: a rail full of data, or
 * a peer whose processor was away, answers late and on one rail sooner than on the
 * other. The longest such silence fades by an eighth with every round of probes.
 *
 * Both rails silent for a whole round and more, and then an answer on one: that is a host without a processor. What
 * runs there runs by turns, and one rail may have its turn ten times as late as the other, long after the other one has
 * answered quickly a few times. So a silence has to be HA_BEAT_LATE times as long as that was; which is forgotten
 * slowly, by a part in HA_BEAT_FADE with every round. A rail that is dead meanwhile is left when the card gives up.
 *
 * A zeroed struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

#define HA_BEAT_LATE 16u
#define HA_BEAT_FADE 64u

struct ha_beat {
    uint64_t peak;  /* longest silence of late: from a first open probe to any answer */
    uint64_t since; /* the first probe after the last answer was sent then; 0 = none */
    uint64_t late;  /* how long both rails had been silent before this one answered, at most */
};

/* A probe goes out while `missed` before it have had no answer. */
static inline void ha_beat_ask(struct ha_beat *beat, unsigned missed, uint64_t now)
{
    beat->peak -= beat->peak / 8;
    beat->late -= beat->late / HA_BEAT_FADE;
    if (missed == 0 || beat->since == 0) {
        beat->since = now;
    }
}

/* An answer, to whichever probe; the next one is asked a `round` later. */
static inline void ha_beat_answer(struct ha_beat *beat, const struct ha_beat *other, uint64_t round, uint64_t now)
{
    uint64_t silence = beat->since == 0 ? 0 : now - beat->since;
    uint64_t both    = other->since == 0 ? 0 : now - other->since;

    both = both < silence ? both : silence;
    if (both >= round && both > beat->late) {
        beat->late = both;
    }
    if (silence > beat->peak) {
        beat->peak = silence;
    }
    beat->since = 0;
}

/* Has this rail been silent for too long, seen how long both have been and yet answered? */
static inline int ha_beat_is_silent(const struct ha_beat *beat, const struct ha_beat *other, uint64_t now)
{
    uint64_t peak = beat->peak > other->peak ? beat->peak : other->peak;
    uint64_t late = beat->late > other->late ? beat->late : other->late;

    return beat->since != 0 && now - beat->since >= 2 * peak && now - beat->since >= HA_BEAT_LATE * late;
}

#endif
