/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_keys.h"

#include <stdlib.h>

void hte_keys_destroy(struct hte_keys *keys)
{
    uint32_t i;

    for (i = 0; i < keys->view->descriptor->num_buffers; ++i) {
        if (keys->rkeys[i] != NULL) {
            ucp_rkey_destroy(keys->rkeys[i]);
        }
    }
    hte_view_put(keys->view);
    free(keys);
}

struct hte_keys *hte_keys_renew(struct hte_keys **newest, struct hte_view *view)
{
    struct hte_keys *keys = calloc(1, sizeof(*keys) + view->descriptor->num_buffers * sizeof(keys->rkeys[0]));

    if (keys == NULL) {
        return NULL;
    }
    atomic_fetch_add(&view->refs, 1);
    keys->view  = view;
    keys->users = 1;
    hte_keys_put(*newest);
    *newest = keys;
    return keys;
}

ucs_status_t hte_keys_unpack(struct hte_keys *keys, ucp_ep_h ep, unsigned remote_rail, uint32_t buffer)
{
    ucs_status_t status;
    void        *key;

    if (keys == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    key = hte_blob_padded(&keys->view->descriptor->buffers[buffer].keys[remote_rail]);
    if (key == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_ep_rkey_unpack(ep, key, &keys->rkeys[buffer]);
    free(key);
    return status;
}
