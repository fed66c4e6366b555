/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_take.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "hte_engine.h"

#define NAME_OF(opcode) ((opcode) == HTE_WRITE ? "WRITE" : "READ")

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

void hte_take_forget(struct hte_submission *submission)
{
    if (submission->segment != NULL) {
        hte_view_put(submission->view);
        hte_segment_put(submission->segment);
        submission->segment = NULL;
    }
}

static int find_segment(struct hte_submission *submission, hte_segment_t id, size_t index)
{
    if (submission->segment != NULL && submission->segment->id == id) {
        return HTE_OK;
    }
    hte_take_forget(submission);
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
static void lock_regions(struct hte_submission *submission)
{
    if (!submission->has_lock) {
        pthread_rwlock_rdlock(&submission->engine->regions.lock);
        submission->has_lock = true;
    }
}

/* With the lock. */
static void settle(struct hte_submission *submission)
{
    struct hte_alike *like = &submission->like;

    if (like->untaken > 0) {
        hte_region_pin_many(like->region, like->untaken);
        atomic_fetch_add(&submission->segment->refs, like->untaken);
        atomic_fetch_add(&submission->view->refs, like->untaken);
        like->untaken = 0;
    }
    like->region = NULL;
}

static void unlock_regions(struct hte_submission *submission)
{
    settle(submission);
    if (submission->has_lock) {
        pthread_rwlock_unlock(&submission->engine->regions.lock);
        submission->has_lock = false;
        submission->region   = NULL; /* it may go away now */
    }
}

/* The target may have registered it since its descriptor was fetched. */
static int check_target(struct hte_submission *submission, const struct hte_request *request, size_t index)
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

static int pin(struct hte_submission *submission, uint64_t addr, uint64_t length)
{
    lock_regions(submission);
    return hte_regions_pin(&submission->engine->regions, addr, length, &submission->region) ? HTE_OK
                                                                                            : HTE_ERR_NOT_REGISTERED;
}

/* This process copies by itself. With the lock. */
static bool is_local_gpu(const struct hte_submission *submission, const struct hte_request *request)
{
    const struct hte_regions *regions = &submission->engine->regions;

    return hte_regions_have_gpu(regions, (uint64_t)request->local, request->length) ||
           hte_regions_have_gpu(regions, request->target_offset, request->length);
}

/* Both sides of a request, pinned or referenced by the task. */
static int take_sides(struct hte_submission *submission, const struct hte_request *request, size_t index,
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
    if (is_local && is_local_gpu(submission, request)) {
        unlock_regions(submission);
        hte_regions_unpin(&engine->regions, (uint64_t)request->local, request->length, task->region);
        hte_regions_unpin(&engine->regions, request->target_offset, request->length, submission->region);
        return hte_fail(HTE_ERR_NOT_IMPLEMENTED, "request %zu: memory of a GPU within one process: copy it by CUDA",
                        index);
    }
    if (!is_local) {
        atomic_fetch_add(&submission->segment->refs, 1);
        atomic_fetch_add(&submission->view->refs, 1);
        task->segment = submission->segment;
        task->view    = submission->view;
    }
    return HTE_OK;
}

/* And not empty. An address below `begin` is as far behind it as no size goes. */
static bool is_inside(uint64_t addr, uint64_t length, uint64_t begin, uint64_t size)
{
    return length - 1 < size && addr - begin <= size - length;
}

static inline void set_state(struct hte_task *task)
{
    atomic_init(&task->is_canceled, false);
    atomic_init(&task->code, HTE_WAITING);
    atomic_init(&task->error, HTE_OK);
    atomic_init(&task->worst, HTE_COMPLETED);
    atomic_init(&task->transferred, 0);
}

static inline void set_task(const struct hte_submission *submission, const struct hte_request *request,
                            struct hte_task *task)
{
    task->batch    = submission->batch;
    task->notice   = submission->notice;
    task->edition  = NULL;
    task->local    = request->local;
    task->remote   = request->target_offset;
    task->length   = request->length;
    task->is_write = request->opcode == HTE_WRITE;
    set_state(task);
}

static inline uint64_t extra_of(const struct hte_division *division, const struct hte_task *task)
{
    return hte_divide_is_one(division, task) ? 0 : hte_divide_count(division, task) - 1;
}

/* All that follow and are as the one before them, of which all was checked. Most are, so little is asked of each, and
 * what they have in common is in registers, or written once. */
static void take_alikes(struct hte_submission *submission)
{
    const struct hte_alike    like    = submission->like;
    const struct hte_request *request = &submission->requests[submission->done];
    const struct hte_request *end     = &submission->requests[submission->count];
    struct hte_task          *begin   = &submission->tasks[submission->done], *task;
    const struct hte_task    *same    = begin - 1;
    const uint64_t            addr = like.region->addr, size = like.region->length;
    const uint64_t            several = 2 * submission->division.split_size; /* as hte_divide_is_one() */
    char                     *local   = same->local + same->length;
    uint64_t                  remote = same->remote + same->length, length, extra = 0;

    for (task = begin; request < end; ++task, ++request) {
        length = request->length;
        if (request->opcode != like.opcode || request->target != like.target ||
            !is_inside((uint64_t)request->local, length, addr, size) ||
            !is_inside(request->target_offset, length, like.remote, like.size)) {
            break;
        }
        task->likeness = request->local == local && request->target_offset == remote ? HTE_CONTINUES : HTE_ALIKE;
        memcpy(task, same, offsetof(struct hte_task, local)); /* whose they are: all pointers */
        task->buffer   = like.buffer;
        task->is_plain = true;
        task->is_write = like.opcode == HTE_WRITE;
        task->local    = request->local;
        task->remote   = request->target_offset;
        task->length   = length;
        set_state(task);
        local  = task->local + length;
        remote = task->remote + length;
        if (length >= several) {
            extra += hte_divide_count(&submission->division, task) - 1;
        }
    }
    submission->like.untaken += (uint32_t)(task - begin);
    submission->done += (size_t)(task - begin);
    submission->extra += extra;
}

/* The next one may be alike. */
static void note_likeness(struct hte_submission *submission, const struct hte_request *request, struct hte_task *task)
{
    const struct hte_desc_buffer *buffer;
    long                          index;

    task->is_plain = false;
    task->likeness = HTE_UNLIKE;
    if (task->segment == NULL || task->region == NULL) {
        return;
    }
    index          = hte_view_find(task->view, request->target_offset);
    buffer         = &task->view->descriptor->buffers[index];
    task->buffer   = (uint32_t)index;
    task->is_plain = is_inside(request->target_offset, request->length, buffer->addr, buffer->length);
    if (task->is_plain) {
        submission->like = (struct hte_alike){.opcode = request->opcode,
                                              .target = request->target,
                                              .region = task->region,
                                              .remote = buffer->addr,
                                              .size   = buffer->length,
                                              .buffer = task->buffer};
    }
}

static int take(struct hte_submission *submission)
{
    size_t                    index   = submission->done;
    const struct hte_request *request = &submission->requests[index];
    struct hte_task          *task    = &submission->tasks[index];
    int                       error;

    settle(submission);
    task->segment = NULL;
    task->view    = NULL;
    error         = check_request(request, index);
    error         = error == HTE_OK ? take_sides(submission, request, index, task) : error;
    if (error != HTE_OK) {
        return error;
    }
    note_likeness(submission, request, task);
    set_task(submission, request, task);
    submission->extra += extra_of(&submission->division, task);
    ++submission->done;
    return HTE_OK;
}

#define PACK_WEIGHT_MAX 16

/* A pack is for one thread, so it is no more than a part of what that may post at once. */
static struct hte_division division_of(const struct hte_engine *engine)
{
    const struct hte_settings *settings = &engine->settings;
    uint64_t                   weight   = settings->window / 8;

    return (struct hte_division){
        .slice_size  = settings->slice_size,
        .split_size  = settings->split_size,
        .max         = engine->workers.count,
        .small_size  = settings->slice_size < settings->split_size ? settings->slice_size : settings->split_size,
        .pack_size   = settings->split_size,
        .pack_weight = (uint32_t)(weight < 1                 ? 1
                                  : weight < PACK_WEIGHT_MAX ? weight
                                                             : PACK_WEIGHT_MAX),
    };
}

int hte_take_all(struct hte_submission *submission)
{
    int error = HTE_OK;

    submission->division = division_of(submission->engine);
    while (error == HTE_OK && submission->done < submission->count) {
        error = take(submission);
        if (error == HTE_OK && submission->like.region != NULL) {
            take_alikes(submission);
        }
    }
    unlock_regions(submission);
    return error;
}

/* ---- of a list ---- */

bool hte_take_is_current(struct hte_submission *submission, const struct hte_edition *edition)
{
    const struct hte_view *view = NULL;
    const struct hte_task *task;

    for (task = edition->tasks; task < edition->tasks + edition->count; ++task) {
        if (task->view != view && task->view != NULL) {
            view = task->view;
            if (find_segment(submission, task->segment->id, (size_t)(task - edition->tasks)) != HTE_OK ||
                submission->view != view) {
                return false;
            }
        }
    }
    return true;
}

void hte_take_copies(struct hte_submission *submission, struct hte_edition *edition)
{
    const struct hte_task *from = edition->tasks;
    struct hte_task       *task = submission->tasks, *end = task + edition->count;

    atomic_fetch_add(&edition->refs, (uint32_t)edition->count);
    for (; task < end; ++task, ++from) {
        memcpy(task, from, offsetof(struct hte_task, is_canceled));
        task->batch   = submission->batch;
        task->edition = edition;
        set_state(task);
    }
    submission->division = division_of(submission->engine);
    submission->extra    = edition->extra;
    submission->done     = edition->count;
}

void hte_edition_put(struct hte_edition *edition, uint32_t count)
{
    struct hte_submission taken = {.engine = edition->engine, .tasks = edition->tasks, .done = edition->count};

    if (atomic_fetch_sub_explicit(&edition->refs, count, memory_order_acq_rel) == count) {
        hte_take_back(&taken);
        free(edition);
    }
}

/* ---- the end ---- */

/* What take() took for requests that are alike, or one. */
static void release_sides(struct hte_engine *engine, struct hte_task *task, uint32_t count)
{
    if (task->edition != NULL) {
        hte_edition_put(task->edition, count);
        return;
    }
    if (task->region != NULL) {
        hte_region_unpin_many(task->region, count);
    } else {
        hte_regions_unpin(&engine->regions, (uint64_t)task->local, task->length, NULL);
    }
    if (task->segment != NULL) {
        hte_segment_put_many(task->segment, count);
        hte_view_put_many(task->view, count);
    } else {
        hte_regions_unpin(&engine->regions, task->remote, task->length, NULL);
    }
}

void hte_take_release(struct hte_engine *engine, struct hte_task *task, uint32_t count, bool is_completed)
{
    struct hte_notice *notice = task->notice;

    release_sides(engine, task, count);
    for (; notice != NULL && count > 0; --count) {
        hte_notice_task_final(&engine->notify, notice, is_completed);
    }
}

void hte_take_back(struct hte_submission *submission)
{
    while (submission->done > 0) {
        release_sides(submission->engine, &submission->tasks[--submission->done], 1);
    }
}
