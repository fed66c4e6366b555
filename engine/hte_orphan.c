/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_orphan.h"

#include "hte_conn.h"

void hte_orphan_init(void *request)
{
    struct hte_orphan *orphan = request;

    hte_ring_init(&orphan->link);
    orphan->conn = NULL;
    orphan->keys = NULL;
}

void hte_orphan_make(struct hte_slice *slice)
{
    struct hte_orphan *orphan = slice->request;

    orphan->conn = slice->conn;
    orphan->keys = slice->keys;
    slice->keys  = NULL;
    hte_ring_append(&slice->conn->orphans, &orphan->link);
}

bool hte_orphan_end(void *request)
{
    struct hte_orphan *orphan = request;

    if (orphan == NULL || orphan->conn == NULL) {
        return false;
    }
    --orphan->conn->pending;
    hte_ring_remove(&orphan->link);
    hte_keys_put(orphan->keys);
    hte_orphan_init(orphan);
    ucp_request_free(request);
    return true;
}

void hte_orphans_release(struct hte_conn *conn)
{
    struct hte_link_ring *link;
    struct hte_orphan *orphan;

    for (link = conn->orphans.next; link != &conn->orphans; link = link->next) {
        orphan = HTE_OBJECT_OF(link, struct hte_orphan, link);
        hte_keys_put(orphan->keys);
        orphan->keys = NULL;
    }
}
