/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_LANE_H_
#define HTE_LANE_H_

/*
 * A lane: what UCX has of one worker thread. Its UCP workers, one per rail, and the connections made on them
 * (hte_conn.h). Only the thread touches it, but for what is said. UCP workers also carry out what peers post, where
 * the transport needs the target's help.
 *
 * Nothing is posted from inside UCX's callbacks; they only note what happened, and tell by the hooks.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <ucp/api/ucp.h>

#include "base/hte_list.h"
#include "core/hte_rail_state.h"
#include "core/hte_slice.h"
#include "hte_letter.h"
#include "hte_rail.h"
#include "hte_tokens.h"
#include "local/hte_region.h"
#include "local/hte_settings.h"

struct hte_lane;
struct hte_op;
struct hte_segment;

/* What the thread is going to post to a segment. */
enum hte_outlook {
    HTE_OUTLOOK_MORE, /* something, soon */
    HTE_OUTLOOK_DRY,  /* nothing */
    HTE_OUTLOOK_STUCK /* nothing, before WRITEs are confirmed */
};

/* Ranges of an operation. */
#define HTE_PARTS_MAX 16

/* The lane's questions and answers to the thread. */
struct hte_lane_hooks {
    /* UCX has let go of its local memory: there is room for another. */
    void (*let_go)(struct hte_lane *lane, struct hte_op *op);
    /* COMPLETE, RETRY or GIVE_UP, and why; the connection has forgotten it. */
    void (*over)(struct hte_lane *lane, struct hte_op *op, enum hte_slice_action action, int error);
    enum hte_outlook (*outlook)(struct hte_lane *lane, const struct hte_segment *segment);
    /* Something is wrong with its process, maybe: what is known of it should be fetched anew. */
    void (*doubt)(struct hte_lane *lane, struct hte_segment *segment);
    /* Is its process there at all? */
    void (*look)(struct hte_lane *lane, struct hte_segment *segment);
    /* Its request was canceled. */
    bool (*is_canceled)(struct hte_lane *lane, const struct hte_op *op);
    /* Its ranges on both sides: op->parts of them. */
    void (*parts)(const struct hte_op *op, struct iovec *local, struct iovec *remote);
};

struct hte_lane_rail {
    ucp_worker_h    ucp;
    ucp_address_t  *address;
    size_t          address_length;
    int             event_fd;
    uint64_t        inflight;
    struct hte_rate rate; /* others read per_second */
};

#define HTE_CONN_BUCKETS 256

struct hte_lane {
    const struct hte_lane_hooks *hooks;
    struct hte_rails            *rails;
    struct hte_regions          *regions;
    uint64_t                     window, retry_count; /* of the settings */
    enum hte_moves               moves;               /* likewise */
    enum hte_require             require;             /* likewise */
    unsigned                     index, n_rails;
    struct hte_lane_rail         rail[HTE_RAILS_MAX];

    struct hte_link_ring nears;                      /* near connections with something posted */
    struct hte_link_ring dirty;                      /* connections with WRITEs that no flush covers yet */
    struct hte_link_ring broken;                     /* connections to be torn down, or being so */
    struct hte_link_ring buckets[HTE_CONN_BUCKETS];  /* connections by segment */
    struct hte_link_ring openings[HTE_CONN_BUCKETS]; /* those by letters, by number: what ACKs name */
    pthread_mutex_t      lock;                       /* guards conns: changes, and reads by others */
    struct hte_link_ring conns;
    _Atomic uint64_t     conns_ended; /* destroyed; written under lock */

    struct hte_tokens       tokens; /* operations that letters carry */
    uint64_t                nonce;  /* 32 bits: no other lane has it, nor can guess it */
    uint32_t                last_conn;
    bool                    has_canceled; /* operations are canceled that cannot end yet */
    struct hte_link_ring    guests;       /* hte_guest.h */
    struct hte_link_ring    guest_buckets[HTE_CONN_BUCKETS];
    uint64_t                last_guest;
    struct hte_link_ring    answers; /* letters to guests that UCX has */
    struct hte_letter_shelf shelf;

    uint64_t         now; /* as of the thread's latest turn */
    _Atomic uint64_t posts, posts_letters, posts_near, slices_posted, flushes, ep_errors;
};

/* What does not fail, so that cleanup may be called from here on. */
void hte_lane_init(struct hte_lane *lane, const struct hte_lane_hooks *hooks, const struct hte_settings *settings,
                   unsigned index);
int  hte_lane_open(struct hte_lane *lane, struct hte_rails *rails, struct hte_regions *regions);
/* Ends UCX's workers: connections let go of their keys before, and of what they have posted afterwards. */
void hte_lane_close(struct hte_lane *lane);
void hte_lane_cleanup(struct hte_lane *lane);

/* false: UCX has events to progress first */
bool hte_lane_arm(struct hte_lane *lane);
/* How many events there were, about. */
unsigned hte_lane_progress(struct hte_lane *lane);

#endif
