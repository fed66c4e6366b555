/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DIVIDE_H_
#define HTE_DIVIDE_H_

/* How a request becomes pieces, so that several threads share a long one; and how small ones become a pack. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hte_batch.h"

struct hte_division {
    uint64_t slice_size;
    uint64_t split_size; /* a piece has at least so many bytes */
    unsigned max;        /* pieces */
    uint64_t small_size; /* of packs: a request at most, and all of one pack */
    uint64_t pack_size;
    uint32_t pack_weight; /* operations of one pack */
};

/* Whether it is left whole; within this process all are. */
static inline bool hte_divide_is_one(const struct hte_division *division, const struct hte_task *task)
{
    return task->segment == NULL || task->length < 2 * division->split_size;
}

/* At most so many: with what is rounded to whole slices there may be fewer. */
uint32_t hte_divide_count(const struct hte_division *division, const struct hte_task *task);
/* Appends them to `pieces`: the first is the task's own, the others are taken from `extra`, whose first unused one is
 * returned. */
struct hte_piece *hte_divide(const struct hte_division *division, struct hte_task *task, struct hte_piece *extra,
                             struct hte_link_ring *pieces);

/* Makes a pack of the first of `count` requests, and appends it to `pieces`. How many there are in it; 0: the first one
 * is not of those. */
uint32_t hte_divide_pack(const struct hte_division *division, struct hte_task *task, size_t count,
                         struct hte_link_ring *pieces);

#endif
