/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ORPHAN_H_
#define HTE_ORPHAN_H_

/*
 * An orphan: a request that UCX will not give back before its worker ends. Over plain shared memory UCX cannot see
 * that a peer is dead, nor be told (error mode NONE, see hte_conn.h). Nobody is left who could answer such a request,
 * or write for it, so its slice ends without it. What UCX may still look at, the remote keys, stays with the request.
 *
 * struct hte_orphan is the user's part of every UCX request of the engine; pending == NULL: an ordinary one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "hte_keys.h"

struct hte_orphan {
    struct hte_link_ring link;    /* connection's orphans */
    uint32_t            *pending; /* connection's count of requests that UCX has */
    struct hte_keys     *keys;    /* reference */
};

/* ucp_params_t.request_init; UCX calls it once for memory that it uses again and again. */
void hte_orphan_init(void *request);
/* UCX has this request, and will keep it. Takes the reference to the keys over. */
void hte_orphan_make(void *request, struct hte_keys *keys, struct hte_link_ring *orphans, uint32_t *pending);
/* UCX gave a request back. Whether it was an orphan: then that is all there is to do with it. */
bool hte_orphan_end(void *request);
/* Before UCX's worker is destroyed. */
void hte_orphans_release(struct hte_link_ring *orphans);

#endif
