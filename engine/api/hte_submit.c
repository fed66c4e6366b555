/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_batch_submit*: check everything, then give everything to the queue. */
#include "hte_submit.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "hte_engine.h"
#include "job/hte_divide.h"

#define NAME_OF(opcode) ((opcode) == HTE_WRITE ? "WRITE" : "READ")

struct submission {
    struct hte_engine        *engine;
    struct hte_batch         *batch;
    const struct hte_request *requests;
    size_t                    count, done; /* requests whose references and pins are taken */
    uint32_t                  first;       /* index in the batch */
    struct hte_notice        *notice;
    struct hte_segment       *segment;  /* of the latest request, to find it quickly for the next; reference */
    struct hte_view          *view;     /* reference */
    bool                      has_lock; /* of the regions */
    struct hte_region        *region;   /* that the latest pin was in, while it has; or NULL */
};

static int check_request(const struct hte_request *request, size_t index)
{
    if (request->opcode != HTE_READ && request->opcode != HTE_WRITE) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "request %zu: opcode %d is neither HTE_READ nor HTE_WRITE", index,
                        request->opcode);
    }
    if (request->length == 0) {
        return hte_fail(HTE_ERR_ZERO_LENGTH, "request %zu has length 0", index);
    }
    if (request->target_offset + request->length < request->target_offset) {
        return hte_fail(HTE_ERR_RANGE, "request %zu: 0x%llx + %llu is beyond the address space", index,
                        (unsigned long long)request->target_offset, (unsigned long long)request->length);
    }
    return HTE_OK;
}

static void forget_segment(struct submission *submission)
{
    if (submission->segment != NULL) {
        hte_view_put(submission->view);
        hte_segment_put(submission->segment);
        submission->segment = NULL;
    }
}

static int find_segment(struct submission *submission, hte_segment_t id, size_t index)
{
    if (submission->segment != NULL && submission->segment->id == id) {
        return HTE_OK;
    }
    forget_segment(submission);
    submission->segment = hte_segments_get(&submission->engine->segments, id);
    if (submission->segment == NULL) {
        return hte_fail(HTE_ERR_BAD_HANDLE, "request %zu: segment %d is not open", index, id);
    }
    submission->view = hte_segment_view(submission->segment);
    return HTE_OK;
}

static int range_error(const struct hte_request *request, size_t index, const char *segment, int error)
{
    return hte_fail(error, "request %zu: %s of 0x%llx + %llu in segment '%s': %s", index, NAME_OF(request->opcode),
                    (unsigned long long)request->target_offset, (unsigned long long)request->length, segment,
                    error == HTE_ERR_PERMISSION ? "the buffer there does not allow it"
                                                : "not inside registered buffers");
}

/* One lock for many requests: none of them lets another one's region go. */
static void lock_regions(struct submission *submission)
{
    if (!submission->has_lock) {
        pthread_rwlock_rdlock(&submission->engine->regions.lock);
        submission->has_lock = true;
    }
}

static void unlock_regions(struct submission *submission)
{
    if (submission->has_lock) {
        pthread_rwlock_unlock(&submission->engine->regions.lock);
        submission->has_lock = false;
        submission->region   = NULL; /* it may go away now */
    }
}

/* The target may have registered it since its descriptor was fetched. */
static int check_target(struct submission *submission, const struct hte_request *request, size_t index)
{
    struct hte_engine  *engine   = submission->engine;
    bool                is_write = request->opcode == HTE_WRITE;
    struct hte_segment *segment  = submission->segment;
    int                 error    = hte_view_check(submission->view, request->target_offset, request->length, is_write);

    if (error == HTE_OK) {
        return HTE_OK;
    }
    unlock_regions(submission); /* that takes its time */
    error = hte_segment_refresh(&engine->segments, engine->meta, segment);
    if (error == HTE_ERR_SOCKET || error == HTE_ERR_UNKNOWN_SEGMENT) {
        return hte_fail(HTE_ERR_DEAD_PEER, "request %zu: segment '%s' does not answer", index, segment->name);
    }
    if (error != HTE_OK) {
        return error;
    }
    hte_view_put(submission->view);
    submission->view = hte_segment_view(segment);
    error            = hte_view_check(submission->view, request->target_offset, request->length, is_write);
    return error == HTE_OK ? HTE_OK : range_error(request, index, segment->name, error);
}

static int pin(struct submission *submission, uint64_t addr, uint64_t length)
{
    lock_regions(submission);
    return hte_regions_pin(&submission->engine->regions, addr, length, &submission->region) ? HTE_OK
                                                                                            : HTE_ERR_NOT_REGISTERED;
}

/* Both sides of a request, pinned or referenced by the task. */
static int take_sides(struct submission *submission, const struct hte_request *request, size_t index,
                      struct hte_task *task)
{
    struct hte_engine *engine   = submission->engine;
    bool               is_local = request->target == HTE_SEGMENT_LOCAL;
    int                error    = is_local ? HTE_OK : find_segment(submission, request->target, index);

    if (error == HTE_OK && !is_local) {
        error = check_target(submission, request, index);
    }
    if (error != HTE_OK) {
        return error;
    }
    if (pin(submission, (uint64_t)request->local, request->length) != HTE_OK) {
        return hte_fail(HTE_ERR_NOT_REGISTERED, "request %zu: local %p + %llu is not inside registered memory", index,
                        request->local, (unsigned long long)request->length);
    }
    task->region = submission->region;
    if (is_local && pin(submission, request->target_offset, request->length) != HTE_OK) {
        unlock_regions(submission);
        hte_regions_unpin(&engine->regions, (uint64_t)request->local, request->length, task->region);
        return range_error(request, index, "LOCAL", HTE_ERR_RANGE);
    }
    if (!is_local) {
        atomic_fetch_add(&submission->segment->refs, 1);
        atomic_fetch_add(&submission->view->refs, 1);
        task->segment = submission->segment;
        task->view    = submission->view;
    }
    return HTE_OK;
}

static int take(struct submission *submission, size_t index)
{
    const struct hte_request *request = &submission->requests[index];
    struct hte_task          *task    = &submission->batch->tasks[submission->first + index];
    int                       error   = check_request(request, index);

    memset(task, 0, sizeof(*task));
    if (error == HTE_OK) {
        error = take_sides(submission, request, index, task);
    }
    if (error != HTE_OK) {
        return error;
    }
    task->batch    = submission->batch;
    task->local    = request->local;
    task->remote   = request->target_offset;
    task->length   = request->length;
    task->is_write = request->opcode == HTE_WRITE;
    atomic_init(&task->code, HTE_WAITING);
    atomic_init(&task->worst, HTE_COMPLETED);
    return HTE_OK;
}

/* What take_sides() took. */
static void release_sides(struct hte_engine *engine, struct hte_task *task)
{
    hte_regions_unpin(&engine->regions, (uint64_t)task->local, task->length, task->region);
    if (task->segment != NULL) {
        hte_segment_put(task->segment);
        hte_view_put(task->view);
    } else {
        hte_regions_unpin(&engine->regions, task->remote, task->length, NULL);
    }
}

void hte_submit_release(struct hte_engine *engine, struct hte_task *task, bool is_completed)
{
    release_sides(engine, task);
    if (task->notice != NULL) {
        hte_notice_task_final(&engine->notify, task->notice, is_completed);
    }
}

static void give_back(struct submission *submission)
{
    while (submission->done > 0) {
        release_sides(submission->engine, &submission->batch->tasks[submission->first + --submission->done]);
    }
}

/* ---- pieces ---- */

static struct hte_division division_of(const struct hte_engine *engine)
{
    return (struct hte_division){
        .slice_size = engine->settings.slice_size,
        .split_size = engine->settings.split_size,
        .max        = engine->workers.count,
    };
}

static uint64_t count_pieces(struct submission *submission)
{
    struct hte_division division = division_of(submission->engine);
    uint64_t            count    = 0;
    size_t              i;

    for (i = 0; i < submission->count; ++i) {
        count += hte_divide_count(&division, &submission->batch->tasks[submission->first + i]);
    }
    return count;
}

/* Takes the pieces of neighbouring requests to the same target from the front of `pieces`. Whether the target had
 * none in the queue. */
static bool push_run(struct submission *submission, size_t *index, struct hte_link_ring *pieces)
{
    struct hte_task     *task    = &submission->batch->tasks[submission->first + *index];
    struct hte_segment  *segment = task->segment;
    struct hte_link_ring run = *pieces, *rest = pieces;
    uint64_t             count = 0;

    for (; *index < submission->count && task->segment == segment; ++*index, ++task) {
        count += atomic_load(&task->pieces);
    }
    if (*index < submission->count) {
        rest         = &task->first.link;
        run.prev     = rest->prev;
        pieces->next = rest;
        rest->prev   = pieces;
    } else {
        hte_ring_init(pieces);
    }
    run.next->prev = &run;
    run.prev->next = &run;
    return hte_queue_push(&submission->engine->run.queue, submission->batch->priority, segment, &run, count);
}

/* Nothing can fail from here on. With the batch's submit lock held. */
static void enqueue(struct submission *submission, struct hte_block *block, uint64_t n_pieces)
{
    struct hte_engine   *engine   = submission->engine;
    struct hte_division  division = division_of(engine);
    struct hte_batch    *batch    = submission->batch;
    struct hte_piece    *extra    = block == NULL ? NULL : block->pieces;
    struct hte_link_ring pieces;
    bool                 is_new = false;
    size_t               i;

    hte_ring_init(&pieces);
    n_pieces = 0;
    for (i = 0; i < submission->count; ++i) {
        batch->tasks[submission->first + i].notice = submission->notice;
        extra = hte_divide(&division, &batch->tasks[submission->first + i], extra, &pieces);
        n_pieces += atomic_load(&batch->tasks[submission->first + i].pieces);
    }
    if (block != NULL) {
        block->next   = batch->blocks;
        batch->blocks = block;
    }
    hte_batch_ref(batch, (uint32_t)submission->count);
    atomic_fetch_add(&batch->untold, (uint32_t)submission->count);
    atomic_fetch_add(&batch->unfinished, (uint32_t)submission->count);
    atomic_fetch_add(&batch->submitted, (uint32_t)submission->count);
    atomic_fetch_add_explicit(&engine->batches.requests, submission->count, memory_order_relaxed);
    for (i = 0; i < submission->count;) {
        is_new |= push_run(submission, &i, &pieces);
    }
    hte_workers_wake(&engine->workers, n_pieces, is_new);
}

static int allocate_block(struct submission *submission, struct hte_block **block, uint64_t *n_pieces)
{
    uint64_t extra;

    *n_pieces = count_pieces(submission);
    extra     = *n_pieces - submission->count;
    *block    = NULL;
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

static void fill_notice(struct submission *submission)
{
    struct hte_notice  *notice = submission->notice;
    struct hte_segment *segment;
    size_t              i;

    if (notice == NULL) {
        return;
    }
    atomic_init(&notice->left, (uint32_t)submission->count);
    for (i = 0; i < submission->count; ++i) {
        segment = submission->batch->tasks[submission->first + i].segment;
        if (segment != NULL) {
            add_target(notice, segment);
        }
    }
    submission->batch->has_notice = true;
}

/* With the batch's submit lock held. */
static int submit_locked(struct submission *submission)
{
    struct hte_batch *batch = submission->batch;
    struct hte_block *block;
    uint64_t          n_pieces;
    int               error = HTE_OK;

    submission->first = atomic_load(&batch->submitted);
    if (submission->count > batch->capacity - submission->first) {
        return hte_fail(HTE_ERR_TOO_MANY_REQUESTS, "%zu requests, but the batch has room for %u more of its %u",
                        submission->count, batch->capacity - submission->first, batch->capacity);
    }
    if (submission->notice != NULL && batch->has_notice) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "the batch has had a submission with a notification");
    }
    while (error == HTE_OK && submission->done < submission->count) {
        error = take(submission, submission->done);
        submission->done += error == HTE_OK;
    }
    unlock_regions(submission);
    if (error == HTE_OK) {
        error = allocate_block(submission, &block, &n_pieces);
    }
    if (error != HTE_OK) {
        give_back(submission);
        return error;
    }
    fill_notice(submission);
    enqueue(submission, block, n_pieces);
    return HTE_OK;
}

static int submit(struct hte_engine *engine, hte_batch_t id, const struct hte_request *requests, size_t count,
                  struct hte_notice *notice)
{
    struct submission submission = {.engine = engine, .requests = requests, .count = count, .notice = notice};
    int               error      = hte_enter(engine);

    if (error != HTE_OK) {
        return error;
    }
    submission.batch = hte_batches_get(&engine->batches, id);
    if (submission.batch == NULL) {
        hte_leave(engine);
        return HTE_ERR_BAD_HANDLE;
    }
    pthread_mutex_lock(&submission.batch->submit_lock);
    error = atomic_load(&engine->run.is_stopping) ? hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed")
                                                  : submit_locked(&submission);
    pthread_mutex_unlock(&submission.batch->submit_lock);
    forget_segment(&submission);
    hte_batch_put(submission.batch);
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
