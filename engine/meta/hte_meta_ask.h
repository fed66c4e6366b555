/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_ASK_H_
#define HTE_META_ASK_H_

#include "hte_client.h"

/* One exchange with the process at `address`; the peer's error is this function's. *payload is the caller's. */
int hte_meta_ask(const struct hte_client_options *options, const char *address, enum hte_ask_type type,
                 const char *request, char **payload, struct hte_why *why);

#endif
