/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STORE_DRIVER_H_
#define HTE_STORE_DRIVER_H_

/*
 * What a kind of metadata server has to do. hte_store.c picks the driver by
 * the URL's scheme, checks keys and sizes, and calls one function at a time.
 */

#include "base/hte_why.h"
#include "hte_store_options.h"
#include "hte_url.h"

struct hte_store_driver {
    int (*open)(const struct hte_url *url, const struct hte_store_options *options, void **state, struct hte_why *why);
    void (*close)(void *state);
    int (*put)(void *state, const char *key, const char *text, struct hte_why *why);
    int (*get)(void *state, const char *key, char **text, struct hte_why *why);
    int (*remove)(void *state, const char *key, struct hte_why *why);
};

/* An empty one (open = NULL) when the build has no library for it. */
extern const struct hte_store_driver hte_store_http;
extern const struct hte_store_driver hte_store_redis;
extern const struct hte_store_driver hte_store_etcd;

#endif
