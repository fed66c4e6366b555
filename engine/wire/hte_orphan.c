/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_orphan.h"

void hte_orphan_init(void *request)
{
    struct hte_orphan *orphan = request;

    hte_ring_init(&orphan->link);
    orphan->pending = NULL;
    orphan->keys    = NULL;
}

void hte_orphan_make(void *request, struct hte_keys *keys, struct hte_link_ring *orphans, uint32_t *pending)
{
    struct hte_orphan *orphan = request;

    orphan->pending = pending;
    orphan->keys    = keys;
    hte_ring_append(orphans, &orphan->link);
}

bool hte_orphan_end(void *request)
{
    struct hte_orphan *orphan = request;

    if (orphan == NULL || orphan->pending == NULL) {
        return false;
    }
    --*orphan->pending;
    hte_ring_remove(&orphan->link);
    hte_keys_put(orphan->keys);
    hte_orphan_init(orphan);
    ucp_request_free(request);
    return true;
}

void hte_orphans_release(struct hte_link_ring *orphans)
{
    struct hte_link_ring *link;
    struct hte_orphan    *orphan;

    for (link = orphans->next; link != orphans; link = link->next) {
        orphan = HTE_OBJECT_OF(link, struct hte_orphan, link);
        hte_keys_put(orphan->keys);
        orphan->keys = NULL;
    }
}
