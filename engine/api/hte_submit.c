/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_batch_submit*: check everything, then give everything to the queue. */
#include "hte_take.h"

#include <stdlib.h>

#include "base/hte_error.h"
#include "hte_engine.h"
#include "hte_prepare.h"
#include "job/hte_divide.h"
#include "run/hte_stand_in.h"

/* ---- pieces ---- */

/* All of them are accounted for before a thread may end one. */
static void account(struct hte_submission *submission, struct hte_block *block)
{
    struct hte_batch *batch = submission->batch;
    uint32_t          count = (uint32_t)submission->count;

    if (block != NULL) {
        block->next   = batch->blocks;
        batch->blocks = block;
    }
    hte_batch_ref(batch, count);
    atomic_fetch_add(&batch->untold, count);
    atomic_fetch_add(&batch->unfinished, count);
    atomic_fetch_add(&batch->submitted, count);
    atomic_fetch_add_explicit(&submission->engine->batches.requests, count, memory_order_relaxed);
}

#define MOVE_SIZE 16384 /* bytes that a submitter may move by itself */

/* All of it is one small pack, whose end has no consequences that belong into a thread of the engine. */
static bool move_here(const struct hte_submission *submission, struct hte_task *task)
{
    return task->first.count == submission->count && task->first.state.left <= MOVE_SIZE &&
           submission->notice == NULL && submission->batch->callback == NULL &&
           hte_workers_move(&submission->engine->workers, &task->first);
}

/* Nothing can fail from here on. With the batch's submit lock held. */
static void enqueue(struct hte_submission *submission, struct hte_block *block)
{
    struct hte_engine   *engine = submission->engine;
    struct hte_task     *task = submission->tasks, *end = task + submission->count;
    struct hte_piece    *extra = block == NULL ? NULL : block->pieces;
    struct hte_segment  *segment;
    struct hte_link_ring pieces;
    bool                 is_new = false;
    uint32_t             packed;
    uint64_t             n_pieces, work = 0;

    account(submission, block);
    while (task < end) {
        segment  = task->segment;
        n_pieces = 0;
        hte_ring_init(&pieces);
        for (; task < end && task->segment == segment; task += packed == 0 ? 1 : packed) {
            packed = hte_divide_pack(&submission->division, task, (size_t)(end - task), &pieces);
            if (packed == submission->count && move_here(submission, task)) {
                return;
            }
            if (packed == 0) {
                extra = hte_divide(&submission->division, task, extra, &pieces);
            }
            n_pieces += packed == 0 ? atomic_load(&task->pieces) : 1;
            work += packed == 0 ? atomic_load(&task->pieces) : task->first.weight;
        }
        is_new |= hte_queue_push(&engine->run.queue, submission->batch->priority, segment, &pieces, n_pieces);
    }
    hte_workers_wake(&engine->workers, work, is_new);
}

static int allocate_block(struct hte_submission *submission, struct hte_block **block)
{
    uint64_t extra = submission->extra;

    *block = NULL;
    if (extra == 0) {
        return HTE_OK;
    }
    *block = malloc(sizeof(**block) + extra * sizeof((*block)->pieces[0]));
    return *block != NULL ? HTE_OK
                          : hte_fail(HTE_ERR_MEMORY, "no memory for %llu parts of requests", (unsigned long long)extra);
}

static void add_target(struct hte_notice *notice, struct hte_segment *segment)
{
    uint32_t i;

    for (i = 0; i < notice->n_targets; ++i) {
        if (notice->targets[i] == segment) {
            return;
        }
    }
    atomic_fetch_add(&segment->refs, 1);
    notice->targets[notice->n_targets++] = segment;
}

static void fill_notice(struct hte_submission *submission)
{
    struct hte_notice  *notice = submission->notice;
    struct hte_segment *segment;
    size_t              i;

    if (notice == NULL) {
        return;
    }
    atomic_init(&notice->left, (uint32_t)submission->count);
    for (i = 0; i < submission->count; ++i) {
        segment = submission->tasks[i].segment;
        if (segment != NULL) {
            add_target(notice, segment);
        }
    }
    submission->batch->has_notice = true;
}

/* With the batch's submit lock held. The requests, or the list's. */
static int submit_locked(struct hte_submission *submission, struct hte_prepared *list)
{
    struct hte_batch *batch = submission->batch;
    uint32_t          first = atomic_load(&batch->submitted);
    struct hte_block *block;
    int               error = HTE_OK;

    submission->tasks = &batch->tasks[first];
    if (submission->count > batch->capacity - first) {
        return hte_fail(HTE_ERR_TOO_MANY_REQUESTS, "%zu requests, but the batch has room for %u more of its %u",
                        submission->count, batch->capacity - first, batch->capacity);
    }
    if (submission->notice != NULL && batch->has_notice) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "the batch has had a submission with a notification");
    }
    error = list == NULL ? hte_take_all(submission) : hte_list_take(list, submission);
    if (error == HTE_OK) {
        error = allocate_block(submission, &block);
    }
    if (error != HTE_OK) {
        hte_take_back(submission);
        return error;
    }
    fill_notice(submission);
    enqueue(submission, block);
    return HTE_OK;
}

static int submit_to(struct hte_submission *submission, hte_batch_t id, struct hte_prepared *list)
{
    struct hte_engine *engine = submission->engine;
    int                error;

    submission->batch = hte_batches_get(&engine->batches, id);
    if (submission->batch == NULL) {
        return HTE_ERR_BAD_HANDLE;
    }
    pthread_mutex_lock(&submission->batch->submit_lock);
    error = atomic_load(&engine->run.is_stopping) ? hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed")
                                                  : submit_locked(submission, list);
    pthread_mutex_unlock(&submission->batch->submit_lock);
    hte_take_forget(submission);
    hte_batch_put(submission->batch);
    return error;
}

static int submit(struct hte_engine *engine, hte_batch_t id, const struct hte_request *requests, size_t count,
                  struct hte_notice *notice)
{
    struct hte_submission submission = {.engine = engine, .requests = requests, .count = count, .notice = notice};
    int                   error      = hte_enter(engine);

    if (error == HTE_OK) {
        error = submit_to(&submission, id, NULL);
        hte_leave(engine);
    }
    return error;
}

int hte_list_submit(struct hte_engine *engine, hte_batch_t batch, hte_list_t id)
{
    struct hte_submission submission = {.engine = engine};
    struct hte_prepared  *list;
    int                   error = hte_enter(engine);

    if (error != HTE_OK) {
        return error;
    }
    list  = hte_list_get(engine, id);
    error = HTE_ERR_BAD_HANDLE;
    if (list != NULL) {
        submission.count = hte_list_count(list);
        error            = submit_to(&submission, batch, list);
        hte_list_put(list);
    }
    hte_leave(engine);
    return error;
}

static int check_arguments(const struct hte_request *requests, size_t count)
{
    if (requests == NULL || count == 0) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "requests is NULL, or count is 0");
    }
    return HTE_OK;
}

int hte_batch_submit(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests, size_t count)
{
    int error = check_arguments(requests, count);

    return error != HTE_OK ? error : submit(engine, batch, requests, count, NULL);
}

int hte_batch_submit_notify(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests,
                            size_t count, const char *notify_name, const char *notify_text)
{
    struct hte_notice *notice;
    int                error = check_arguments(requests, count);

    if (error != HTE_OK) {
        return error;
    }
    error = hte_notice_create(notify_name, notify_text, (uint32_t)(count < HTE_BATCH_MAX ? count : HTE_BATCH_MAX),
                              &notice);
    if (error != HTE_OK) {
        return error;
    }
    error = submit(engine, batch, requests, count, notice);
    if (error != HTE_OK) {
        hte_notice_destroy(notice);
    }
    return error;
}
