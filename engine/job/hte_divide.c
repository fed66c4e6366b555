/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_divide.h"

uint32_t hte_divide_count(const struct hte_division *division, const struct hte_task *task)
{
    uint64_t pieces;

    if (hte_divide_is_one(division, task)) {
        return 1;
    }
    pieces = task->length / division->split_size;
    return (uint32_t)(pieces < division->max ? pieces : division->max);
}

static void add_piece(struct hte_task *task, struct hte_piece *piece, uint64_t offset, uint64_t length,
                      struct hte_link_ring *pieces)
{
    *piece = (struct hte_piece){.task = task, .offset = offset, .weight = 1};
    hte_piece_init(&piece->state, length);
    hte_ring_append(pieces, &piece->link);
}

/* Parts are whole slices, but for the last. */
static struct hte_piece *divide(const struct hte_division *division, struct hte_task *task, struct hte_piece *extra,
                                struct hte_link_ring *pieces)
{
    uint32_t i, count = hte_divide_count(division, task);
    uint64_t slice = division->slice_size, offset = 0;
    uint64_t share = (task->length / count + slice - 1) / slice * slice, length;

    if (count > 1 && share * (count - 1) >= task->length) {
        count = (uint32_t)((task->length + share - 1) / share);
    }
    atomic_init(&task->pieces, count);
    for (i = 0; i < count; ++i, offset += length) {
        length = i + 1 == count ? task->length - offset : share;
        add_piece(task, i == 0 ? &task->first : extra++, offset, length, pieces);
    }
    return extra;
}

struct hte_piece *hte_divide(const struct hte_division *division, struct hte_task *task, struct hte_piece *extra,
                             struct hte_link_ring *pieces)
{
    if (!hte_divide_is_one(division, task)) {
        return divide(division, task, extra, pieces);
    }
    atomic_init(&task->pieces, 1);
    add_piece(task, &task->first, 0, task->length, pieces);
    return extra;
}

/* With that one it would be more than a thread should take at once. */
static bool is_full(const struct hte_division *division, const struct hte_task *next, uint64_t length, uint32_t weight)
{
    return next->length > division->small_size || length + next->length > division->pack_size ||
           (weight == division->pack_weight && next->likeness != HTE_CONTINUES);
}

uint32_t hte_divide_pack(const struct hte_division *division, struct hte_task *task, size_t count,
                         struct hte_link_ring *pieces)
{
    uint64_t length = task->length;
    uint32_t n, weight = 1;

    if (!task->is_plain || length > division->small_size) {
        return 0;
    }
    for (n = 1; n < count && task[n].likeness != HTE_UNLIKE && !is_full(division, &task[n], length, weight); ++n) {
        length += task[n].length;
        weight += task[n].likeness != HTE_CONTINUES;
    }
    add_piece(task, &task->first, 0, length, pieces);
    task->first.count  = n;
    task->first.weight = weight;
    return n;
}
