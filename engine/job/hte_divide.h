/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DIVIDE_H_
#define HTE_DIVIDE_H_

/* How a request becomes pieces, so that several threads share a long one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hte_batch.h"

struct hte_division {
    uint64_t slice_size;
    uint64_t split_size; /* a piece has at least so many bytes */
    unsigned max;        /* pieces */
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

#endif
