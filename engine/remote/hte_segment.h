/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SEGMENT_H_
#define HTE_SEGMENT_H_

/*
 * Segments of other processes. A SEGMENT is what a handle means; it has the newest view (hte_view.h).
 *
 * Who makes requests to segments keeps things of its own with each: the attachment, made when the segment is opened,
 * and there as long as anybody holds a reference.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "base/hte_table.h"
#include "engine/include/hte.h"
#include "hte_view.h"
#include "meta/hte_meta.h"

struct hte_segment {
    _Atomic uint32_t     refs;
    hte_segment_t        id;
    uint32_t             slot;      /* of the table */
    uint32_t             opens;     /* guarded by the segments' lock */
    _Atomic bool         is_closed; /* no new requests; connections end when idle */
    char                 name[HTE_NAME_MAX + 1];
    pthread_mutex_t      lock;          /* guards view */
    pthread_mutex_t      fetch_lock;    /* one fetch at a time */
    struct hte_link_ring refresh_link;  /* in the list of hte_refresh.h */
    _Atomic bool         is_refreshing; /* ordered, and not over */
    _Atomic bool         is_wanted;     /* its descriptor, by the one who ordered */
    _Atomic uint64_t     refresh_after; /* no order is taken before */
    _Atomic bool         is_deserted;   /* nobody is where its process was: as of the last refresh */
    bool                 was_there;     /* somebody was; of the refreshing thread, once it is open */
    bool                 is_address;    /* its name is the address of its process, and no entry of a store */
    struct hte_view     *view;
    uint64_t             notify_after; /* of the notification thread: no try before */
    void                *attachment;   /* see above */
    /* of connections that are no more */
    _Atomic uint64_t past_transferred, past_reconnects;
};

/* Makes the attachment, of malloc(3); NULL: no memory. */
typedef void *(*hte_segment_attach)(struct hte_segment *segment, unsigned threads);

struct hte_segments {
    pthread_mutex_t    lock; /* guards table, opens */
    struct hte_table   table;
    struct hte_slot   *slots;
    hte_segment_attach attach;
    unsigned           threads; /* for attach */
    _Atomic uint64_t   serial;
};

int  hte_segments_init(struct hte_segments *segments, uint32_t count, hte_segment_attach attach, unsigned threads);
void hte_segments_cleanup(struct hte_segments *segments);

/* A reference for the caller, or NULL. */
struct hte_segment *hte_segments_get(struct hte_segments *segments, hte_segment_t id);
void                hte_segment_put(struct hte_segment *segment);
void                hte_segment_put_many(struct hte_segment *segment, uint32_t count);

/* Opened or counted; blocks for the fetch. */
int hte_segments_open(struct hte_segments *segments, struct hte_meta *meta, const char *name, hte_segment_t *id);
int hte_segments_close(struct hte_segments *segments, hte_segment_t id);
/* References to all that are open: an array of the caller's, or NULL with *count 0. */
struct hte_segment **hte_segments_all(struct hte_segments *segments, size_t *count);

int hte_segment_refresh(struct hte_segments *segments, struct hte_meta *meta, struct hte_segment *segment);

/* A reference for the caller. */
struct hte_view *hte_segment_view(struct hte_segment *segment);

#endif
