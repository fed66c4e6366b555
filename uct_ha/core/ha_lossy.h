/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_LOSSY_H_
#define HA_LOSSY_H_

/*
 * Is a rail bad, though not dead? It loses probes among those that are answered, and the work on it falls behind, while
 * the other rail loses none. Either alone says nothing: a rail full of data loses probes and moves work; a host that is
 * starved moves little, and is slow to answer on both.
 *
 * HA_LOSSY_PROBES of the latest 16 probes lost, no more than one on the other rail, and in HA_LOSSY_STALLS of the
 * latest 16 rounds with work under way less than half of the norm moved: then it is to be left. The norm is a moving
 * average (weight 1/16) of what moves in a round while no probe is lost. It is not gone back to before it has lost
 * fewer than HA_LOSSY_WELL. An answer that comes late takes a loss back.
 *
 * A zeroed struct is ready. Pure.
 */

#include <stdint.h>

#define HA_LOSSY_WINDOW 16u
#define HA_LOSSY_PROBES 5
#define HA_LOSSY_WELL   2
#define HA_LOSSY_STALLS 3

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

/* To the newest question, or to some older one. */
static inline void ha_lossy_answer(struct ha_lossy *lossy, int newest)
{
    uint32_t older = lossy->open & ~1u;

    lossy->open = newest ? older : lossy->open & ~(older & -older);
}

/* Probes lost of the window: the newest one may still be answered. */
static inline int ha_lossy_lost(const struct ha_lossy *lossy)
{
    return __builtin_popcount(lossy->open >> 1 & 0xffffu);
}

/* A round with work under way: so much has moved. */
static inline void ha_lossy_work(struct ha_lossy *lossy, uint32_t moved)
{
    lossy->stalls = lossy->stalls << 1 | (moved == 0 || 32ull * moved < lossy->norm);
    if (ha_lossy_lost(lossy) == 0) {
        lossy->norm += moved - lossy->norm / 16;
    }
}

static inline int ha_lossy_is_known(const struct ha_lossy *lossy)
{
    return lossy->asked > HA_LOSSY_WINDOW;
}

/* To be left? */
static inline int ha_lossy_is_worse(const struct ha_lossy *lossy, const struct ha_lossy *other)
{
    return ha_lossy_is_known(lossy) && ha_lossy_is_known(other) && ha_lossy_lost(lossy) >= HA_LOSSY_PROBES &&
           ha_lossy_lost(other) <= 1 && __builtin_popcount(lossy->stalls & 0xffffu) >= HA_LOSSY_STALLS;
}

/* Not to be gone back to? */
static inline int ha_lossy_is_bad(const struct ha_lossy *lossy)
{
    return ha_lossy_lost(lossy) >= HA_LOSSY_WELL;
}

#endif
