/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_batch_*, hte_request_status: the life of a batch as its user sees it. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_error.h"
#include "base/hte_now.h"
#include "hte_engine.h"

/* Enters the engine, and takes a reference: release() undoes both. */
static int batch_of(struct hte_engine *engine, hte_batch_t id, struct hte_batch **batch)
{
    int error = hte_enter(engine);

    *batch = NULL;
    if (error != HTE_OK) {
        return error;
    }
    *batch = hte_batches_get(&engine->batches, id);
    if (*batch == NULL) {
        hte_leave(engine);
        return HTE_ERR_BAD_HANDLE;
    }
    return HTE_OK;
}

static void release(struct hte_engine *engine, struct hte_batch *batch)
{
    hte_batch_put(batch);
    hte_leave(engine);
}

static int alloc(struct hte_engine *engine, size_t capacity, hte_batch_t *id)
{
    if (id == NULL || capacity == 0 || capacity > HTE_BATCH_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "batch is NULL, or capacity %zu is not from 1 to %u", capacity,
                        HTE_BATCH_MAX);
    }
    return hte_batches_alloc(&engine->batches, capacity, id);
}

int hte_batch_alloc(struct hte_engine *engine, size_t capacity, hte_batch_t *id)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = alloc(engine, capacity, id);
        hte_leave(engine);
    }
    return error;
}

static struct timespec deadline(int timeout_ms)
{
    uint64_t when = hte_now() + (uint64_t)timeout_ms * 1000000;

    return (struct timespec){.tv_sec = (time_t)(when / 1000000000), .tv_nsec = (long)(when % 1000000000)};
}

/* Whether all are final and their callbacks have ended; sleeps at most timeout_ms for it, -1: for ever. */
static bool wait_for(struct hte_batch *batch, int timeout_ms)
{
    struct timespec end    = deadline(timeout_ms < 0 ? 0 : timeout_ms);
    int             waited = 0;

    if (atomic_load(&batch->untold) == 0 || timeout_ms == 0) {
        return atomic_load(&batch->untold) == 0;
    }
    pthread_mutex_lock(&batch->lock);
    while (atomic_load(&batch->untold) > 0 && waited == 0) {
        waited = timeout_ms < 0 ? pthread_cond_wait(&batch->ended, &batch->lock)
                                : pthread_cond_timedwait(&batch->ended, &batch->lock, &end);
    }
    pthread_mutex_unlock(&batch->lock);
    return atomic_load(&batch->untold) == 0;
}

int hte_batch_free(struct hte_engine *engine, hte_batch_t id)
{
    struct hte_batch *batch;
    bool              is_first;
    int               error = batch_of(engine, id, &batch);

    if (error != HTE_OK) {
        return error;
    }
    if (atomic_load(&batch->unfinished) > 0) {
        error = hte_fail(HTE_ERR_BATCH_BUSY, "%u of %u requests are unfinished: wait for them, or cancel",
                         atomic_load(&batch->unfinished), atomic_load(&batch->submitted));
        release(engine, batch);
        return error;
    }
    if (!hte_batch_in_callback()) {
        wait_for(batch, -1);
    }
    is_first = hte_batches_remove(&engine->batches, batch);
    if (is_first) {
        hte_batch_put(batch); /* the table's */
    } else {
        error = hte_fail(HTE_ERR_BAD_HANDLE, "another thread freed the batch");
    }
    release(engine, batch);
    return error;
}

static void read_status(const struct hte_batch *batch, struct hte_batch_status *status)
{
    uint32_t unfinished  = atomic_load(&batch->unfinished);
    uint32_t submitted   = atomic_load(&batch->submitted);
    uint64_t transferred = atomic_load(&batch->transferred);

    *status = (struct hte_batch_status){
        .transferred = transferred,
        .submitted   = submitted,
        .finished    = unfinished < submitted ? submitted - unfinished : 0,
        .error       = atomic_load(&batch->first_error),
    };
    if (unfinished == 0) {
        status->code = atomic_load(&batch->worst);
    } else {
        status->code = atomic_load(&batch->has_begun) || status->finished > 0 ? HTE_PENDING : HTE_WAITING;
    }
}

int hte_batch_status(struct hte_engine *engine, hte_batch_t id, struct hte_batch_status *status)
{
    struct hte_batch *batch;
    int               error = batch_of(engine, id, &batch);

    if (error != HTE_OK) {
        return error;
    }
    if (status == NULL) {
        error = hte_fail(HTE_ERR_INVALID_ARGUMENT, "status is NULL");
    } else {
        read_status(batch, status);
    }
    release(engine, batch);
    return error;
}

int hte_request_status(struct hte_engine *engine, hte_batch_t id, size_t index, struct hte_status *status)
{
    struct hte_batch *batch;
    int               error = batch_of(engine, id, &batch);

    if (error != HTE_OK) {
        return error;
    }
    if (status == NULL || index >= atomic_load(&batch->submitted)) {
        error = hte_fail(HTE_ERR_INVALID_ARGUMENT, "status is NULL, or request %zu of %u was not submitted", index,
                         atomic_load(&batch->submitted));
    } else {
        status->code        = atomic_load_explicit(&batch->tasks[index].code, memory_order_acquire);
        status->error       = atomic_load(&batch->tasks[index].error);
        status->transferred = atomic_load(&batch->tasks[index].transferred);
    }
    release(engine, batch);
    return error;
}

static int wait_batch(struct hte_engine *engine, struct hte_batch *batch, int timeout_ms,
                      struct hte_batch_status *status)
{
    int error = HTE_OK;

    if (!wait_for(batch, timeout_ms)) {
        error = hte_fail(HTE_ERR_TIMEOUT, "%u of %u requests, or a callback, are unfinished after %d ms",
                         atomic_load(&batch->unfinished), atomic_load(&batch->submitted), timeout_ms);
    } else if (atomic_load(&engine->run.is_stopping)) {
        return hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed");
    }
    if (status != NULL) {
        read_status(batch, status);
    }
    return error;
}

int hte_batch_wait(struct hte_engine *engine, hte_batch_t id, int timeout_ms, struct hte_batch_status *status)
{
    struct hte_batch *batch;
    int               error = batch_of(engine, id, &batch);

    if (error != HTE_OK) {
        return error;
    }
    atomic_fetch_add(&engine->waiters, 1);
    hte_leave(engine); /* hte_destroy() waits for waiters later than for calls: it has to wake them */
    error = wait_batch(engine, batch, timeout_ms, status);
    hte_batch_put(batch);
    atomic_fetch_sub(&engine->waiters, 1);
    return error;
}

int hte_batch_cancel(struct hte_engine *engine, hte_batch_t id)
{
    struct hte_batch *batch;
    int               error = batch_of(engine, id, &batch);

    if (error != HTE_OK) {
        return error;
    }
    if (atomic_load(&batch->unfinished) > 0) {
        hte_batch_cancel_tasks(batch);
        hte_workers_order(&engine->workers);
    }
    release(engine, batch);
    return HTE_OK;
}

/* What may be changed until the first submit; the lock keeps submits out. */
static int begin_change(struct hte_engine *engine, hte_batch_t id, struct hte_batch **batch)
{
    int error = batch_of(engine, id, batch);

    if (error != HTE_OK) {
        return error;
    }
    pthread_mutex_lock(&(*batch)->submit_lock);
    if (atomic_load(&(*batch)->submitted) > 0) {
        pthread_mutex_unlock(&(*batch)->submit_lock);
        release(engine, *batch);
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "requests were submitted already");
    }
    return HTE_OK;
}

static void end_change(struct hte_engine *engine, struct hte_batch *batch)
{
    pthread_mutex_unlock(&batch->submit_lock);
    release(engine, batch);
}

int hte_batch_set_priority(struct hte_engine *engine, hte_batch_t id, int priority)
{
    struct hte_batch *batch;
    int               error;

    if (priority < HTE_PRIORITY_HIGH || priority > HTE_PRIORITY_LOW) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "priority %d is none of enum hte_priority", priority);
    }
    error = begin_change(engine, id, &batch);
    if (error == HTE_OK) {
        batch->priority = (uint8_t)priority;
        end_change(engine, batch);
    }
    return error;
}

int hte_batch_set_callback(struct hte_engine *engine, hte_batch_t id, hte_batch_callback_t callback, void *arg)
{
    struct hte_batch *batch;
    int               error = begin_change(engine, id, &batch);

    if (error == HTE_OK) {
        batch->callback     = callback;
        batch->callback_arg = arg;
        end_change(engine, batch);
    }
    return error;
}

static int eventfd_error(int eventfd)
{
    if (eventfd >= 0 && errno == EMFILE) {
        return hte_fail(HTE_ERR_LIMIT, "no descriptor for a duplicate of eventfd %d: raise `ulimit -n`", eventfd);
    }
    return hte_fail(HTE_ERR_INVALID_ARGUMENT, "eventfd %d is not a descriptor", eventfd);
}

int hte_batch_set_eventfd(struct hte_engine *engine, hte_batch_t id, int eventfd)
{
    struct hte_batch *batch;
    int               before, copy = eventfd < 0 ? -1 : fcntl(eventfd, F_DUPFD_CLOEXEC, 0);
    int               error = eventfd == -1 || copy >= 0 ? begin_change(engine, id, &batch) : eventfd_error(eventfd);

    if (error == HTE_OK) {
        before         = batch->eventfd;
        batch->eventfd = copy;
        copy           = before;
        end_change(engine, batch);
    }
    if (copy >= 0) {
        close(copy); /* the one before, or the new one that was refused */
    }
    return error;
}
