/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_prepare.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "hte_engine.h"

struct hte_prepared {
    _Atomic uint32_t    refs; /* table, callers inside a call */
    uint32_t            slot;
    pthread_mutex_t     lock; /* guards edition; held while fetching */
    struct hte_edition *edition;
    size_t              count;
    struct hte_request  requests[];
};

void hte_lists_init(struct hte_engine *engine)
{
    pthread_mutex_init(&engine->lists_lock, NULL);
    hte_table_init(&engine->lists, engine->list_slots, HTE_LISTS_MAX, 0x7fffffffu);
}

void hte_lists_cleanup(struct hte_engine *engine)
{
    unsigned i;

    for (i = 0; i < HTE_LISTS_MAX; ++i) {
        if (engine->list_slots[i].object != NULL) {
            hte_list_put(engine->list_slots[i].object);
        }
    }
    pthread_mutex_destroy(&engine->lists_lock);
}

/* With the lock held. */
static struct hte_prepared *find(struct hte_engine *engine, hte_list_t id)
{
    return hte_table_find(&engine->lists, (uint32_t)id, (uint32_t)(id >> 32));
}

static int bad_handle(hte_list_t id)
{
    return hte_fail(HTE_ERR_BAD_HANDLE, "list 0x%llx was never prepared, or was released", (unsigned long long)id);
}

struct hte_prepared *hte_list_get(struct hte_engine *engine, hte_list_t id)
{
    struct hte_prepared *list;

    pthread_mutex_lock(&engine->lists_lock);
    list = find(engine, id);
    if (list != NULL) {
        atomic_fetch_add(&list->refs, 1);
    }
    pthread_mutex_unlock(&engine->lists_lock);
    if (list == NULL) {
        bad_handle(id);
    }
    return list;
}

void hte_list_put(struct hte_prepared *list)
{
    if (atomic_fetch_sub(&list->refs, 1) > 1) {
        return;
    }
    if (list->edition != NULL) {
        hte_edition_put(list->edition, 1);
    }
    pthread_mutex_destroy(&list->lock);
    free(list);
}

size_t hte_list_count(const struct hte_prepared *list)
{
    return list->count;
}

/* ---- editions ---- */

static int make_edition(struct hte_engine *engine, const struct hte_prepared *list, struct hte_edition **made)
{
    struct hte_edition   *edition = malloc(sizeof(*edition) + list->count * sizeof(edition->tasks[0]));
    struct hte_submission all     = {.engine = engine, .requests = list->requests, .count = list->count};
    int                   error;

    if (edition == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a list of %zu requests", list->count);
    }
    all.tasks = edition->tasks;
    error     = hte_take_all(&all);
    if (error != HTE_OK) {
        hte_take_back(&all);
    }
    hte_take_forget(&all);
    if (error != HTE_OK) {
        free(edition);
        return error;
    }
    edition->engine = engine;
    edition->extra  = all.extra;
    edition->count  = list->count;
    atomic_init(&edition->refs, 1);
    *made = edition;
    return HTE_OK;
}

/* What was taken before stays so until the new one is there: what both use is in use all the time. */
static int renew(struct hte_prepared *list, struct hte_engine *engine)
{
    struct hte_edition *edition = NULL, *old = list->edition;
    int                 error = make_edition(engine, list, &edition);

    if (error == HTE_OK) {
        list->edition = edition;
        if (old != NULL) {
            hte_edition_put(old, 1);
        }
    }
    return error;
}

int hte_list_take(struct hte_prepared *list, struct hte_submission *submission)
{
    int error = HTE_OK;

    pthread_mutex_lock(&list->lock);
    if (!hte_take_is_current(submission, list->edition)) {
        error = renew(list, submission->engine);
    }
    if (error == HTE_OK) {
        hte_take_copies(submission, list->edition);
    }
    pthread_mutex_unlock(&list->lock);
    return error;
}

/* ---- hte.h ---- */

static int add(struct hte_engine *engine, struct hte_prepared *list, hte_list_t *id)
{
    pthread_mutex_lock(&engine->lists_lock);
    list->slot = hte_table_add(&engine->lists, list);
    if (list->slot != HTE_TABLE_NONE) {
        *id = (uint64_t)engine->list_slots[list->slot].generation << 32 | list->slot;
    }
    pthread_mutex_unlock(&engine->lists_lock);
    return list->slot != HTE_TABLE_NONE ? HTE_OK
                                        : hte_fail(HTE_ERR_LIMIT, "%d lists are prepared: release some", HTE_LISTS_MAX);
}

static int prepare(struct hte_engine *engine, const struct hte_request *requests, size_t count, hte_list_t *id)
{
    struct hte_prepared *list = malloc(sizeof(*list) + count * sizeof(list->requests[0]));
    int                  error;

    if (list == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a list of %zu requests", count);
    }
    atomic_init(&list->refs, 1);
    pthread_mutex_init(&list->lock, NULL);
    list->edition = NULL;
    list->count   = count;
    memcpy(list->requests, requests, count * sizeof(list->requests[0]));
    error = renew(list, engine);
    if (error == HTE_OK) {
        error = add(engine, list, id);
    }
    if (error != HTE_OK) {
        hte_list_put(list);
    }
    return error;
}

int hte_list_prepare(struct hte_engine *engine, const struct hte_request *requests, size_t count, hte_list_t *list)
{
    int error;

    if (requests == NULL || list == NULL || count == 0 || count > HTE_BATCH_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "requests or list is NULL, or count %zu is not from 1 to %u", count,
                        HTE_BATCH_MAX);
    }
    error = hte_enter(engine);
    if (error == HTE_OK) {
        error = prepare(engine, requests, count, list);
        hte_leave(engine);
    }
    return error;
}

int hte_list_release(struct hte_engine *engine, hte_list_t id)
{
    struct hte_prepared *list;
    int                  error = hte_enter(engine);

    if (error != HTE_OK) {
        return error;
    }
    pthread_mutex_lock(&engine->lists_lock);
    list = find(engine, id);
    if (list != NULL) {
        hte_table_remove(&engine->lists, list->slot);
    }
    pthread_mutex_unlock(&engine->lists_lock);
    if (list != NULL) {
        hte_list_put(list);
    }
    hte_leave(engine);
    return list != NULL ? HTE_OK : bad_handle(id);
}
