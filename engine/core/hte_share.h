/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SHARE_H_
#define HTE_SHARE_H_

/*
 * How several users share a pool without knowing of each other. Pure.
 *
 * Nobody may hold more than what is left to the others ("dynamic threshold"). With a pool of 2 * alone:
 *
 *   one user  |<------- alone ------->|<--------- left --------->|
 *   two       |<---- 2/3 ---->|<---- 2/3 ---->|<---- left ------>|     of `alone` each
 *
 * So who comes later finds something, whatever those before him hold and never give back: half as much for each of
 * them. And who has nothing may always take one.
 */

#include <stdint.h>

/* How many more one may take who has `mine`, while all together, himself too, have `all`. */
static inline uint64_t hte_share(uint64_t alone, uint64_t all, uint64_t mine)
{
    uint64_t pool = 2 * alone, share = all + mine < pool ? (pool - all - mine) / 2 : 0;

    return share == 0 && mine == 0 ? 1 : share;
}

#endif
