/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ROAD_H_
#define UCT_HA_ROAD_H_

/*
 * A lane is the queue pair of one generation, made anew for each. A road is what carries the
 * work of a connection: its lanes, one per slot, and what outlives them. Types, and what the
 * fast path asks of them; lanes come and go in lane/lane.h.
 */

#include "base/job.h"
#include "base/line.h"
#include "lane/lanes.h"
#include "topo/ha_depths.h"
#include "verbs/ha_qp.h"

struct uct_ha_conn; /* the owner of a road, unknown here */

/* Receives beyond the credits, for messages that only grant credits. A peer that
 * has not taken the first of them knows of one window at most. Of what it may
 * send the other side owes half a window with each, or has doubled the window
 * once: so three may be under way. */
#define UCT_HA_RX_RESERVE HA_DEPTHS_RESERVE

/* Completion tags: kind in the top four bits, lane id below, index in the low word. Of a receive that lanes share:
 * where its place is; addresses do not have the highest bit, which all others have. */
enum uct_ha_wr_kind { UCT_HA_WR_SEND = 8, UCT_HA_WR_RECV, UCT_HA_WR_MARK, UCT_HA_WR_MARKER };

struct uct_ha_held { /* a received message that may not be delivered yet */
    uint32_t buffer, length, imm;
};

/* Receive buffers of a slot, see lane/ring.h. */
struct uct_ha_ring {
    struct uct_ha_place *places;
    uint32_t             count;
};

/* Where the peer leaves its marks on a lane of this slot; lane/ledger.h. */
struct uct_ha_ledger {
    uint64_t     *word;
    struct ha_mr *mr;
};

struct uct_ha_road {
    uint32_t             received[HA_SLOTS]; /* of the lane in each slot, that succeeded: progress counts, atomic */
    struct uct_ha_lanes *lanes;
    struct uct_ha_conn  *conn;
    struct uct_ha_lane  *lane[HA_SLOTS];      /* written under the lock, read by progress */
    uint16_t             rx_left, rx_round;   /* consumed messages are told when none is left; of so many */
    uint16_t             rx_chain, rx_window; /* ... the next time; the peer may be so far ahead */
    uint16_t             rx_grants;           /* half windows since it grew */
    uint16_t            *sends;               /* of the lane in each slot: posted, completion not polled yet */
    struct uct_ha_lane  *next[HA_SLOTS];      /* a job builds it; under the lock */
    struct uct_ha_ring   ring[HA_SLOTS];
    struct uct_ha_ledger ledger[HA_SLOTS];
    uint32_t             id;       /* of the connection, to be named by */
    uint8_t              slots;    /* that both sides have */
    uint8_t              marks;    /* 1: the peer proves by ledger */
    size_t               rx_grown; /* bytes beyond the first window */
};

struct uct_ha_lane {
    /* what a completion needs of it, in one cache line; an operation or a message that goes well needs none */
    struct uct_ha_road *road; /* NULL once parked */
    struct ha_rc       *rc;
    struct uct_ha_room *room;
    uint32_t            send_tag, receive_tag; /* upper halves of the completion tags of its sends, its receives */
    uint32_t            id;                    /* in lanes->table; never names two lanes at once */
    uint32_t            gen;
    uint32_t            log_mtu;    /* path MTU as the log counts; 0: the peer proves by ledger, marks count */
    uint32_t            tell_every; /* one in so many operations tells of its success; 0: each */
    uint8_t             slot;

    struct uct_ha_job     job; /* it is built, fenced, asked, destroyed */
    struct uct_ha_lanes  *lanes;
    struct uct_ha_shared *shared;   /* its receives; NULL: a ring of its own */
    uint32_t              qpn;      /* of its queue pair, where receives are shared */
    uint32_t              psn;      /* our first */
    uint32_t              mtu;      /* path MTU once connected */
    uint32_t              mark_key; /* where our marks go, with that */
    uint64_t              mark_addr;

    /* data part: progress alone, no lock */
    uint32_t             receives; /* that may complete; of a ring: posted, being consumed, or in the chain */
    struct uct_ha_place *place0;   /* the first of its receives, its own or shared */
    struct uct_ha_chain *chain;    /* consumed, to be posted together; where receives are not shared: */
    struct uct_ha_chain  own_chain;
    uint32_t             places;               /* in the completion queue, once parked */
    struct uct_ha_ring   left;                 /* once parked and without a connection: its receives */
    uint8_t              proof;                /* kind that this side gives, enum ha_proof */
    uint32_t             paged;                /* received, when lost ones were looked for */
    uint32_t             held_head, held_tail; /* received, not delivered yet */
    struct uct_ha_held  *held;                 /* a ring of held_len: what the peer may send, see lane/ring.h */
    uint32_t             held_len;
    uint8_t              closing; /* close_k is known: tell when so many are delivered */
    uint8_t              final;   /* what it received was declared: no more is taken from it */
    uint8_t              entered; /* its queue pair is known to the shared receives */
    uint8_t              marker;  /* drain marker posted */
    uint8_t              drained; /* ... and come back, or not needed */
    uint8_t              flushed; /* nothing executes on it any more, as the device has shown; atomic, any thread */
    uint8_t              ended;   /* ... and every receive that it has completed was polled: no more messages come */
    uint32_t             close_k;
    uint8_t              rejects; /* `rejected` says which operation, and why */
    struct ha_wc         rejected;

    /* control part: under the lock */
    uint8_t              fenced;      /* nothing is posted any more; atomic, progress reads it */
    uint8_t              fencing;     /* a job stops it: must not be destroyed */
    uint8_t              fence_fails; /* modify(ERR) was refused so often; 0 = the device has stopped it */
    uint8_t              settled;     /* atomic, too */
    uint8_t              building;    /* a job builds it: must not be destroyed */
    uint8_t              builds;      /* jobs that did so, or tried */
    int                  build;       /* 0 or a negative errno value: what came of it */
    uint8_t              shallow;     /* the completion queue could not be made so deep */
    unsigned             depth;       /* of the completion queue, asked of its job; 0: as it is */
    unsigned             coming;      /* receives that the queue expects of it, */
    unsigned             coming_logs; /* ... and logs, while it is being built */
    unsigned             stock;       /* buffers, wanted for it, */
    struct uct_ha_desc  *stocked;     /* and made */
    struct ha_rc_caps    caps;
    uint8_t              marks, wants_ledger; /* as road->marks; the road has no word yet */
    struct uct_ha_ledger ledger;              /* made with it, if there was none */
    uint8_t              connected;           /* was READY: the peer may have posted on it */
    uint8_t              busy;                /* a job works on it: must not be destroyed */
    uint8_t              asking;              /* a job asks the device for its packet number: must not be destroyed */
    uint8_t              asked_final;         /* ... behind the barrier: the answer is the proof */
    uint8_t              reread;              /* ... and has been answered since the proof was given */
    int                  answer;              /* 0 or a negative errno value: what it said last, */
    uint32_t             answer_psn;
    uint8_t              reads; /* the latest PSN read since the fence succeeded */
    uint8_t              read_fails;
    uint32_t             last_read;
    uint32_t             sign;     /* of life: what the data part had done at the last heartbeat */
    uint32_t             look_psn; /* expected at the last look, when the rail was silent */
    uint64_t             look_at;
    uint64_t             born, fence_at, read_at, park_until;
    uint64_t             drained_at;           /* the device has said that it takes no receives any more */
    uint64_t             fenced_at, lost_look; /* it was told to stop; progress was sent to look */
    struct uct_ha_lane  *parked;               /* next in lanes->parked, or in the shared queue's graves */
};

_Static_assert(offsetof(struct uct_ha_lane, slot) < UCT_HA_LINE, "a completion needs one line of it");

static inline int uct_ha_lane_is_fenced(const struct uct_ha_lane *lane)
{
    return __atomic_load_n(&lane->fenced, __ATOMIC_RELAXED);
}

static inline uint64_t uct_ha_wr_id(enum uct_ha_wr_kind kind, uint32_t lane, uint32_t index)
{
    return (uint64_t)kind << 60 | (uint64_t)(lane & 0x0fffffffu) << 32 | index;
}

static inline uint64_t uct_ha_wr_id_shared(const struct uct_ha_place *place)
{
    return (uintptr_t)place;
}

static inline int uct_ha_wr_is_shared(uint64_t wr_id)
{
    return wr_id >> 63 == 0;
}

static inline struct uct_ha_place *uct_ha_wr_place(uint64_t wr_id)
{
    return (struct uct_ha_place *)(uintptr_t)wr_id;
}

/* The lane whose receive this is: NULL for everything else, and when it is gone. Where there are
 * completions there is a table. */
static inline struct uct_ha_lane *uct_ha_lane_of_receive(const struct uct_ha_lanes *lanes, uint64_t wr_id)
{
    uint32_t            tag  = (uint32_t)(wr_id >> 32);
    struct uct_ha_lane *lane = lanes->table[tag & lanes->table_mask];

    return ucs_likely(lane != NULL && lane->receive_tag == tag) ? lane : NULL;
}

/* The lane of a completion, NULL when it is gone. */
static inline struct uct_ha_lane *uct_ha_lane_of(const struct uct_ha_lanes *lanes, uint64_t wr_id)
{
    uint32_t            id   = (uint32_t)(wr_id >> 32) & 0x0fffffffu;
    struct uct_ha_lane *lane = lanes->table[id & lanes->table_mask];

    return ucs_likely(lane != NULL && lane->id == id) ? lane : NULL;
}

/* Of a lane of a road: where its messages come from is the receives that it shares, else itself. */
static inline const void *uct_ha_lane_source(const struct uct_ha_lane *lane)
{
    return lane->shared != NULL ? (const void *)lane->shared : lane;
}

/* Receives that succeeded on it. Not of one that is parked. */
static inline uint32_t uct_ha_lane_received(const struct uct_ha_lane *lane)
{
    return __atomic_load_n(&lane->road->received[lane->slot], __ATOMIC_RELAXED);
}

static inline void uct_ha_road_receive(struct uct_ha_road *road, unsigned slot)
{
    uint32_t *received = &road->received[slot];

    __atomic_store_n(received, *received + 1, __ATOMIC_RELAXED);
}

/* Messages and PUTs that were delivered. */
static inline uint32_t uct_ha_lane_delivered(const struct uct_ha_lane *lane)
{
    return uct_ha_lane_received(lane) - (lane->held_tail - lane->held_head);
}

/* Sends under way. Not of one that is parked. */
static inline uint32_t uct_ha_lane_sends(const struct uct_ha_lane *lane)
{
    return lane->road->sends[lane->slot];
}

/* The lane in that slot is gone, and what was counted of it. */
static inline void uct_ha_road_leave(struct uct_ha_road *road, int slot)
{
    road->lane[slot]  = NULL;
    road->sends[slot] = 0;
    __atomic_store_n(&road->received[slot], 0, __ATOMIC_RELAXED);
}

/* Sends are counted one by one, silent ones too: each comes back when its lane is flushed. Posted, and polled
 * again; a success takes back those it stands for as well. */
static inline void uct_ha_lane_sent(struct uct_ha_lane *lane)
{
    lane->room->sends++;
    lane->road->sends[lane->slot]++;
}

static inline void uct_ha_lane_polled(struct uct_ha_lane *lane, unsigned sends)
{
    lane->room->sends -= sends;
    lane->road->sends[lane->slot] = (uint16_t)(lane->road->sends[lane->slot] - sends);
}

#endif
