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

/* As many as follow and are no more, together, than a thread should take at once. */
uint32_t hte_divide_pack(const struct hte_division *division, struct hte_task *task, size_t count,
                         struct hte_link_ring *pieces)
{
    const struct hte_task *next, *end = task + count;
    const uint64_t         most = division->pack_size, small = division->small_size;
    uint64_t               length = task->length;
    uint32_t               left   = division->pack_weight - 1;

    if (!task->is_plain || length > small) {
        return 0;
    }
    for (next = task + 1; next < end && next->likeness != HTE_UNLIKE && next->length <= small; ++next) {
        if (length + next->length > most || (left == 0 && next->likeness != HTE_CONTINUES)) {
            break;
        }
        length += next->length;
        left -= next->likeness != HTE_CONTINUES;
    }
    add_piece(task, &task->first, 0, length, pieces);
    task->first.count  = (uint32_t)(next - task);
    task->first.weight = division->pack_weight - left;
    return task->first.count;
}
