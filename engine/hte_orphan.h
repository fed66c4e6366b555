/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ORPHAN_H_
#define HTE_ORPHAN_H_

/*
 * An orphan: a request that UCX will not give back before its worker ends. Over plain shared memory UCX cannot see that a peer is
 * dead, nor be told (error mode NONE, see hte_conn.h). Nobody is left who could answer such a request, or write for it, so its slice
 * ends without it. What UCX may still look at, the remote keys, stays with the request.
 *
 * struct hte_orphan is the user's part of every UCX request of the engine; conn == NULL: an ordinary one.
 */

#include "hte_list.h"

struct hte_conn;
struct hte_keys;
struct hte_slice;

struct hte_orphan {
    struct hte_link_ring link; /* conn's orphans */
    struct hte_conn     *conn;
    struct hte_keys     *keys; /* reference */
};

/* ucp_params_t.request_init; UCX calls it once for memory that it uses again and again. */
void hte_orphan_init(void *request);
/* UCX has this slice, and will keep the request. The slice has no keys afterwards, and can end. */
void hte_orphan_make(struct hte_slice *slice);
/* UCX gave a request back. Whether it was an orphan: then that is all there is to do with it. */
bool hte_orphan_end(void *request);
/* Before UCX's worker is destroyed. */
void hte_orphans_release(struct hte_conn *conn);

#endif
