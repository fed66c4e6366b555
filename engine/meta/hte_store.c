/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_store.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte_store_driver.h"

#define TIMEOUT_MS 5000
#define VALUE_MAX  (1u << 20)

struct hte_store {
    const struct hte_store_driver *driver;
    void                          *state;
    size_t                         max_value;
    char                           url[HTE_URL_MAX];
    pthread_mutex_t                lock; /* around every call of the driver */
};

static const struct {
    const char                    *scheme, *library;
    const struct hte_store_driver *driver;
} kinds[] = {{"http", "libcurl", &hte_store_http},
             {"https", "libcurl", &hte_store_http},
             {"redis", "hiredis", &hte_store_redis},
             {"etcd", "libcurl", &hte_store_etcd}};

static int find_driver(const char *scheme, const struct hte_store_driver **driver, struct hte_why *why)
{
    size_t i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(scheme, kinds[i].scheme) != 0) {
            continue;
        }
        *driver = kinds[i].driver;
        return (*driver)->open != NULL
                   ? 0
                   : hte_why_set(why, HTE_ERR_NOT_IMPLEMENTED, "%s:// needs %s, and this library was built without it",
                                 scheme, kinds[i].library);
    }
    return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                       "metadata URL: '%s://' is not known; http, https, redis and etcd are, and P2PHANDSHAKE", scheme);
}

int hte_store_check(const char *url, struct hte_why *why)
{
    const struct hte_store_driver *driver;
    struct hte_url                 parts;
    int                            ret = hte_url_parse(url, &parts, why);

    return ret != 0 ? ret : find_driver(parts.scheme, &driver, why);
}

int hte_store_open(const char *url, const struct hte_store_options *options, struct hte_store **store,
                   struct hte_why *why)
{
    struct hte_store_options       used   = {.answer_ms = 0};
    const struct hte_store_driver *driver = NULL;
    struct hte_store              *made;
    struct hte_url                 parts;
    int                            ret = hte_url_parse(url, &parts, why);

    if (ret == 0) {
        ret = find_driver(parts.scheme, &driver, why);
    }
    if (ret != 0) {
        return ret;
    }
    if (options != NULL) {
        used = *options;
    }
    used.answer_ms  = used.answer_ms != 0 ? used.answer_ms : TIMEOUT_MS;
    used.connect_ms = used.connect_ms != 0 ? used.connect_ms : TIMEOUT_MS;
    used.connect_ms = used.connect_ms < used.answer_ms ? used.connect_ms : used.answer_ms;
    used.max_value  = used.max_value != 0 ? used.max_value : VALUE_MAX;
    if (used.max_value > HTE_STORE_VALUE_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a largest value of %zu bytes: at most %u are allowed",
                           used.max_value, HTE_STORE_VALUE_MAX);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a metadata store");
    }
    made->driver    = driver;
    made->max_value = used.max_value;
    snprintf(made->url, sizeof(made->url), "%.15s://%.1500s%.500s", parts.scheme, parts.place, parts.path);
    ret = driver->open(&parts, &used, &made->state, why);
    if (ret != 0) {
        free(made);
        return ret;
    }
    pthread_mutex_init(&made->lock, NULL);
    *store = made;
    return 0;
}

void hte_store_close(struct hte_store *store)
{
    if (store != NULL) {
        store->driver->close(store->state);
        pthread_mutex_destroy(&store->lock);
        free(store);
    }
}

const char *hte_store_url(const struct hte_store *store)
{
    return store->url;
}

/* ---- one call at a time, and without SIGPIPE ------------------------------------- */

struct turn {
    sigset_t before;
    bool     was_pending;
};

/* Client libraries write to sockets whose server may be gone, and not all of them mask SIGPIPE. The
 * application's disposition is not ours to change; this thread's mask is, for a moment. */
static void begin_turn(struct hte_store *store, struct turn *turn)
{
    sigset_t pipe, pending;

    pthread_mutex_lock(&store->lock);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    turn->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &turn->before);
}

static void end_turn(struct hte_store *store, const struct turn *turn)
{
    const struct timespec now = {0};
    sigset_t              pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!turn->was_pending) {
        sigtimedwait(&pipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &turn->before, NULL);
    pthread_mutex_unlock(&store->lock);
}

/* Keys go into URLs, Redis commands and log lines. */
static int check_key(const char *key, struct hte_why *why)
{
    size_t length = strlen(key), i;

    if (length == 0 || length > HTE_STORE_KEY_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a key of %zu characters: 1..%d are allowed", length,
                           HTE_STORE_KEY_MAX);
    }
    for (i = 0; i < length; i++) {
        if ((unsigned char)key[i] < 0x20 || key[i] == 0x7f) {
            return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a key with control characters");
        }
    }
    return 0;
}

int hte_store_put(struct hte_store *store, const char *key, const char *text, struct hte_why *why)
{
    int         ret = check_key(key, why);
    struct turn turn;

    if (ret != 0) {
        return ret;
    }
    if (strlen(text) > store->max_value) {
        return hte_why_set(why, HTE_ERR_LIMIT, "%s: %zu bytes, at most %zu are allowed", key, strlen(text),
                           store->max_value);
    }
    begin_turn(store, &turn);
    ret = store->driver->put(store->state, key, text, why);
    end_turn(store, &turn);
    return ret;
}

int hte_store_get(struct hte_store *store, const char *key, char **text, struct hte_why *why)
{
    int         ret = check_key(key, why);
    struct turn turn;

    if (ret != 0) {
        return ret;
    }
    begin_turn(store, &turn);
    ret = store->driver->get(store->state, key, text, why);
    end_turn(store, &turn);
    return ret;
}

int hte_store_remove(struct hte_store *store, const char *key, struct hte_why *why)
{
    int         ret = check_key(key, why);
    struct turn turn;

    if (ret != 0) {
        return ret;
    }
    begin_turn(store, &turn);
    ret = store->driver->remove(store->state, key, why);
    end_turn(store, &turn);
    return ret;
}
