/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_LOSSY_H_
#define HA_LOSSY_H_

/*
 * Is a rail bad, though not dead? It loses probes among those that are answered, and the work on it falls behind, while
 * the other rail loses none. Either alone says nothing: a rail full of data loses probes and moves work; a host that is
 * starved moves little, and is slow to answer on both.
 *
 * A probe is lost when one that was asked later has been answered: a rail keeps the order. One that has no answer yet
 * may only be late: a host that stands still answers all of them afterwards, on one rail sooner than on the other.
 *
 * HA_LOSSY_PROBES of the latest 16 probes lost, none of 32 on the other rail, which answers at present, and
 * in HA_LOSSY_STALLS of the latest 16 rounds with work under way less than half of the norm moved: then it is to be
 * left. The norm is a moving average (weight 1/16) of what moves in a round while no probe is lost. It is not gone back
 * to before it has lost fewer than HA_LOSSY_WELL. Probes that are rare, for there are many peers, tell nothing: who
 * asks forgets what was before a pause (ha_lossy_forget).
 *
 * A zeroed struct is ready. Pure.
 */

#include <stdint.h>

#define HA_LOSSY_WINDOW 16u
#define HA_LOSSY_PROBES 5
#define HA_LOSSY_WELL   2
#define HA_LOSSY_STALLS 3
#define HA_LOSSY_LATE   2 /* probes: who has not answered more is not there at present */

struct ha_lossy {
    uint32_t open;   /* probes without an answer, the newest in the lowest bit */
    uint32_t stalls; /* rounds with work in which too little moved, likewise */
    uint64_t norm;   /* 16 times what moves in a round */
    uint32_t asked;  /* probes, up to the window and the newest one */
};

static inline void ha_lossy_ask(struct ha_lossy *lossy)
{
    lossy->open = lossy->open << 1 | 1u;
    lossy->asked += lossy->asked <= HA_LOSSY_WINDOW;
}

/* Nobody has asked for a while: what was lost before says nothing of the rail as it is now. */
static inline void ha_lossy_forget(struct ha_lossy *lossy)
{
    lossy->open  = 0;
    lossy->asked = 0;
}

/* The newest probes that have no answer yet: they may only be late. */
static inline unsigned ha_lossy_late(const struct ha_lossy *lossy)
{
    return ~lossy->open == 0 ? 32 : (unsigned)__builtin_ctz(~lossy->open);
}

/* To the newest question, or to an older one, which is taken for the oldest that may still be answered: if that one
 * was lost, another one counts in its place. */
static inline void ha_lossy_answer(struct ha_lossy *lossy, int newest)
{
    unsigned late = ha_lossy_late(lossy);

    if (newest) {
        lossy->open &= ~1u;
    } else if (late > 1) {
        lossy->open &= ~(1u << (late - 1));
    }
}

/* Those that were lost of all that are remembered, without the late ones. */
static inline uint32_t ha_lossy_settled(const struct ha_lossy *lossy)
{
    unsigned late = ha_lossy_late(lossy);

    return late == 32 ? 0 : lossy->open >> late;
}

/* Probes lost of the window. */
static inline int ha_lossy_lost(const struct ha_lossy *lossy)
{
    return __builtin_popcount(ha_lossy_settled(lossy) & 0xffffu);
}

/* ... of the latest 32: of a rail that is as bad as the other one, 16 may well be answered by chance. */
static inline int ha_lossy_lost_of_all(const struct ha_lossy *lossy)
{
    return __builtin_popcount(ha_lossy_settled(lossy));
}

/* A round with work under way: so much has moved. A slow rail is no norm. */
static inline void ha_lossy_work(struct ha_lossy *lossy, uint32_t moved, int is_slow)
{
    lossy->stalls = lossy->stalls << 1 | (moved == 0 || 32ull * moved < lossy->norm);
    if (ha_lossy_lost(lossy) == 0 && !is_slow) {
        lossy->norm += moved - lossy->norm / 16;
    }
}

/* Does the work on it fall behind? */
static inline int ha_lossy_stalls(const struct ha_lossy *lossy)
{
    return __builtin_popcount(lossy->stalls & 0xffffu) >= HA_LOSSY_STALLS;
}

static inline int ha_lossy_is_known(const struct ha_lossy *lossy)
{
    return lossy->asked > HA_LOSSY_WINDOW;
}

/* To be left? */
static inline int ha_lossy_is_worse(const struct ha_lossy *lossy, const struct ha_lossy *other)
{
    return ha_lossy_is_known(lossy) && ha_lossy_is_known(other) && ha_lossy_lost(lossy) >= HA_LOSSY_PROBES &&
           ha_lossy_lost_of_all(other) == 0 && ha_lossy_late(other) <= HA_LOSSY_LATE && ha_lossy_stalls(lossy);
}

/* Not to be gone back to? */
static inline int ha_lossy_is_bad(const struct ha_lossy *lossy)
{
    return ha_lossy_lost(lossy) >= HA_LOSSY_WELL;
}

#endif
