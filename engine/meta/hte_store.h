/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STORE_H_
#define HTE_STORE_H_

/*
 * A metadata server: keys to text. The URL chooses the kind:
 *
 *   http://host[:port]/path  https://...       GET, PUT, DELETE with ?key=
 *   redis://[[user]:password@]host[:port][/db] hiredis
 *   etcd://host[:port][,host[:port]...]        etcd's v3 JSON gateway
 *
 * P2PHANDSHAKE is not a store: there the peers ask each other (hte_meta.h).
 *
 * Thread-safe: calls on one store take turns. A call blocks for at most
 * `answer_ms`, all in all (of etcd: per endpoint, until one answers). A store
 * keeps working when its server comes back.
 */

#include "base/hte_why.h"
#include "hte_store_options.h"

struct hte_store;

/* Whether hte_store_open() would take the URL: its errors. */
int hte_store_check(const char *url, struct hte_why *why);

/* Does not connect yet: a server that is down is an error of put, get and remove.
 * `options` may be NULL. Nothing that is passed is kept.
 * HTE_ERR_INVALID_ARGUMENT for a URL that cannot be, HTE_ERR_NOT_IMPLEMENTED for one whose library was left out of the
 * build. */
int  hte_store_open(const char *url, const struct hte_store_options *options, struct hte_store **store,
                    struct hte_why *why);
void hte_store_close(struct hte_store *store);

/* The URL without its password; lives as long as the store. For messages. */
const char *hte_store_url(const struct hte_store *store);

/* Replaces what is there. `text` ends in a zero byte. */
int hte_store_put(struct hte_store *store, const char *key, const char *text, struct hte_why *why);
/* On success *text is the caller's, to be given to free(). HTE_ERR_UNKNOWN_SEGMENT when there is no such key. */
int hte_store_get(struct hte_store *store, const char *key, char **text, struct hte_why *why);
/* A key that is not there is a success. */
int hte_store_remove(struct hte_store *store, const char *key, struct hte_why *why);

#endif
