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
 * answered quickly a few times. So for HA_BEAT_BUSY rounds from then on a silence has to be HA_BEAT_LATE times as long
 * as that one was. A rail that is dead meanwhile is left when the card gives up.
 *
 * A zeroed struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

#define HA_BEAT_BUSY 32u
#define HA_BEAT_LATE 16u

struct ha_beat {
    uint64_t peak;    /* longest silence of late: from a first open probe to any answer */
    uint64_t since;   /* the first probe after the last answer was sent then; 0 = none */
    uint64_t late;    /* how long both rails had been silent before this one answered, at most */
    uint64_t late_at; /* the latest time that this was so; 0 = never */
};

/* A probe goes out while `missed` before it have had no answer. */
static inline void ha_beat_ask(struct ha_beat *beat, unsigned missed, uint64_t now)
{
    beat->peak -= beat->peak / 8;
    if (missed == 0 || beat->since == 0) {
        beat->since = now;
    }
}

static inline int ha_beat_is_busy(const struct ha_beat *beat, uint64_t round, uint64_t now)
{
    return beat->late_at != 0 && now - beat->late_at < HA_BEAT_BUSY * round;
}

/* An answer, to whichever probe; the next one is asked a `round` later. */
static inline void ha_beat_answer(struct ha_beat *beat, const struct ha_beat *other, uint64_t round, uint64_t now)
{
    uint64_t silence = beat->since == 0 ? 0 : now - beat->since;
    uint64_t both    = other->since == 0 ? 0 : now - other->since;

    both = both < silence ? both : silence;
    if (both >= round) {
        beat->late    = ha_beat_is_busy(beat, round, now) ? beat->late - beat->late / 8 : 0;
        beat->late    = beat->late > both ? beat->late : both;
        beat->late_at = now;
    }
    if (silence > beat->peak) {
        beat->peak = silence;
    }
    beat->since = 0;
}

/* Has this rail been silent for too long, seen how long both have been and yet answered? */
static inline int ha_beat_is_silent(const struct ha_beat *beat, const struct ha_beat *other, uint64_t round,
                                    uint64_t now)
{
    uint64_t peak = beat->peak > other->peak ? beat->peak : other->peak;
    uint64_t late = ha_beat_is_busy(other, round, now) ? other->late : 0;

    return beat->since != 0 && now - beat->since >= 2 * peak && now - beat->since >= HA_BEAT_LATE * late;
}

#endif
