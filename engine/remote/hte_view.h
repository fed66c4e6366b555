/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_VIEW_H_
#define HTE_VIEW_H_

/*
 * A view is one fetched descriptor of another process: it never changes, whoever uses it holds a reference. Views of
 * the same process have the same `incarnation`, a fingerprint of its workers' addresses, which UCX makes unique; a
 * restarted process has another one.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "meta/hte_descriptor.h"

struct hte_view {
    _Atomic uint32_t       refs;
    uint64_t               incarnation;
    uint64_t               serial;     /* of this fetch: views differ when it does */
    unsigned               rails;      /* contexts of the peer */
    unsigned               threads;    /* workers per context */
    struct hte_descriptor *descriptor; /* buffers sorted by address, none overlap; workers thread by thread */
};

/* Takes the descriptor over, also when it fails. */
int  hte_view_create(struct hte_descriptor *descriptor, const char *name, uint64_t serial, struct hte_view **view);
void hte_view_put(struct hte_view *view);
void hte_view_put_many(struct hte_view *view, uint32_t count);

/* A copy of what a peer says is an address or key, with zeros behind it; the caller's, free(3); NULL: no memory. UCX
 * is told where such a thing begins, not where it ends: where the peer cut it off, UCX finds zeros, and mostly an
 * error. */
void *hte_blob_padded(const struct hte_blob *blob);

/* Index of the buffer that contains addr, or -1. */
long hte_view_find(const struct hte_view *view, uint64_t addr);
/* Whether what was known about the bytes from addr on holds by a newer view of the same process: HTE_OK; RANGE, when
 * they are not registered any more, or are anew, with other keys; PERMISSION. */
int hte_view_recheck(const struct hte_view *old, const struct hte_view *view, uint64_t addr, uint64_t length,
                     bool is_write);
/* HTE_OK when buffers cover the range and allow the operation, else RANGE or PERMISSION. */
int hte_view_check(const struct hte_view *view, uint64_t addr, uint64_t length, bool is_write);

#endif
