/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_ENTRY_H_
#define HTE_META_ENTRY_H_

/* A segment's two entries in the store, sealed: "ram" is its descriptor, "rpc_meta" where its process answers. */

#include "base/hte_why.h"
#include "hte_net.h"

struct hte_meta;

/* The own segment's. */
int hte_meta_put(struct hte_meta *meta, const char *kind, const char *text, struct hte_why *why);
int hte_meta_put_address(struct hte_meta *meta, struct hte_why *why);
int hte_meta_remove(struct hte_meta *meta, const char *kind, struct hte_why *why);

/* Any segment's; *text is the caller's. */
int hte_meta_get(struct hte_meta *meta, const char *kind, const char *segment, char **text, struct hte_why *why);
/* Where its process answers: peer to peer the name says it. */
int hte_meta_locate(struct hte_meta *meta, const char *segment, char address[HTE_ADDRESS_TEXT_MAX],
                    struct hte_why *why);

#endif
