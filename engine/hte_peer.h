/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PEER_H_
#define HTE_PEER_H_

/*
 * Segments of other processes.
 *
 * A VIEW is one fetched descriptor: it never changes, whoever uses it holds a reference. A SEGMENT is what a handle means; it has the
 * newest view. Views of the same process have the same `incarnation`, a fingerprint of its workers' addresses, which UCX makes
 * unique; a restarted process has another one.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hte_table.h"
#include "engine/include/hte.h"
#include "engine/meta/hte_meta.h"
#include "hte_batch.h"
#include "hte_list.h"

struct hte_view {
    _Atomic uint32_t       refs;
    uint64_t               incarnation;
    uint64_t               serial;     /* of this fetch: views differ when it does */
    unsigned               rails;      /* contexts of the peer */
    unsigned               threads;    /* workers per context */
    struct hte_descriptor *descriptor; /* buffers sorted by address, none overlap; workers thread by thread */
};

struct hte_segment {
    _Atomic uint32_t refs;
    hte_segment_t    id;
    uint32_t         slot;       /* of the table */
    uint32_t         opens;      /* guarded by the segments' lock */
    _Atomic bool     is_closed;  /* no new requests; connections end when idle */
    char             name[HTE_NAME_MAX + 1];
    pthread_mutex_t  lock;       /* guards view */
    pthread_mutex_t  fetch_lock; /* one fetch at a time */
    struct hte_link_ring refresh_link; /* in the list of hte_refresh.h */
    _Atomic bool     is_refreshing; /* ordered, and not over */
    _Atomic uint64_t refresh_after; /* no order is taken before */
    _Atomic bool     is_deserted;  /* nobody is where its process was: as of the last refresh */
    bool             was_there;    /* somebody was; of the refreshing thread, once it is open */
    struct hte_view *view;
    uint64_t         notify_after; /* of the notification thread: no try before */
    struct hte_flow *flows;        /* per worker thread, each of its thread only */
    struct hte_line  lines[HTE_PRIORITIES]; /* what waits in the queue */
};

struct hte_segments {
    pthread_mutex_t    lock; /* guards table, opens */
    struct hte_table   table;
    struct hte_slot   *slots;
    unsigned           threads;
    _Atomic uint64_t   serial;
};

int hte_segments_init(struct hte_segments *segments, uint32_t count, unsigned threads);
void hte_segments_cleanup(struct hte_segments *segments);

/* A reference for the caller, or NULL. */
struct hte_segment *hte_segments_get(struct hte_segments *segments, hte_segment_t id);
void hte_segment_put(struct hte_segment *segment);

/* Opened or counted; blocks for the fetch. */
int hte_segments_open(struct hte_segments *segments, struct hte_meta *meta, const char *name, hte_segment_t *id);
int hte_segments_close(struct hte_segments *segments, hte_segment_t id);
/* References to all that are open: an array of the caller's, or NULL with *count 0. */
struct hte_segment **hte_segments_all(struct hte_segments *segments, size_t *count);

int hte_segment_refresh(struct hte_segments *segments, struct hte_meta *meta, struct hte_segment *segment);

/* A reference for the caller. */
struct hte_view *hte_segment_view(struct hte_segment *segment);
void hte_view_put(struct hte_view *view);

/* A copy of what a peer says is an address or key, with zeros behind it; the caller's, free(3); NULL: no memory. UCX is told where such
 * a thing begins, not where it ends: where the peer cut it off, UCX finds zeros, and mostly an error. */
void *hte_blob_padded(const struct hte_blob *blob);

/* Index of the buffer that contains addr, or -1. */
long hte_view_find(const struct hte_view *view, uint64_t addr);
/* Whether what was known about the bytes from addr on holds by a newer view of the same process: HTE_OK; RANGE, when they are not
 * registered any more, or are anew, with other keys; PERMISSION. */
int hte_view_recheck(const struct hte_view *old, const struct hte_view *view, uint64_t addr, uint64_t length, bool is_write);
/* HTE_OK when buffers cover the range and allow the operation, else RANGE or PERMISSION. */
int hte_view_check(const struct hte_view *view, uint64_t addr, uint64_t length, bool is_write);

#endif
