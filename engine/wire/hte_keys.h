/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_KEYS_H_
#define HTE_KEYS_H_

/* Unpacked keys of one view's buffers, for one endpoint. Of one thread only. */

#include <stdint.h>

#include <ucp/api/ucp.h>

#include "remote/hte_view.h"

struct hte_keys {
    struct hte_view *view;    /* reference */
    uint32_t         users;   /* posted operations, + 1 while it is the connection's newest */
    ucp_rkey_h       rkeys[]; /* per buffer; NULL: not unpacked yet */
};

/* The keys of that view: *newest, which is replaced when it is another view's. NULL: no memory. */
struct hte_keys *hte_keys_of(struct hte_keys **newest, struct hte_view *view);
ucs_status_t hte_keys_unpack(struct hte_keys *keys, ucp_ep_h ep, unsigned remote_rail, uint32_t buffer);
void hte_keys_put(struct hte_keys *keys);

#endif
