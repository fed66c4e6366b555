/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_meta_segment.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hte_meta_ask.h"
#include "hte_meta_entry.h"
#include "hte_meta_state.h"

#define ALIVE_MS 1000 /* that a namesake gets to show that it lives */

/* ---- publishing ------------------------------------------------------------------------- */

/* Two processes under one name would take turns in the store. Another one's entry that nobody answers
 * for is of a process that died, and is taken over. */
static int claim_name(struct hte_meta *meta, struct hte_why *why)
{
    struct hte_client_options quick = meta->client;
    char                      address[HTE_ADDRESS_TEXT_MAX], *name;
    bool                      same;
    int                       ret = hte_meta_locate(meta, meta->name, address, why);

    if (ret == HTE_ERR_METADATA) {
        return ret;
    }
    if (ret != 0 || strcmp(address, meta->address) == 0) {
        return 0;
    }
    quick.connect_ms = quick.connect_ms < ALIVE_MS ? quick.connect_ms : ALIVE_MS;
    quick.call_ms    = quick.call_ms < ALIVE_MS ? quick.call_ms : ALIVE_MS;
    if (hte_meta_ask(&quick, address, HTE_ASK_PROBE, "", &name, NULL) != 0) {
        return 0;
    }
    same = strcmp(name, meta->name) == 0;
    free(name);
    return same ? hte_why_set(why, HTE_ERR_EXISTS, "segment '%s' is published by the process at %s already", meta->name,
                              address)
                : 0;
}

/* In the order in which a reader must not find them: an address without a descriptor leads nowhere. */
static int fill_store(struct hte_meta *meta, const char *json, struct hte_why *why)
{
    int ret = 0;

    if (!meta->claimed) {
        ret = claim_name(meta, why);
    }
    if (ret == 0) {
        meta->claimed = true;
        ret           = hte_meta_put(meta, "ram", json, why);
    }
    if (ret == 0) {
        ret = hte_meta_put_address(meta, why);
    }
    return ret;
}

/* Without the store we keep what was published before: the store does, too. */
static int publish_json(struct hte_meta *meta, char *json, struct hte_why *why)
{
    char *before;
    int   ret = 0;

    pthread_mutex_lock(&meta->store_turn);
    if (meta->store != NULL) {
        ret = fill_store(meta, json, why);
    }
    if (ret == 0) {
        pthread_mutex_lock(&meta->lock);
        before          = meta->published;
        meta->published = json;
        pthread_mutex_unlock(&meta->lock);
        free(before);
    }
    pthread_mutex_unlock(&meta->store_turn);
    return ret;
}

int hte_meta_publish(struct hte_meta *meta, const struct hte_descriptor *descriptor, struct hte_why *why)
{
    struct hte_descriptor named = *descriptor;
    size_t                needed;
    char                 *json;
    int                   ret;

    named.name = meta->name;
    ret        = hte_descriptor_to_json(&named, &json, why);
    if (ret != 0) {
        return ret;
    }
    /* quoted once more it has to fit into a reply, with room for the rest of that */
    needed = strlen(json) + strlen(json) / 8 + HTE_WHY_MAX;
    if (needed > meta->client.max_frame) {
        ret = hte_why_set(why, HTE_ERR_LIMIT,
                          "the descriptor of %u buffers needs a message of %zu bytes: raise option handshake_max (%zu) "
                          "on all sides, or register fewer and larger buffers",
                          named.num_buffers, needed, meta->client.max_frame);
    } else {
        ret = publish_json(meta, json, why);
    }
    if (ret != 0) {
        free(json);
    }
    return ret;
}

int hte_meta_withdraw(struct hte_meta *meta, struct hte_why *why)
{
    int  ret = 0, also;
    bool was_published;

    pthread_mutex_lock(&meta->store_turn);
    pthread_mutex_lock(&meta->lock);
    was_published = meta->published != NULL;
    free(meta->published);
    meta->published = NULL;
    pthread_mutex_unlock(&meta->lock);
    if (meta->store != NULL && was_published) {
        ret  = hte_meta_remove(meta, "rpc_meta", why);
        also = ret == 0 ? hte_meta_remove(meta, "ram", why) : 0;
        ret  = ret != 0 ? ret : also;
    }
    pthread_mutex_unlock(&meta->store_turn);
    return ret;
}

/* ---- fetching ---------------------------------------------------------------------------- */

static int fetch_text(struct hte_meta *meta, const char *segment, char **text, struct hte_why *why)
{
    char address[HTE_ADDRESS_TEXT_MAX];
    int  ret;

    if (meta->store == NULL) {
        ret = hte_meta_locate(meta, segment, address, why);
        return ret != 0 ? ret : hte_meta_ask(&meta->client, address, HTE_ASK_METADATA, segment, text, why);
    }
    ret = hte_meta_get(meta, "ram", segment, text, why);
    if (ret == HTE_ERR_UNKNOWN_SEGMENT) {
        hte_why_set(why, ret, "%s knows no segment '%.200s'", hte_store_url(meta->store), segment);
    }
    return ret;
}

int hte_meta_fetch(struct hte_meta *meta, const char *segment, struct hte_descriptor **descriptor, struct hte_why *why)
{
    struct hte_descriptor *found;
    struct hte_why         cause;
    char                  *text;
    int                    ret = fetch_text(meta, segment, &text, why);

    if (ret != 0) {
        return ret;
    }
    ret = hte_descriptor_from_json(text, strlen(text), &found, &cause);
    free(text);
    if (ret != 0) {
        return hte_why_set(why, ret, "descriptor of '%.64s': %.240s", segment, cause.text);
    }
    if (meta->store != NULL && strcmp(found->name, segment) != 0) {
        ret = hte_why_set(why, HTE_ERR_MALFORMED_JSON, "descriptor of '%.64s': name: it is of '%.64s'", segment,
                          found->name);
        hte_descriptor_destroy(found);
        return ret;
    }
    *descriptor = found;
    return 0;
}

/* ---- refreshing ---------------------------------------------------------------------------- */

/* A store that was restarted without its data gets ours again. The small key stands for both. */
static void refresh(struct hte_meta *meta)
{
    char address[HTE_ADDRESS_TEXT_MAX], *json = NULL;

    pthread_mutex_lock(&meta->store_turn);
    pthread_mutex_lock(&meta->lock);
    if (meta->published != NULL) {
        json = strdup(meta->published);
    }
    pthread_mutex_unlock(&meta->lock);
    if (json != NULL && hte_meta_locate(meta, meta->name, address, NULL) == HTE_ERR_UNKNOWN_SEGMENT) {
        fill_store(meta, json, NULL); /* what fails now is tried again next time */
    }
    free(json);
    pthread_mutex_unlock(&meta->store_turn);
}

/* Sleeps for a period; false when it is time to end. */
static bool sleep_period(struct hte_meta *meta)
{
    struct timespec until;
    bool            stopping;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += meta->refresh_ms / 1000;
    until.tv_nsec += (long)(meta->refresh_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&meta->lock);
    while (!meta->stopping && pthread_cond_timedwait(&meta->wake, &meta->lock, &until) != ETIMEDOUT) {
    }
    stopping = meta->stopping;
    pthread_mutex_unlock(&meta->lock);
    return !stopping;
}

static void *keep_refreshed(void *arg)
{
    while (sleep_period(arg)) {
        refresh(arg);
    }
    return NULL;
}

int hte_meta_start_refresher(struct hte_meta *meta, struct hte_why *why)
{
    sigset_t all, before;
    int      ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&meta->refresher, NULL, keep_refreshed, meta);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ret != 0) {
        return hte_why_set(why, HTE_ERR_MEMORY, "metadata thread: %s", strerror(ret));
    }
    meta->refreshing = true;
    return 0;
}
