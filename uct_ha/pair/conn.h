/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CONN_H_
#define UCT_HA_CONN_H_

/*
 * A connection: one endpoint pair between two interfaces, with its operation
 * log and its lanes. It exists on both sides whether or not a user endpoint is
 * bound to it here: the passive side of a set-up receives on it at once, and
 * its own first endpoint to that peer takes it over. Pair number `sn` is the
 * same on both sides, so that a simultaneous connect meets in one connection.
 *
 * Two parts with two owners:
 *  data part     progress alone, no lock
 *  control part  iface->ctl.lock; progress and the asynchronous handler
 */

#include "abi/uct_ha_abi.h"
#include "core/ha_log.h"
#include "core/ha_pair.h"
#include "topo/ha_depths.h"
#include "base/job.h"
#include "uct/md.h"
#include "pair/setup.h"
#include "verbs/ha_qp.h"

struct uct_ha_iface;
struct uct_ha_peer;
struct uct_ha_ep;
struct uct_ha_conn;

/* Largest number of pieces of one operation, a header included. */
#define UCT_HA_IOV_MAX    8
#define UCT_HA_INLINE_MAX 128

/* Immediate data of every message: what it is, and how many of the peer's
 * messages have been consumed so far. */
#define UCT_HA_IMM_AM_MASK       0x1fu /* active message id */
#define UCT_HA_IMM_CREDIT_ONLY   0x20u /* nothing inside */
#define UCT_HA_IMM_AMO_REQUEST   0x40u
#define UCT_HA_IMM_AMO_REPLY     0x80u
#define UCT_HA_IMM_PUT           0x100u /* of a PUT: its data is elsewhere already */
#define UCT_HA_IMM_CREDIT_SHIFT  16    /* modulo 2^16 */

/* Receives beyond the credits, for messages that only grant credits. A peer that
 * has not taken the first of them knows of one window at most. Of what it may
 * send the other side owes half a window with each, or has doubled the window
 * once: so three may be under way. */
#define UCT_HA_RX_RESERVE HA_DEPTHS_RESERVE

/* A buffer, registered on both rails. */
struct uct_ha_desc {
    struct uct_ha_desc *next; /* while free */
    struct uct_ha_mem  *mem;
    uint8_t             data[] __attribute__((aligned(64)));
};

/* Keys are copied: when it has to be sent again the user's handle may be gone,
 * with his endpoint. While there is an endpoint, it is not. */
struct uct_ha_piece {
    uint64_t           addr;
    uint32_t           length;
    uint32_t           rails; /* bit per slot whose rail it is registered on */
    uint32_t           lkey[HA_SLOTS];
    struct uct_ha_mem *mem;
};

/* `rail_no`: the rails of the slots. */
static inline void uct_ha_piece_set(struct uct_ha_piece *piece, const void *addr, size_t length,
                                    struct uct_ha_mem *mem, const unsigned *rail_no)
{
    uint32_t rails = __atomic_load_n(&mem->rails, __ATOMIC_ACQUIRE);

    piece->addr    = (uintptr_t)addr;
    piece->length  = (uint32_t)length;
    piece->rails   = (rails >> rail_no[0] & 1u) | (rails >> rail_no[1] & 1u) << 1;
    piece->lkey[0] = mem->lkey[rail_no[0]];
    piece->lkey[1] = mem->lkey[rail_no[1]];
    piece->mem     = mem;
}

#define UCT_HA_TXOP_BOUNCED 0x1u /* GET: the answer comes to `desc`, then to the pieces */
#define UCT_HA_TXOP_STAINED 0x2u /* a card that nobody could stop may come to `desc` yet */
#define UCT_HA_TXOP_DOUBT   0x4u /* it is in doubt, and that was seen to */

/* What is needed to post an operation, and to post it again on another rail.
 * Parallel to the log's ring. */
struct uct_ha_txop {
    uint64_t              remote_addr;
    uct_rkey_t            rkey; /* keys of both rails */
    uct_completion_t     *comp;
    uct_unpack_callback_t unpack; /* GET bcopy */
    void                 *unpack_arg;
    struct uct_ha_desc   *desc;   /* bounce buffer held until the end, or NULL */
    uint8_t               op;     /* enum ha_send_op */
    uint8_t               pieces; /* 0: the bytes are in `bytes` */
    uint16_t              imm;    /* low half of the immediate data: UCT_HA_IMM_* */
    uint8_t               flags;  /* UCT_HA_TXOP_* */
    uint32_t              length;
    uint32_t              behind; /* index after the latest read or fetch before this one */
    union {
        struct uct_ha_piece piece[UCT_HA_IOV_MAX];
        uint8_t             bytes[UCT_HA_INLINE_MAX];
        struct {
            struct uct_ha_piece result; /* piece[0] */
            uint64_t            compare_add, swap;
        } atomic;
    };
};

/* Completion tags: kind in the top byte, lane id below, index in the low word. */
enum uct_ha_wr_kind { UCT_HA_WR_SEND, UCT_HA_WR_RECV, UCT_HA_WR_MARK, UCT_HA_WR_MARKER };

struct uct_ha_held { /* a received message that may not be delivered yet */
    uint32_t buffer, length, imm;
};

/* Receive buffers of a slot, see lane/ring.h. */
struct uct_ha_rx_ring {
    struct uct_ha_desc **buffers;
    uint32_t             count;
};

/* A lane: the queue pair of one generation. Made anew for each generation. */
struct uct_ha_lane {
    struct uct_ha_job   job;     /* its fence, then its end */
    struct uct_ha_iface *iface;
    struct uct_ha_conn *conn;    /* NULL once parked */
    struct ha_rc       *rc;
    uint32_t            id;      /* in iface->lanes; never names two lanes at once */
    uint32_t            gen;
    uint32_t            psn;     /* our first */
    uint32_t            mtu;     /* path MTU once connected */
    uint32_t            log_mtu; /* ... as the log counts; 0: the peer proves by ledger, marks count */
    uint32_t            mark_key;/* where our marks go, with that */
    uint64_t            mark_addr;
    uint8_t             slot;

    /* data part */
    uint32_t            receives; /* of the ring: posted, or being consumed */
    uint32_t            sends;    /* posted, completion not polled yet */
    uint32_t            places;   /* in the completion queue, once parked */
    struct uct_ha_rx_ring ring;   /* once parked and without a connection: its receives */
    uint8_t             proof;   /* kind that this side gives, enum ha_proof */
    uint32_t            received;/* receives that succeeded */
    uint32_t            rx_done; /* ... and of these, delivered */
    uint32_t            held_head, held_tail;
    struct uct_ha_held *held;    /* ring of rx_depth */
    uint8_t             closing; /* close_k is known: tell when rx_done reaches it */
    uint8_t             final;   /* what it received was declared: no more is taken from it */
    uint8_t             marker;  /* drain marker posted */
    uint8_t             drained; /* ... and come back, or not needed */
    uint8_t             flushed; /* a flushed receive was polled: no more messages come */
    uint32_t            close_k;
    uint8_t             rejects;  /* `rejected` says which operation, and why */
    struct ha_wc        rejected;

    /* control part */
    uint8_t             fenced;   /* nothing is posted any more; atomic, progress reads it */
    uint8_t             fencing;  /* a job stops it: must not be destroyed */
    uint8_t             fence_fails; /* modify(ERR) was refused so often; 0 = the device has stopped it */
    uint8_t             settled;  /* atomic, too */
    uint8_t             connected;/* was READY: the peer may have posted on it */
    uint8_t             busy;     /* a job works on it: must not be destroyed */
    uint8_t             reads;    /* the latest PSN read since the fence succeeded */
    uint8_t             read_fails;
    uint32_t            last_read;
    uint32_t            sign;     /* of life: what the data part had done at the last heartbeat */
    uint32_t            look_psn; /* expected at the last look, when the rail was silent */
    uint64_t            look_at;
    uint64_t            born, fence_at, read_at, park_until;
    uint64_t            fenced_at, lost_look; /* it was told to stop; progress was sent to look */
    struct uct_ha_lane *parked;   /* next in iface->ctl.parked */
};

#define UCT_HA_LONG_OP (8u << 20) /* bytes; shorter ones end well within any RTO */

/* Where the peer leaves its marks on a lane of this slot; lane/ledger.h. */
struct uct_ha_ledger {
    uint64_t     *word;
    struct ha_mr *mr;
};

struct uct_ha_flush {
    ucs_list_link_t   list;
    uct_completion_t *comp;
    uint32_t          index; /* done when the log's head has reached it, */
    uint32_t          amo;   /* and so many atomics have been answered */
};

enum { /* conn->todo: what progress does after it has left the lock */
    UCT_HA_TODO_FAIL = 1 << 0,
    UCT_HA_TODO_GONE = 1 << 1,
    UCT_HA_TODO_REPORT = 1 << 2,
    UCT_HA_TODO_REJECT = 1 << 3,
    UCT_HA_TODO_DECLARE = 1 << 4,
};

struct uct_ha_conn {
    /* data part */
    struct uct_ha_iface  *iface;
    struct uct_ha_ep     *ep;       /* the user's, or NULL */
    uint8_t               was_bound;
    int                   tx_slot;  /* lane for new work, or HA_NO_SLOT */
    int                   rx_slot;  /* lane that delivers, or HA_NO_SLOT */
    struct ha_log         log;
    struct uct_ha_txop   *txops;
    uint16_t              tx_sent, tx_granted, tx_credits; /* messages: appended, consumed by the peer (both cumulative), allowed ahead */
    uint16_t              rx_consumed, rx_told; /* of the peer's: consumed (and how far the window grew), said so */
    uint16_t              rx_window, rx_grants; /* the peer may be so far ahead; half windows since it grew */
    size_t                rx_grown; /* bytes beyond the first window */
    uint32_t              credit_index; /* of the latest message that only grants credits */
    uint8_t               put_op;     /* enum ha_send_op: the peer counts PUTs, or not */
    uint8_t               put_counts; /* 1: a PUT consumes a receive, and takes a credit */
    uint32_t              fence_seen; /* iface->fence_seq that the last operation has honoured */
    uint8_t               fence_next;
    uint32_t              reads_end;  /* index behind the latest operation that fetches */
    uint32_t              killer;   /* operation at which a card failed last, */
    uint8_t               kills;    /* ... and on how many lanes in a row */
    uint8_t               dead;     /* no more work: error status below */
    uint8_t               reported; /* the user has been told */
    uint8_t               canceled; /* the user asked for the end */
    uint8_t               purging;      /* an atomic that waits is being ended */
    uint8_t               post_refused; /* the latest operation without room was an atomic without result */
    uint8_t               backlogged, pending_queued, credit_due;
    ucs_status_t          status;
    ucs_list_link_t       backlog_link, pending_link;
    ucs_list_link_t       pending;  /* of uct_ha_pending_priv_t */
    ucs_list_link_t       flushes;
    struct ha_wc          rejected; /* for UCT_HA_TODO_REJECT */
    uint8_t               fatal; /* enum ha_fail: an operation has gone wrong that had no
                                  * completion to report by */
    struct uct_ha_amo    *amo;      /* atomics under way; NULL before the first */
    struct uct_ha_rx_ring rx[HA_SLOTS];
    struct uct_ha_ledger  ledger[HA_SLOTS];
    uint8_t               marks;    /* 1: the peer proves by ledger */
    struct uct_ha_lane   *lane[HA_SLOTS]; /* written under the lock, read by progress */

    /* control part */
    struct ha_pair        pair;
    struct uct_ha_peer   *peer;
    uint32_t              id, peer_id, sn, tag;
    uint8_t               todo, attention, send_due, close_told;
    ucs_list_link_t       list;      /* iface->ctl.conns */
    ucs_list_link_t       peer_link; /* peer->conns */
    ucs_list_link_t       attention_link;
    uint64_t              outage_at;  /* the active lane was lost then, 0 = no outage */
    uint8_t               outage_slot, outage_cause, outage_peer_cause;
    uint32_t              outage_replayed, outage_retired;
    uint32_t              rto_done, rto_polls; /* last sample of the progress check */
    uint64_t              rto_since, rto_seen;
    uint64_t              rto_lane;  /* slot and generation of that sample */
    uint32_t              tx_long;   /* bytes of the longest operation since the log was empty, when that is
                                      * more than UCT_HA_LONG_OP: progress writes, the check reads */
    uint8_t               rto_struck;
    struct uct_ha_setup   setup;
    int16_t               connect_error; /* errno of the latest lane that could not be connected, 0 = none */
    int8_t                counted_works, counted_spare; /* as the statistics have it */
};

static inline int uct_ha_lane_is_fenced(const struct uct_ha_lane *lane)
{
    return __atomic_load_n(&lane->fenced, __ATOMIC_RELAXED);
}

/* Canceled, and not yet at its end: until then a card may still be at its work. */
static inline int uct_ha_conn_ends(const struct uct_ha_conn *conn)
{
    return conn->canceled && !conn->dead;
}

static inline uint64_t uct_ha_wr_id(enum uct_ha_wr_kind kind, uint32_t lane, uint32_t index)
{
    return (uint64_t)kind << 60 | (uint64_t)(lane & 0x0fffffffu) << 32 | index;
}

/* Operations that the log can take at once, a power of two. */
uint32_t uct_ha_conn_log_len(const struct uct_ha_iface *iface);

/* Make the connection number `sn` to `peer`, `accepted` when the peer began it; the control lock is held. */
ucs_status_t uct_ha_conn_create(struct uct_ha_iface *iface, struct uct_ha_peer *peer,
                                uint32_t sn, int accepted, struct uct_ha_conn **conn_p);

/* Tell the core which rails can be used and let it begin; the lock is held. */
void uct_ha_conn_start_locked(struct uct_ha_conn *conn);

/* Release everything at once. Queue pairs must have been fenced or be of no
 * interest any more; the lock is held. */
void uct_ha_conn_destroy(struct uct_ha_conn *conn);

/* Lanes; the lock is held. */
int  uct_ha_lane_create(struct uct_ha_conn *conn, int slot, uint32_t gen);
void uct_ha_lane_park(struct uct_ha_conn *conn, int slot, uint64_t until);

/* Destroy a parked lane: on the job thread, or now (which may block). */
void uct_ha_lane_bury(struct uct_ha_lane *lane);
void uct_ha_lane_destroy(struct uct_ha_lane *lane);
struct uct_ha_lane *uct_ha_lane_find(struct uct_ha_iface *iface, uint32_t id);

#endif
