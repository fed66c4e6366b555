/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_CLIENT_H_
#define HTE_CLIENT_H_

/* One call to another process's handshake server: connect, prove, ask, hang up. Any thread; blocks. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hte_message.h"

struct hte_client_options {
    const char         *secret; /* NULL = none */
    const char         *from;   /* own name */
    unsigned            connect_ms;
    unsigned            call_ms; /* connecting included */
    size_t              max_frame;
    const _Atomic bool *stop; /* calls end in CANCELED soon after it became true; NULL = never */
};

/* 0 and *reply whatever the peer's error is; the reply is the caller's until hte_reply_cleanup(). */
int hte_client_call(const struct hte_client_options *options, const char *host, uint16_t port, enum hte_ask_type type,
                    const char *payload, struct hte_reply *reply, struct hte_why *why);

#endif
