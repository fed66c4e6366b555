/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_KEYS_H_
#define HTE_KEYS_H_

/* Unpacked keys of one view's buffers, for one endpoint. Of one thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "remote/hte_view.h"

struct hte_keys {
    struct hte_view *view;    /* reference */
    uint32_t         users;   /* posted operations, + 1 while it is the connection's newest */
    ucp_rkey_h       rkeys[]; /* per buffer; NULL: not unpacked yet */
};

/* Replaces *newest by the keys of that view; NULL: no memory. */
struct hte_keys *hte_keys_renew(struct hte_keys **newest, struct hte_view *view);
ucs_status_t     hte_keys_unpack(struct hte_keys *keys, ucp_ep_h ep, unsigned remote_rail, uint32_t buffer);
void             hte_keys_destroy(struct hte_keys *keys);

static inline struct hte_keys *hte_keys_of(struct hte_keys **newest, struct hte_view *view)
{
    struct hte_keys *keys = *newest;

    return keys != NULL && keys->view->serial == view->serial ? keys : hte_keys_renew(newest, view);
}

static inline void hte_keys_put(struct hte_keys *keys)
{
    if (keys != NULL && --keys->users == 0) {
        hte_keys_destroy(keys);
    }
}

static inline bool hte_keys_has(const struct hte_keys *keys, uint32_t buffer)
{
    return keys != NULL && keys->rkeys[buffer] != NULL;
}

#endif
