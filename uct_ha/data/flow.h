/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FLOW_H_
#define UCT_HA_FLOW_H_

/*
 * The data part of a connection: what is under way, how much may be, and which lane sends and
 * delivers. Progress alone, no lock. Its control part is struct uct_ha_conn (pair/conn.h),
 * which is not known here: road.conn stands for it where the pair is told something.
 */

#include "abi/uct_ha_abi.h"
#include "lane/road.h"
#include "pair/txlog.h"

struct uct_ha_peer;

/* Immediate data of every message: what it is, and how many of the peer's
 * messages have been consumed so far. */
#define UCT_HA_IMM_AM_MASK      0x1fu /* active message id */
#define UCT_HA_IMM_CREDIT_ONLY  0x20u /* nothing inside */
#define UCT_HA_IMM_AMO_REQUEST  0x40u
#define UCT_HA_IMM_AMO_REPLY    0x80u
#define UCT_HA_IMM_PUT          0x100u /* of a PUT: its data is elsewhere already */
#define UCT_HA_IMM_SPECIAL      0x1e0u /* any but an active message */
#define UCT_HA_IMM_CREDIT_SHIFT 16     /* modulo 2^16 */

/* What all flows of an interface share. */
struct uct_ha_flows {
    uct_base_iface_t    *base; /* UCX's: where messages and errors are delivered */
    struct uct_ha_lanes *lanes;
    uint8_t              card_atomics; /* our card executes them */
    uint8_t              discard;      /* closing: deliver nothing any more */
    uint32_t             count;        /* of flows */
    uint32_t             outstanding;  /* operations in all logs */
    int64_t              gets_left; /* bytes that GETs may bring besides those under way; the last one may be longer */
    uint32_t             fence_seq;
    ucs_list_link_t      pending, backlog, silent;
    struct uct_ha_flow  *dispatching; /* its pending queue may send */
    uint64_t             look_at;     /* of many, silent ones are looked for again then */
    struct uct_ha_slab   slab, rings; /* where they are, and where their logs begin */
};

struct uct_ha_flush {
    ucs_list_link_t   list;
    uct_completion_t *comp;
    uint32_t          index; /* done when the log's head has reached it, */
    uint32_t          amo;   /* and so many atomics have been answered */
};

/* The short way out, see data/go.h. Progress reads it for each operation. */
struct uct_ha_go {
    uint32_t            limit[2]; /* index before which the log may take operations, messages */
    struct uct_ha_room *room;
    struct ha_rc       *rc;              /* the lane's: a post waits for no other line than the driver's */
    uint16_t            sends[HA_SLOTS]; /* what road.sends points to */
    uint32_t            send_tag;        /* the lane's */
    uint32_t            fence_seen;      /* flows->fence_seq that the last operation has honoured */
    uint16_t            mtu;             /* bytes of a packet */
    uint8_t             told_mask;  /* operations at indices in which none of these bits is set tell of their success */
    uint8_t             max_inline; /* bytes that go from the entry */
    uint8_t             shift;      /* of the path MTU */
    uint8_t             zcopy_shift; /* ... of bytes of the user's memory that are neither too many nor long */
    uint8_t             rail_no;
    uint8_t             slot;
    /* what a message tells: so many of the peer's were consumed (those that are posted again, and how far the window
     * grew), and said so before */
    uint16_t rx_consumed, rx_told;
};

/* What an operation needs of it, and what a message needs that comes, begin a cache line each. */
struct uct_ha_flow {
    uct_base_ep_t        super; /* the user's endpoint, while there is one */
    struct uct_ha_go     go;
    struct uct_ha_flows *flows;
    struct uct_ha_txlog  tx;
    const void          *rx_open; /* where messages come from, or NULL while more is to be thought of */
    /* messages: consumed by the peer (total, as tx.sent), allowed ahead */
    uint32_t           tx_granted; /* modulo 2^16 */
    uint16_t           tx_credits;
    uint8_t            opens_on; /* nothing but its limits keeps the short way closed, see data/go.c */
    struct uct_ha_road road;
    int                tx_slot;      /* lane for new work, or HA_NO_SLOT */
    int                rx_slot;      /* lane that delivers, or HA_NO_SLOT */
    uint32_t           light;        /* bytes that an operation may have which goes the short way */
    uint8_t            is_held;      /* by a user: `super` is his */
    unsigned           used;         /* bit per slot: it is one of them, as lane/look.h was told */
    uint32_t           credit_index; /* of the latest message that only grants credits */
    uint8_t            put_op;       /* enum ha_send_op: the peer counts PUTs, or not */
    uint8_t            put_counts;   /* 1: a PUT consumes a receive, and takes a credit */
    uint8_t            card_atomics; /* the peer's card executes atomics on its memory */
    uint8_t            fence_next;
    uint32_t           killer;      /* operation at which a card failed last, */
    uint8_t            kills;       /* ... and on how many lanes in a row */
    uint8_t            reported;    /* the user has been told */
    uint8_t            canceled;    /* the user asked for the end */
    uint8_t            purging;     /* an atomic that waits is being ended */
    uint8_t            amo_refused; /* the latest operation without room was an atomic */
    uint8_t            backlogged, pending_queued, credit_due;
    uint8_t            silent_listed; /* it may have silent operations under way: in flows->silent */
    uint32_t           silent_tail;   /* the log's, when it was looked at last for that */
    ucs_status_t       status;        /* once tx.dead */
    ucs_list_link_t    backlog_link, pending_link, silent_link;
    ucs_list_link_t    pending; /* of uct_ha_pending_priv_t */
    ucs_list_link_t    flushes;
    uint32_t           amo_issued, amo_done; /* own atomics by message; replies come in their order */
    uint32_t           amo_fence;            /* issued before the latest fence that an operation has honoured */
    struct uct_ha_amo *amo;                  /* NULL before the first */
};

_Static_assert(offsetof(struct uct_ha_flow, tx) == UCT_HA_LINE &&
                   offsetof(struct uct_ha_flow, rx_open) % UCT_HA_LINE == 0 &&
                   offsetof(struct uct_ha_flow, road.rx_left) < offsetof(struct uct_ha_flow, rx_open) + UCT_HA_LINE,
               "each of these is in one line");

static inline struct uct_ha_flow *uct_ha_flow_of(struct uct_ha_road *road)
{
    return ucs_container_of(road, struct uct_ha_flow, road);
}

/* An operation has ended: if it is a GET, another one may begin. */
static inline void uct_ha_flow_got(struct uct_ha_flow *flow, const struct uct_ha_txop *txop)
{
    if (txop->op == HA_READ) {
        flow->flows->gets_left += txop->core.length;
    }
}

/* The limits are looked at again before the next operation. */
static inline void uct_ha_flow_hold_go(struct uct_ha_flow *flow)
{
    flow->go.limit[0] = flow->go.limit[1] = flow->tx.log.tail;
}

/* Whatever is answered differently now is asked again before the next operation. */
static inline void uct_ha_flow_close_go(struct uct_ha_flow *flow)
{
    uct_ha_flow_hold_go(flow);
    flow->opens_on = 0;
}

/* Of operations that nobody waits for, one in so many tells: a full ring hears twice. */
static inline uint32_t uct_ha_flow_tell_every(const struct uct_ha_flow *flow, const struct uct_ha_lane *lane)
{
    return ucs_min(lane->tell_every, (flow->tx.log.mask + 1) / 2);
}

/* It is looked at for silent operations from now on. */
void uct_ha_flow_list_silent(struct uct_ha_flow *flow);

/* No lane sends until the pair says which. */
static inline void uct_ha_flow_stop(struct uct_ha_flow *flow)
{
    flow->tx_slot = HA_NO_SLOT;
    uct_ha_flow_close_go(flow);
}

static inline struct uct_ha_desc_pool *uct_ha_flow_pool(const struct uct_ha_flow *flow)
{
    return &flow->flows->lanes->pool; /* a line that is looked at anyway */
}

static inline uint32_t uct_ha_flow_atomics(const struct uct_ha_flow *flow)
{
    return flow->amo_issued - flow->amo_done;
}

/* A fence that the next operation has to honour. */
static inline int uct_ha_flow_fence_waits(const struct uct_ha_flow *flow)
{
    return flow->fence_next || flow->go.fence_seen != flow->flows->fence_seq;
}

/* Are atomics by message before the latest fence not answered yet? Their owner executes them when it makes progress;
 * what its card executes would overtake them. Messages do not. */
static inline int uct_ha_flow_fenced_atomics(const struct uct_ha_flow *flow)
{
    uint32_t end = uct_ha_flow_fence_waits(flow) ? flow->amo_issued : flow->amo_fence;

    return end - flow->amo_done - 1u < uct_ha_flow_atomics(flow);
}

/* Canceled, and not yet at its end: until then a card may still be at its work. */
static inline int uct_ha_flow_ends(const struct uct_ha_flow *flow)
{
    return flow->canceled && !flow->tx.dead;
}

/* A connection and its flow: number `sn` to `peer`, `accepted` when the peer began it. The
 * control lock is held. */
ucs_status_t uct_ha_flow_create(struct uct_ha_flows *flows, struct uct_ha_peer *peer, uint32_t sn, int accepted,
                                struct uct_ha_flow **flow_p);
void         uct_ha_flow_destroy(struct uct_ha_flow *flow);

/* Before the first one, and after the last. */
void uct_ha_flows_init(struct uct_ha_flows *flows, size_t get_bytes);
void uct_ha_flows_cleanup(struct uct_ha_flows *flows);

/* Which lanes send and deliver now; the control lock is held. */
void uct_ha_flow_refresh_locked(struct uct_ha_flow *flow);

/* What is said of the lane that delivers has changed: may its messages be handed out without
 * further thought? Not before held ones, nor when the lane is being closed or was declared, nor when nobody wants them.
 */
static inline void uct_ha_flow_turn(struct uct_ha_flow *flow)
{
    struct uct_ha_lane *lane = flow->rx_slot == HA_NO_SLOT ? NULL : flow->road.lane[flow->rx_slot];

    if (lane != NULL && (flow->flows->discard || lane->final || lane->closing || lane->held_head != lane->held_tail)) {
        lane = NULL;
    }
    flow->rx_open = lane == NULL ? NULL : uct_ha_lane_source(lane);
}

#endif
