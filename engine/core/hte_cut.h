/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_CUT_H_
#define HTE_CUT_H_

/*
 * How a request is cut into slices. Pure.
 *
 *   |<- slice ->|<- slice ->|<- slice ----- + at most fragment ->|
 *
 * Each slice has the configured size, except that a rest of at most `fragment` joins the slice before it, and
 * that none crosses a border of registered memory, on either side.
 */

#include <stdint.h>

/* Length of the next slice. `left` > 0: bytes of the request not cut yet; local_left, remote_left > 0: bytes until the
 * next border of registered memory on each side. */
static inline uint64_t hte_cut(uint64_t left, uint64_t slice, uint64_t fragment, uint64_t local_left,
                               uint64_t remote_left)
{
    uint64_t length = (left > slice && left - slice > fragment) ? slice : left;

    if (length > local_left) {
        length = local_left;
    }
    return (length > remote_left) ? remote_left : length;
}

/*
 * Runs: where there is nothing to divide among devices, several neighbouring slices are one operation.
 *
 *   |<- slice ->|<- slice ->|<- slice ->|<- slice ->|<- slice --- + rest ->|
 *   |<---------------- run, 3 units --->|<---------------- run, 2 units -->|
 */

/* The length to give to hte_cut() as `slice`: whole slices in up to `run` bytes, no more than `room` > 0 of them, at
 * least one. */
static inline uint64_t hte_cut_run(uint64_t slice, uint64_t run, uint64_t room)
{
    uint64_t units = run / slice;

    units = units < room ? units : room;
    return (units > 1 ? units : 1) * slice;
}

/* How many slices are in what hte_cut() gave when it was asked for `run` bytes: 1 to run / slice. */
static inline uint64_t hte_cut_units(uint64_t length, uint64_t run, uint64_t slice, uint64_t fragment)
{
    uint64_t units = length / slice;

    units += units == 0 || length % slice > fragment;
    return units < run / slice ? units : run / slice;
}

#endif
