/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_MESSAGE_H_
#define HTE_MESSAGE_H_

/*
 * What is said on an open handshake connection: one request, one reply, each
 * a JSON object. Pure. Payloads are text; their meaning is others' business.
 *
 *   {"type": "metadata" | "connection" | "notify" | "probe" | "metrics", "from": name, "payload": text}
 *   {"type": "reply", "error": 0 or -n, "why": text, "payload": text}
 *
 * A reply's error is an enum hte_error, as a negative number.
 */

#include <stddef.h>

#include "base/hte_why.h"

enum hte_ask_type {
    HTE_ASK_METADATA, /* payload: name of a segment; the reply's: its descriptor */
    HTE_ASK_CONNECTION,
    HTE_ASK_NOTIFY,
    HTE_ASK_PROBE,
    HTE_ASK_METRICS
};

struct hte_ask {
    enum hte_ask_type type;
    char             *from;
    char             *payload;
};

struct hte_reply {
    int            error;   /* 0, or an enum hte_error */
    struct hte_why why;     /* of the error */
    char          *payload; /* NULL = "" */
};

/* The text is the caller's, to be given to free(); NULL without memory, or when a text is not UTF-8. */
char *hte_ask_write(enum hte_ask_type type, const char *from, const char *payload);
char *hte_reply_write(const struct hte_reply *reply);

/* On success the texts are the caller's, until hte_ask_cleanup() or hte_reply_cleanup(). */
int  hte_ask_read(const char *text, size_t length, struct hte_ask *request, struct hte_why *why);
int  hte_reply_read(const char *text, size_t length, struct hte_reply *reply, struct hte_why *why);
void hte_ask_cleanup(struct hte_ask *request);
void hte_reply_cleanup(struct hte_reply *reply);

#endif
