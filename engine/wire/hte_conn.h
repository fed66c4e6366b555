/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_CONN_H_
#define HTE_CONN_H_

/*
 * A connection: one UCP endpoint from one rail of one worker thread to one worker of a peer process.
 *
 *            open               UCX reports an error,
 *   IDLE ───────────▶ UP ─────── a slice expires, stop ─────▶ BROKEN ── close (force) ──▶ CLOSING
 *    ▲                                                                                       │  │
 *    └──────── UCX has let go of every request: what is left of the slices fails ────────────┘  │ without PEER:
 *                                                                                               ▼ nobody is there
 *                                                                                             LEFT
 *
 * IDLE     no endpoint; nothing posted; opened by the next slice, not before retry_at
 * UP       slices are posted; a WRITE is complete when a flush posted after it has completed
 * BROKEN   nothing more is posted; to be closed by the thread's loop (never inside a callback)
 * CLOSING  UCX gives back its requests one by one; without PEER (see below) it is closed politely, when they have gone
 *          through
 * LEFT     UCX would wait for a dead peer for ever: its slices have failed, its requests stay with UCX (hte_orphan.h)
 *          until the end
 *
 * Error mode PEER: without it UCX keeps the requests of a dead peer for ever. Local memory of a slice is given back
 * only when UCX let go of it, so that a late packet cannot write into memory that was reused. Transports without PEER
 * (plain shared memory) are used with NONE.
 *
 * Near (hte_near.h): to a process of the same host, without an endpoint.
 *
 * By letters (hte_letter.h): where UCX's put and get would be emulated by software. What UCX has of a slice then is
 * what it has of its letters, mostly nothing: such a slice ends at any time, whatever becomes of the connection.
 */

#include "hte_keys.h"
#include "hte_lane.h"
#include "hte_letter.h"
#include "hte_near.h"
#include "remote/hte_segment.h"

enum hte_conn_step { HTE_CONN_IDLE, HTE_CONN_UP, HTE_CONN_BROKEN, HTE_CONN_CLOSING, HTE_CONN_LEFT };

#define HTE_FLUSHES_MAX 4
#define HTE_CONN_WORDS  256

struct hte_flush {
    struct hte_conn *conn;
    uint64_t         seq;
    bool             is_out;
};

struct hte_conn {
    struct hte_link_ring link; /* lane's conns */
    struct hte_link_ring bucket_link, opening_link;
    struct hte_link_ring dirty_link, broken_link;
    struct hte_lane     *lane;
    struct hte_segment  *segment; /* reference */
    uint64_t             incarnation;
    unsigned             rail, remote_rail;
    bool                 is_gpu; /* for operations of memory of a GPU: by UCX's put and get, or not at all */
    char                 remote_device[64];
    _Atomic int32_t      step; /* enum hte_conn_step; written by the thread only */
    ucp_ep_h             ep;
    void                *closing;      /* UCX's request to close ep, while it has one */
    bool                 is_unguarded; /* error mode NONE */
    bool                 by_letters;   /* hte_move.h; else UCX's put and get */
    struct hte_near     *near;         /* hte_near.h: then there is no endpoint; or NULL */
    struct hte_link_ring near_link;    /* lane's nears */
    bool                 is_unfit;     /* it is not what option require says */
    int                  way;          /* enum hte_way; and in words, both guarded by the lane's lock */
    char                 words[HTE_CONN_WORDS];
    uint64_t             id;      /* by letters: of this opening */
    uint64_t             guest;   /* what the target has of it; 0: not heard of yet */
    uint64_t             copied;  /* bytes of letters that UCX has, in copies of ours */
    struct hte_link_ring letters; /* that UCX has */
    struct hte_keys     *keys;
    struct hte_link_ring posted;    /* operations, in order of seq */
    struct hte_link_ring orphans;   /* requests that nobody waits for */
    uint32_t             pending;   /* requests that UCX has */
    uint32_t             uncovered; /* slices of WRITEs that no flush covers */
    uint64_t             seq;       /* of the last slice posted */
    struct hte_flush     flush[HTE_FLUSHES_MAX];
    unsigned             flushes_out;
    unsigned             doubts;   /* sweeps in a row that found it to take long */
    _Atomic bool         is_warm;  /* something went through it since it was opened */
    _Atomic uint32_t     strikes;  /* breakdowns in a row */
    uint64_t             retry_at; /* not opened before */
    _Atomic int32_t      error;    /* of the last breakdown */
    _Atomic uint64_t     transferred, reconnects;
};

/* The connection, or NULL. */
struct hte_conn *hte_conn_find(struct hte_lane *lane, const struct hte_segment *segment, const struct hte_view *view,
                               unsigned rail, unsigned remote_rail, bool is_gpu);
/* The same, made when there is none yet; NULL: no memory. */
struct hte_conn *hte_conn_get(struct hte_lane *lane, struct hte_segment *segment, const struct hte_view *view,
                              unsigned rail, unsigned remote_rail, bool is_gpu);
/* By letters: the one whose opening has this number, while it is UP; or NULL. */
struct hte_conn *hte_conn_of_opening(struct hte_lane *lane, uint64_t id);
/* Bit of each rail whose connection to this peer cannot be used now. */
uint32_t hte_conns_unusable(struct hte_lane *lane, const struct hte_segment *segment, const struct hte_view *view,
                            bool is_gpu);

/* Whether slices can be posted now; opens it when it is IDLE and its time has come. */
bool hte_conn_is_usable(struct hte_conn *conn, const struct hte_view *view);
/* It broke, and by the last look there is no process any more to connect to. */
bool hte_conn_is_deserted(const struct hte_conn *conn);
/* So many breakdowns in a row that slices for it fail at once, until retry_at. */
bool hte_conn_is_hopeless(const struct hte_conn *conn);

/* Bytes of an operation of several ranges, at most; 0: it takes none. */
static inline uint64_t hte_conn_parts_size(const struct hte_conn *conn)
{
    if (conn->step != HTE_CONN_UP) {
        return 0;
    }
    return conn->near != NULL ? HTE_NEAR_SPAN : conn->by_letters ? HTE_LETTER_BYTES : 0;
}

/* Something went through. */
static inline void hte_conn_succeeded(struct hte_conn *conn)
{
    conn->strikes = 0;
    conn->is_warm = true;
}

void hte_conn_break(struct hte_conn *conn, int error);
/* One more breakdown in a row: sets retry_at. */
void hte_conn_strike(struct hte_conn *conn);
/* UCX takes the endpoint back; flags of ucp_ep_close_nbx(). */
void hte_conn_close(struct hte_conn *conn, uint32_t flags);
/* Nothing of it may be posted. */
void hte_conn_destroy(struct hte_conn *conn);

#endif
