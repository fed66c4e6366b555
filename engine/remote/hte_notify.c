/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications travel as "name length, newline, name, text" through the handshake's notify call. */
#include "hte_notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hte_error.h"
#include "base/hte_now.h"

#define TRIES        5
#define TRY_PAUSE_NS 100000000ull /* doubles; and as long as the try took */

struct hte_letter {
    struct hte_link_ring    link;
    struct hte_notification content;
};

/* ---- what came in ---- */

static void letter_destroy(struct hte_letter *letter)
{
    free(letter->content.from);
    free(letter->content.name);
    free(letter->content.text);
    free(letter);
}

static struct hte_letter *letter_create(const char *from, const char *name, size_t name_length, const char *text)
{
    struct hte_letter *letter = calloc(1, sizeof(*letter));

    if (letter == NULL) {
        return NULL;
    }
    letter->content.from = strdup(from);
    letter->content.name = strndup(name, name_length);
    letter->content.text = strdup(text);
    if (letter->content.from == NULL || letter->content.name == NULL || letter->content.text == NULL) {
        letter_destroy(letter);
        return NULL;
    }
    return letter;
}

static bool parse(const char *payload, const char **name, size_t *name_length)
{
    char         *end;
    unsigned long length = strtoul(payload, &end, 10);

    if (end == payload || *end != '\n' || length > HTE_NOTIFY_MAX || strlen(end + 1) < length) {
        return false;
    }
    *name        = end + 1;
    *name_length = length;
    return true;
}

int hte_notify_receive(struct hte_notify *notify, const char *from, const char *payload, struct hte_why *why)
{
    struct hte_letter *letter;
    const char        *name;
    size_t             name_length;
    bool               is_full;

    if (!parse(payload, &name, &name_length)) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "a notification without name");
    }
    letter = letter_create(from, name, name_length, name + name_length);
    if (letter == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a notification");
    }
    pthread_mutex_lock(&notify->lock);
    is_full = notify->n_inbox >= notify->max;
    if (!is_full) {
        hte_ring_append(&notify->inbox, &letter->link);
        ++notify->n_inbox;
    }
    pthread_mutex_unlock(&notify->lock);
    if (is_full) {
        letter_destroy(letter);
        return hte_why_set(why, HTE_ERR_LIMIT, "%llu notifications wait to be drained",
                           (unsigned long long)notify->max);
    }
    return HTE_OK;
}

int hte_notify_take(struct hte_notify *notify, struct hte_notification **notifications, size_t *count)
{
    struct hte_notification *array = NULL;
    struct hte_letter       *letter;
    size_t                   i = 0;

    pthread_mutex_lock(&notify->lock);
    if (notify->n_inbox > 0) {
        array = calloc(notify->n_inbox, sizeof(*array));
        if (array == NULL) {
            pthread_mutex_unlock(&notify->lock);
            return hte_fail(HTE_ERR_MEMORY, "no memory for notifications");
        }
    }
    while (!hte_ring_is_empty(&notify->inbox)) {
        letter = HTE_OBJECT_OF(notify->inbox.next, struct hte_letter, link);
        hte_ring_remove(&letter->link);
        array[i++] = letter->content;
        free(letter);
    }
    notify->n_inbox = 0;
    pthread_mutex_unlock(&notify->lock);
    *notifications = array;
    *count         = i;
    return HTE_OK;
}

/* ---- sending ---- */

int hte_notify_check(const char *name, const char *text)
{
    if (name == NULL || text == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "a notification's name or text is NULL");
    }
    if (strlen(name) > HTE_NAME_MAX || strlen(text) > HTE_NOTIFY_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "a notification has at most %d bytes of name and %d of text",
                        HTE_NAME_MAX, HTE_NOTIFY_MAX);
    }
    return HTE_OK;
}

int hte_notify_deliver(struct hte_meta *meta, const char *segment, const char *name, const char *text)
{
    size_t         size    = strlen(name) + strlen(text) + 32;
    char          *payload = malloc(size);
    struct hte_why why     = {""};
    int            error;

    if (payload == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a notification");
    }
    snprintf(payload, size, "%zu\n%s%s", strlen(name), name, text);
    error = hte_meta_call(meta, segment, HTE_CALL_NOTIFY, payload, NULL, &why);
    free(payload);
    return hte_fail_why(error, &why);
}

/* ---- those of batches ---- */

int hte_notice_create(const char *name, const char *text, uint32_t max_targets, struct hte_notice **notice_p)
{
    struct hte_notice *notice;
    int                error = hte_notify_check(name, text);

    if (error != HTE_OK) {
        return error;
    }
    notice = calloc(1, sizeof(*notice));
    if (notice != NULL) {
        notice->targets = calloc(max_targets, sizeof(*notice->targets));
        notice->tries   = calloc(max_targets, sizeof(*notice->tries));
        notice->name    = strdup(name);
        notice->text    = strdup(text);
    }
    if (notice == NULL || notice->targets == NULL || notice->tries == NULL || notice->name == NULL ||
        notice->text == NULL) {
        hte_notice_destroy(notice);
        return hte_fail(HTE_ERR_MEMORY, "no memory for a notification");
    }
    hte_ring_init(&notice->link);
    *notice_p = notice;
    return HTE_OK;
}

void hte_notice_destroy(struct hte_notice *notice)
{
    uint32_t i;

    if (notice == NULL) {
        return;
    }
    for (i = 0; i < notice->n_targets; ++i) {
        hte_segment_put(notice->targets[i]);
    }
    free(notice->targets);
    free(notice->tries);
    free(notice->name);
    free(notice->text);
    free(notice);
}

void hte_notice_task_final(struct hte_notify *notify, struct hte_notice *notice, bool is_completed)
{
    bool is_sent = false;

    if (!is_completed) {
        atomic_store(&notice->is_void, true);
    }
    if (atomic_fetch_sub(&notice->left, 1) != 1) {
        return;
    }
    if (!atomic_load(&notice->is_void) && notice->n_targets > 0) {
        pthread_mutex_lock(&notify->lock);
        is_sent = !notify->is_stopping;
        if (is_sent) {
            hte_ring_append(&notify->outbox, &notice->link);
            pthread_cond_signal(&notify->has_work);
        }
        pthread_mutex_unlock(&notify->lock);
    }
    if (!is_sent) {
        notify->dropped += atomic_load(&notice->is_void) ? 0 : notice->n_targets;
        hte_notice_destroy(notice);
    }
}

/* What is due first, in order; or when something will be. With the lock held. */
static struct hte_notice *find_due(struct hte_notify *notify, uint64_t now, uint32_t *target, uint64_t *soonest)
{
    struct hte_link_ring *link;
    struct hte_notice    *notice;
    uint64_t              when;
    uint32_t              i;

    *soonest = UINT64_MAX;
    for (link = notify->outbox.next; link != &notify->outbox; link = link->next) {
        notice = HTE_OBJECT_OF(link, struct hte_notice, link);
        for (i = 0; i < notice->n_targets; ++i) {
            when = notice->targets[i]->notify_after;
            if (when <= now) {
                *target = i;
                return notice;
            }
            *soonest = when < *soonest ? when : *soonest;
        }
    }
    return NULL;
}

static bool is_worth_another_try(int error)
{
    return error != HTE_ERR_HANDSHAKE_REJECTED && error != HTE_ERR_INVALID_ARGUMENT &&
           error != HTE_ERR_NOT_IMPLEMENTED && error != HTE_ERR_MALFORMED_JSON;
}

/* Whether the target is done with: it has it, or will not. */
static bool try_one(struct hte_notify *notify, struct hte_notice *notice, uint32_t target)
{
    struct hte_segment *segment = notice->targets[target];
    uint64_t            now, begin = hte_now();
    int                 error = hte_notify_deliver(notify->meta, segment->name, notice->name, notice->text);

    if (error == HTE_OK) {
        ++notify->sent;
        return true;
    }
    now                   = hte_now();
    segment->notify_after = now + (now - begin) + (TRY_PAUSE_NS << notice->tries[target]);
    if (++notice->tries[target] < TRIES && is_worth_another_try(error)) {
        return false;
    }
    ++notify->dropped;
    return true;
}

/* Without the lock; only this thread changes notices that are in the outbox. */
static void attempt(struct hte_notify *notify, struct hte_notice *notice, uint32_t target)
{
    if (try_one(notify, notice, target)) {
        hte_segment_put(notice->targets[target]);
        --notice->n_targets;
        memmove(&notice->targets[target], &notice->targets[target + 1],
                (notice->n_targets - target) * sizeof(notice->targets[0]));
        memmove(&notice->tries[target], &notice->tries[target + 1], notice->n_targets - target);
    }
}

static void sleep_until(struct hte_notify *notify, uint64_t when)
{
    struct timespec end;

    if (notify->is_stopping && notify->stop_at < when) {
        when = notify->stop_at;
    }
    end = (struct timespec){.tv_sec = (time_t)(when / 1000000000), .tv_nsec = (long)(when % 1000000000)};
    if (when == UINT64_MAX) {
        pthread_cond_wait(&notify->has_work, &notify->lock);
    } else {
        pthread_cond_timedwait(&notify->has_work, &notify->lock, &end);
    }
}

static void *run(void *arg)
{
    struct hte_notify *notify = arg;
    struct hte_notice *notice;
    uint64_t           soonest;
    uint32_t           target;

    pthread_mutex_lock(&notify->lock);
    while (!notify->is_stopping || (!hte_ring_is_empty(&notify->outbox) && hte_now() < notify->stop_at)) {
        notice = find_due(notify, hte_now(), &target, &soonest);
        if (notice == NULL) {
            sleep_until(notify, soonest);
            continue;
        }
        pthread_mutex_unlock(&notify->lock);
        attempt(notify, notice, target);
        pthread_mutex_lock(&notify->lock);
        if (notice->n_targets == 0) {
            hte_ring_remove(&notice->link);
            hte_notice_destroy(notice);
        }
    }
    pthread_mutex_unlock(&notify->lock);
    return NULL;
}

/* ---- life ---- */

void hte_notify_init(struct hte_notify *notify, uint64_t max)
{
    pthread_condattr_t attributes;

    notify->max     = max;
    notify->is_open = true;
    hte_ring_init(&notify->inbox);
    hte_ring_init(&notify->outbox);
    pthread_mutex_init(&notify->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&notify->has_work, &attributes);
    pthread_condattr_destroy(&attributes);
}

int hte_notify_start(struct hte_notify *notify, struct hte_meta *meta)
{
    notify->meta = meta;
    if (pthread_create(&notify->thread, NULL, run, notify) != 0) {
        return hte_fail(HTE_ERR_LIMIT, "cannot create a thread for notifications");
    }
    notify->has_thread = true;
    return HTE_OK;
}

void hte_notify_stop(struct hte_notify *notify, uint64_t timeout_ms)
{
    if (!notify->has_thread) {
        return;
    }
    pthread_mutex_lock(&notify->lock);
    notify->stop_at     = hte_now() + timeout_ms * HTE_NS_PER_MS;
    notify->is_stopping = true;
    pthread_cond_signal(&notify->has_work);
    pthread_mutex_unlock(&notify->lock);
    pthread_join(notify->thread, NULL);
    notify->has_thread = false;
}

void hte_notify_cleanup(struct hte_notify *notify)
{
    struct hte_link_ring *link;

    if (!notify->is_open) {
        return;
    }
    while (!hte_ring_is_empty(&notify->inbox)) {
        link = notify->inbox.next;
        hte_ring_remove(link);
        letter_destroy(HTE_OBJECT_OF(link, struct hte_letter, link));
    }
    while (!hte_ring_is_empty(&notify->outbox)) {
        link = notify->outbox.next;
        hte_ring_remove(link);
        hte_notice_destroy(HTE_OBJECT_OF(link, struct hte_notice, link));
    }
    pthread_cond_destroy(&notify->has_work);
    pthread_mutex_destroy(&notify->lock);
}
