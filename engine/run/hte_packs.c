/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_packs.h"

#include "job/hte_batch.h"

#define JOINED_TRIES 2 /* so often what breaks a connection may break it for its neighbours */

/* What says something of one request's memory, and nothing of the target. */
static bool is_refusal(int error)
{
    return error == HTE_ERR_RANGE || error == HTE_ERR_PERMISSION || error == HTE_ERR_MEMORY;
}

/* What the others would end with as well, after as long a time each. */
static bool is_of_all(int error)
{
    return error == HTE_ERR_TIMEOUT || error == HTE_ERR_CANCELED || error == HTE_ERR_DEAD_PEER;
}

/* The first of those that are left, by itself. It goes through the list of READY ones: nothing is posted here, where
 * UCX may be in the middle of something. */
static void go_alone(struct hte_poster *poster, struct hte_slice *slice)
{
    const struct hte_task *task     = slice->task;
    int16_t                bad_rail = slice->op.state.bad_rail;

    hte_flow_uncount(&poster->flows, slice);
    slice->joined    = 1;
    slice->op.local  = task->local;
    slice->op.remote = task->remote;
    slice->op.length = task->length;
    slice->op.units  = 1;
    slice->op.parts  = 1;
    hte_flow_count(&poster->flows, slice);
    hte_slice_init(&slice->op.state, task->is_write, (unsigned)poster->run->settings->retry_count);
    slice->op.state.fails    = slice->joined_fails;
    slice->op.state.bad_rail = bad_rail;
    slice->op.is_expired     = false;
    slice->waits_since       = poster->lane.now;
    slice->failed_at         = poster->lane.now;
    slice->ready_at          = poster->lane.now;
    hte_poster_keep_ready(poster, slice);
}

void hte_pack_parts(const struct hte_slice *slice, struct iovec *local, struct iovec *remote)
{
    const struct hte_task *task = slice->task, *end = task + slice->joined;
    uint64_t               length;

    while (task < end) {
        local->iov_base  = task->local;
        remote->iov_base = (void *)task->remote;
        length           = task->length;
        while (++task < end && task->likeness == HTE_CONTINUES) {
            length += task->length;
        }
        local++->iov_len  = length;
        remote++->iov_len = length;
    }
}

void hte_packs_tell(struct hte_poster *poster)
{
    uint32_t count = poster->n_done;

    poster->n_done = 0; /* a callback may be run */
    if (count > 0) {
        hte_tasks_final(poster->done, count, HTE_COMPLETED, HTE_OK);
    }
}

static void note_done(struct hte_poster *poster, struct hte_task *task, uint32_t count)
{
    bool is_next = poster->n_done > 0 && task == poster->done + poster->n_done && task->batch == poster->done->batch &&
                   task->likeness != HTE_UNLIKE;

    if (!is_next) {
        hte_packs_tell(poster);
        poster->done = task;
    }
    poster->n_done += count;
}

/* The requests of the operation are final. */
static void over(struct hte_poster *poster, struct hte_slice *slice, uint32_t count, int code, int error)
{
    struct hte_task *task = slice->task;

    slice->task += count;
    slice->count -= count;
    if (slice->count == 0) {
        hte_flow_put_slice(&poster->flows, slice);
    } else {
        go_alone(poster, slice);
    }
    if (code == HTE_COMPLETED) {
        note_done(poster, task, count);
    } else {
        hte_tasks_final(task, count, code, error);
    }
}

void hte_pack_completed(struct hte_poster *poster, struct hte_slice *slice)
{
    over(poster, slice, slice->joined, HTE_COMPLETED, HTE_OK);
}

void hte_pack_lost(struct hte_poster *poster, struct hte_slice *slice, int error)
{
    if (slice->joined > 1 && is_refusal(error)) {
        slice->joined_fails = slice->op.state.fails;
        go_alone(poster, slice);
    } else if (slice->joined > 1 || is_of_all(error)) {
        over(poster, slice, slice->count, hte_code_of(error), error);
    } else {
        over(poster, slice, 1, hte_code_of(error), error);
    }
}

bool hte_pack_retry(struct hte_poster *poster, struct hte_slice *slice)
{
    const struct hte_slice_state *state = &slice->op.state;

    if (slice->joined < 2 || (slice->op.parts < 2 && state->fails < JOINED_TRIES && state->fails < state->max_fails)) {
        return false;
    }
    slice->joined_fails = state->fails;
    go_alone(poster, slice);
    return true;
}
