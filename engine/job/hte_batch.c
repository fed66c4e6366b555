/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_batch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/hte_error.h"

int hte_batches_init(struct hte_batches *batches, uint32_t count, struct hte_engine *engine, hte_task_release release)
{
    batches->engine  = engine;
    batches->release = release;
    batches->slots   = calloc(count, sizeof(*batches->slots));
    if (batches->slots == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %u batches", count);
    }
    hte_table_init(&batches->table, batches->slots, count, 0x7fffffffu);
    pthread_mutex_init(&batches->lock, NULL);
    atomic_init(&batches->open, 0);
    return HTE_OK;
}

void hte_batches_cleanup(struct hte_batches *batches)
{
    free(batches->slots);
    pthread_mutex_destroy(&batches->lock);
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static int add(struct hte_batches *batches, struct hte_batch *batch)
{
    pthread_mutex_lock(&batches->lock);
    batch->slot = hte_table_add(&batches->table, batch);
    if (batch->slot != HTE_TABLE_NONE) {
        batch->id = (uint64_t)batches->slots[batch->slot].generation << 32 | batch->slot;
        atomic_fetch_add(&batches->open, 1);
    }
    pthread_mutex_unlock(&batches->lock);
    if (batch->slot == HTE_TABLE_NONE) {
        return hte_fail(HTE_ERR_LIMIT, "%u batches are allocated: free some, or raise option batches_max",
                        batches->table.count);
    }
    return HTE_OK;
}

int hte_batches_alloc(struct hte_batches *batches, size_t capacity, hte_batch_t *id)
{
    struct hte_batch *batch;
    int               error;

    batch = malloc(sizeof(*batch) + capacity * sizeof(batch->tasks[0]));
    if (batch == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a batch of %zu requests", capacity);
    }
    *batch = (struct hte_batch){
        .batches  = batches,
        .capacity = (uint32_t)capacity,
        .priority = HTE_PRIORITY_MEDIUM,
        .eventfd  = -1,
        .refs     = 1,
        .worst    = HTE_COMPLETED,
    };
    pthread_mutex_init(&batch->lock, NULL);
    pthread_mutex_init(&batch->submit_lock, NULL);
    init_condition(&batch->ended);
    error = add(batches, batch);
    if (error != HTE_OK) {
        hte_batch_put(batch);
        return error;
    }
    *id = batch->id;
    return HTE_OK;
}

bool hte_batches_remove(struct hte_batches *batches, struct hte_batch *batch)
{
    hte_batch_t id = batch->id;
    bool        is_there;

    pthread_mutex_lock(&batches->lock);
    is_there = hte_table_find(&batches->table, (uint32_t)id, (uint32_t)(id >> 32)) == batch;
    if (is_there) {
        hte_table_remove(&batches->table, batch->slot);
        atomic_fetch_sub(&batches->open, 1);
    }
    pthread_mutex_unlock(&batches->lock);
    return is_there;
}

struct hte_batch *hte_batches_get(struct hte_batches *batches, hte_batch_t id)
{
    struct hte_batch *batch;

    pthread_mutex_lock(&batches->lock);
    batch = hte_table_find(&batches->table, (uint32_t)id, (uint32_t)(id >> 32));
    if (batch != NULL) {
        hte_batch_ref(batch, 1);
    }
    pthread_mutex_unlock(&batches->lock);
    if (batch == NULL) {
        hte_fail(HTE_ERR_BAD_HANDLE, "batch 0x%llx was never allocated, or was freed", (unsigned long long)id);
    }
    return batch;
}

void hte_batch_ref(struct hte_batch *batch, uint32_t count)
{
    atomic_fetch_add_explicit(&batch->refs, count, memory_order_relaxed);
}

static void destroy(struct hte_batch *batch)
{
    struct hte_block *block;

    while ((block = batch->blocks) != NULL) {
        batch->blocks = block->next;
        free(block);
    }
    if (batch->eventfd >= 0) {
        close(batch->eventfd);
    }
    pthread_cond_destroy(&batch->ended);
    pthread_mutex_destroy(&batch->submit_lock);
    pthread_mutex_destroy(&batch->lock);
    free(batch);
}

static void put_many(struct hte_batch *batch, uint32_t count)
{
    if (atomic_fetch_sub_explicit(&batch->refs, count, memory_order_acq_rel) == count) {
        destroy(batch);
    }
}

void hte_batch_put(struct hte_batch *batch)
{
    put_many(batch, 1);
}

struct hte_batch **hte_batches_all(struct hte_batches *batches, size_t *count)
{
    uint32_t           i, room = atomic_load(&batches->open);
    struct hte_batch **all;

    *count = 0;
    all    = calloc(room + 1, sizeof(*all));
    pthread_mutex_lock(&batches->lock);
    for (i = 0; all != NULL && i < batches->table.count && *count < room; ++i) {
        if (batches->slots[i].object != NULL) {
            all[*count] = batches->slots[i].object;
            hte_batch_ref(all[(*count)++], 1);
        }
    }
    pthread_mutex_unlock(&batches->lock);
    return all;
}

void hte_batch_cancel_tasks(struct hte_batch *batch)
{
    uint32_t i, submitted = atomic_load(&batch->submitted);

    for (i = 0; i < submitted; ++i) {
        atomic_store(&batch->tasks[i].is_canceled, true);
    }
}

/* ---- a request ---- */

static void batch_begins(struct hte_batch *batch)
{
    if (!atomic_load_explicit(&batch->has_begun, memory_order_relaxed)) {
        atomic_store(&batch->has_begun, true);
    }
}

void hte_task_begin(struct hte_task *task)
{
    int32_t waiting = HTE_WAITING;

    if (atomic_load_explicit(&task->code, memory_order_relaxed) == HTE_WAITING) {
        atomic_compare_exchange_strong(&task->code, &waiting, HTE_PENDING);
        batch_begins(task->batch);
    }
}

/* Nobody else works on them. */
void hte_tasks_begin(struct hte_task *task, uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count; ++i) {
        atomic_store_explicit(&task[i].code, HTE_PENDING, memory_order_relaxed);
    }
    batch_begins(task->batch);
}

static _Thread_local bool in_callback;

bool hte_batch_in_callback(void)
{
    return in_callback;
}

/* All requests are final, and seen to be: the callback may free the batch. */
static void call_back(struct hte_batch *batch)
{
    if (batch->callback != NULL) {
        in_callback = true;
        batch->callback(batch->batches->engine, batch->id, batch->callback_arg);
        in_callback = false;
    }
}

/* Nothing is left to come, so that who is woken by the eventfd does not find the batch busy. */
static void wake_waiters(struct hte_batch *batch)
{
    uint64_t one = 1;
    ssize_t  written;

    pthread_mutex_lock(&batch->lock);
    pthread_cond_broadcast(&batch->ended);
    pthread_mutex_unlock(&batch->lock);
    if (batch->eventfd >= 0) {
        written = write(batch->eventfd, &one, sizeof(one));
        (void)written; /* full: it is readable anyway */
    }
}

static void merge_worst(_Atomic int32_t *worst, int32_t code)
{
    int32_t old = atomic_load(worst);

    while (hte_worse_code(old, code) != old && !atomic_compare_exchange_weak(worst, &old, code)) {
    }
}

/* So many have their final status. */
static void tell(struct hte_batch *batch, uint32_t count, int code, int error)
{
    int32_t none = HTE_OK;

    merge_worst(&batch->worst, code);
    if (error != HTE_OK) {
        atomic_compare_exchange_strong(&batch->first_error, &none, error);
    }
    atomic_fetch_add_explicit(&batch->batches->requests_ended, count, memory_order_relaxed);
    if (atomic_fetch_sub(&batch->unfinished, count) == count) {
        call_back(batch);
    }
    if (atomic_fetch_sub(&batch->untold, count) == count) {
        wake_waiters(batch);
    }
    put_many(batch, count);
}

static void task_final(struct hte_task *task, int code, int error)
{
    struct hte_batch *batch = task->batch;

    batch->batches->release(batch->batches->engine, task, 1, code == HTE_COMPLETED);
    atomic_store_explicit(&task->error, error, memory_order_relaxed);
    atomic_store_explicit(&task->code, code, memory_order_release);
    tell(batch, 1, code, error);
}

void hte_tasks_final(struct hte_task *task, uint32_t count, int code, int error)
{
    struct hte_batch *batch        = task->batch;
    bool              is_completed = code == HTE_COMPLETED;
    uint64_t          bytes        = 0;
    uint32_t          i;

    batch->batches->release(batch->batches->engine, task, count, is_completed);
    for (i = 0; i < count; ++i) {
        if (is_completed) {
            atomic_store_explicit(&task[i].transferred, task[i].length, memory_order_relaxed);
            bytes += task[i].length;
        }
        atomic_store_explicit(&task[i].error, error, memory_order_relaxed);
        atomic_store_explicit(&task[i].code, code, memory_order_release);
    }
    atomic_fetch_add_explicit(&batch->transferred, bytes, memory_order_relaxed);
    tell(batch, count, code, error);
}

/* code in the low byte, -error above it */
static int32_t pack(int code, int error)
{
    return code | -error << 8;
}

void hte_task_piece_final(struct hte_task *task, const struct hte_piece_state *piece)
{
    int32_t mine = pack(piece->code, piece->error), old = atomic_load(&task->worst);

    while (hte_worse_code(old & 0xff, mine & 0xff) != (old & 0xff) &&
           !atomic_compare_exchange_weak(&task->worst, &old, mine)) {
    }
    if (atomic_fetch_sub(&task->pieces, 1) == 1) {
        old = atomic_load(&task->worst);
        task_final(task, old & 0xff, -(old >> 8));
    }
}
