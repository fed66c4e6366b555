/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_HTTP_H_
#define HTE_HTTP_H_

/* One HTTP exchange at a time over a kept-alive connection, by libcurl. For one thread at a time. */

#include <stddef.h>

#include "base/hte_why.h"

struct hte_http;

/* An exchange takes at most `answer_ms`, of that `connect_ms` to connect; bodies of at most `max_body`
 * bytes are accepted. */
int  hte_http_open(unsigned connect_ms, unsigned answer_ms, size_t max_body, struct hte_http **http,
                   struct hte_why *why);
void hte_http_close(struct hte_http *http);

/* `body` NULL = none. On success *status is the server's, and *text (zero-terminated) the caller's, to be
 * given to free(). HTE_ERR_METADATA when there is no answer, or a longer one. */
int hte_http_exchange(struct hte_http *http, const char *method, const char *url, const char *body, long *status,
                      char **text, struct hte_why *why);

/* %xx for all but letters, digits and -._~ ; the caller's, NULL without memory. */
char *hte_http_escape(const char *text);

#endif
