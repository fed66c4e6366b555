/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_STATE_H_
#define HA_STATE_H_

/* The state of an endpoint pair, and questions about it. What it means: ha_pair.h. */

#include <stdint.h>

#include "ha_proof.h"

#define HA_SLOTS   2
#define HA_NO_SLOT (-1)

/* Where work belongs when both lanes are well: what UCX chose. */
#define HA_PREFERRED_SLOT 0

enum ha_lane_status { HA_LANE_CONN, HA_LANE_READY, HA_LANE_FENCED, HA_LANE_RESOLVED, HA_LANE_CLOSED };

/* State of the queue pair of the current generation. A generation begins when
 * its queue pair has been created (HA_EV_QP_CREATED), so that a record never
 * announces a lane without its number; until then the slot stays CLOSED in the
 * generation before. A generation that the peer has fenced before this side
 * began it is walked through without a queue pair (q stays NONE). */
enum ha_qp_state {
    HA_QP_NONE,       /* not there (gen 0, closed, or skipped) */
    HA_QP_INIT,       /* created, not connected */
    HA_QP_CONNECTING, /* RTR/RTS under way */
    HA_QP_UP,         /* RTS */
    HA_QP_ERRING,     /* modify(ERR) asked for; a packet may still execute */
    HA_QP_ERR,        /* the fence has settled */
};

/* Why a lane was fenced. Travels in the record and in the log line. */
enum ha_cause {
    HA_CAUSE_NONE,
    HA_CAUSE_PORT,       /* port or device event */
    HA_CAUSE_COMPLETION, /* fatal completion status */
    HA_CAUSE_FLUSH,      /* flushed although we did not fence */
    HA_CAUSE_RTO,        /* no progress (soft) */
    HA_CAUSE_HEARTBEAT,  /* this rail silent, the other answers (soft) */
    HA_CAUSE_PEER,       /* the peer fenced it */
    HA_CAUSE_CONNECT,    /* could not be connected */
    HA_CAUSE_PROGRAM,    /* the operation was wrong; the rail is not blamed */
    HA_CAUSE_FAILBACK,
    HA_CAUSE_CLOSE,     /* the endpoint ends */
    HA_CAUSE_SLOW,      /* alive, but many times slower than it used to be (soft) */
    HA_CAUSE_NOT_READY, /* the peer had no receive posted for too long; the rail is not blamed */
    HA_CAUSE_LAST
};

/* Why an endpoint pair failed. */
enum ha_fail {
    HA_FAIL_NONE,
    HA_FAIL_DEADLINE, /* no lane until the failover deadline */
    HA_FAIL_CONNECT,  /* no lane until the connect deadline */
    HA_FAIL_PROOF_WINDOW,
    HA_FAIL_PROOF_ACKED,
    HA_FAIL_PROOF_MOVED,
    HA_FAIL_COUNT,       /* more or fewer messages than proven */
    HA_FAIL_GENERATION,  /* peer more than one generation ahead */
    HA_FAIL_PEER_FAILED, /* the peer ended it */
    HA_FAIL_PEER_DEAD,   /* silent on every rail */
    HA_FAIL_CANCELED,    /* the user ended it */
    HA_FAIL_REFUSED,     /* an operation was refused whose end nobody would hear of */
    HA_FAIL_PROOF_KIND,  /* the peer proves in another way than it offered */
    HA_FAIL_PROOF_ORDER, /* its ledger and its count contradict each other */
    HA_FAIL_DOUBT,       /* an operation is in doubt whose end nobody would hear of */
    HA_FAIL_OPTIONS,     /* the peer's connect options are impossible, or do not go with ours */
    HA_FAIL_SINGLE,      /* a standby is required, and it turns out that there can be none */
    HA_FAIL_LAST
};

#define HA_PAIR_FAILED  0x1u /* this side has ended it with an error */
#define HA_PAIR_CLOSING 0x2u /* this side's user has let go and owes nothing */

/* One slot in a record. `qpn`, `psn`, `mtu` are constant within a generation. */
struct ha_record_lane {
    uint32_t gen, act;
    /* Until READY, of a lane that will be proved by ledger: where the ledger is,
     * see ha_pair_ledger(). Then: */
    uint32_t rxpsn;    /* word of the proof, valid from FENCED on when its kind has one */
    uint32_t received; /* count of the proof, the same */
    uint32_t k;        /* valid from RESOLVED on */
    uint32_t qpn, psn; /* of the sender's queue pair; valid from CONN on */
    uint32_t seen_gen; /* echo: what the sender has merged of ours */
    uint16_t mtu;      /* bytes */
    uint8_t  st, seen_st, cause;
    uint8_t  proof; /* CONN, READY: the kind that the sender will give; then the kind it gives */
};

/* The snapshot that travels. Addressing (cookies, indices, tag) is the
 * packet's business, see ha_packet.h. */
struct ha_record {
    uint32_t              epoch, seen_epoch;
    uint16_t              flags, seen_flags;
    struct ha_record_lane lane[HA_SLOTS];
};

struct ha_lane {
    uint32_t gen;
    uint32_t act;      /* epoch this lane serves or served, 0 = never */
    uint32_t rxpsn;    /* own proof: its word, */
    uint32_t received; /* and its count */
    uint32_t k;        /* receives that our operations have consumed at the peer */
    uint32_t qpn, psn; /* own queue pair and start packet number */
    uint16_t mtu;
    uint8_t  st, q, proof, cause;
    uint8_t  usable;   /* the rail is up here, as far as we know */
    uint8_t  drained;  /* own send completions all counted */
    uint8_t  asked;    /* bits of actions under way, see ha_pair.c */
    uint64_t renew_at; /* not rebuilt before this time */
};

struct ha_view {
    uint32_t gen, act, rxpsn, received, k, qpn, psn;
    uint32_t seen_gen;
    uint16_t mtu;
    uint8_t  st, seen_st, proof, cause;
    uint8_t  offer; /* kind of proof announced in CONN or READY; NONE = not heard */
};

struct ha_pair_config {
    uint64_t connect_timeout; /* ns until the first lane must carry work */
    /* ns without a lane until the endpoint fails; HA_PATIENCE times as long while the peer answers */
    uint64_t deadline;
    uint64_t standby_delay; /* ns without progress of slot 0 after which slot 1 does not wait for it */
    uint64_t cooldown;      /* ns between closing a lane and rebuilding it */
    /* ns that a side which hears nothing stays: to answer when both have let go, to tell that it has failed */
    uint64_t linger;
    uint64_t drain_timeout;    /* ns that a failing endpoint waits for its queue pairs */
    uint64_t rtx_min, rtx_max; /* ns, retransmission of records */
    uint64_t failback;         /* ns that the preferred lane must have been ready before work goes
                                  back to it; 0 = never, or HA_FAILBACK_AUTO. The decider's counts */
};

/* Moving takes some work of the peer's program. One that answers but has not done it yet computes, is stopped now and
 * then or hardly gets a processor. */
#define HA_PATIENCE 6u

/* Work goes back after 5 s, or ten times the hold of HA_EV_HOLD, whichever is more. */
#define HA_FAILBACK_AUTO    UINT64_MAX
#define HA_FAILBACK_AUTO_NS 5000000000ull
#define HA_FAILBACK_HOLDS   10u

struct ha_pair {
    struct ha_lane        lane[HA_SLOTS];
    struct ha_view        view[HA_SLOTS];
    uint32_t              epoch;
    uint32_t              seen_epoch;                    /* the peer's echo of ours */
    uint16_t              flags, view_flags, seen_flags; /* ours; the peer's; the peer's echo of ours */
    uint8_t               decider;
    uint8_t               slots;     /* 1 or 2: single-rail endpoints have no slot 1 */
    uint8_t               fail;      /* enum ha_fail */
    uint8_t               fail_told; /* HA_ACT_FAIL was emitted */
    uint8_t               dirty;     /* the peer has not echoed our present state */
    uint8_t               started;
    uint8_t               gone_told;   /* HA_ACT_GONE was emitted */
    uint32_t              rtx_n;       /* tries since the last change: rail = rtx_n % slots */
    uint64_t              rtx_at;      /* next retransmission */
    uint64_t              deadline;    /* fail then, 0 = not armed */
    uint64_t              lost_at;     /* the deadline began then; 0 = it is that of connecting */
    uint64_t              standby_at;  /* slot 1 may go first; UINT64_MAX = the peer was not heard yet */
    uint64_t              drain_at;    /* failing: do not wait for drains beyond this */
    uint64_t              linger_at;   /* both closing: do not wait for the peer beyond this, 0 = not armed */
    uint64_t              failback_at; /* the preferred lane is ready, go back to it then; 0 = it is not */
    uint64_t              hold[HA_SLOTS], hold_at[HA_SLOTS]; /* last cool-down (ns) and its end */
    uint64_t              now;                               /* latest time given to a call */
    struct ha_pair_config cfg;
};

enum ha_event_kind {
    HA_EV_START,        /* A  the endpoint begins (either side) */
    HA_EV_RAIL,         /* A  slot, value = usable now */
    HA_EV_RECORD,       /* A  record of the peer, already checked by ha_packet; value = 1: it wants an answer */
    HA_EV_QP_CREATED,   /* P  slot gen qpn psn mtu, proof = kind that this side will give, ledger_* = where
                              the peer leaves its marks (proof = LEDGER) */
    HA_EV_QP_CONNECTED, /* A  slot gen */
    HA_EV_QP_FAILED,    /* A  slot gen: could not be created or connected */
    HA_EV_LANE_DOWN,    /* A  slot gen cause: hard, the lane is dead already */
    HA_EV_LANE_SUSPECT, /* A  slot gen cause: soft, ignored without a standby READY on both sides */
    HA_EV_SETTLED, /* A  slot gen proof, psn = its word, received = its count: fence settled, read behind the barrier.
                         P  proof = NONE: the device cannot be asked, or not be stopped; no more than `received` will be
                         taken from it. See ha_pair_peer_stopped() */
    /* P  slot gen: own send completions all counted; those that did not come in time will be ignored */
    HA_EV_DRAINED,
    HA_EV_RESOLVED,  /* P  slot gen value = k */
    HA_EV_BAD_PROOF, /* P  slot gen value = HA_FAIL_PROOF_WINDOW / _ACKED / _ORDER */
    /* P  slot gen value = receives consumed; proof, psn, received = read again (proof = NONE: could not) */
    HA_EV_DELIVERED,
    /* A  value = HA_FAIL_PEER_DEAD / _CANCELED, _REFUSED, _DOUBT, _OPTIONS (here the end comes from us)
     */
    HA_EV_PEER_LOST,
    HA_EV_CLOSE, /* P  the user has let go; no operation is outstanding */
    HA_EV_HOLD,  /* A  slot wait: the rail is not to be trusted for so long. While the other lane works this
                       side does not rebuild the slot; the time until work goes back to it begins anew */
    HA_EV_TIMER, /* A  time has passed; value = 1: the peer answers on a rail that is up on both sides */
};

struct ha_event {
    enum ha_event_kind      kind;
    int                     slot;
    uint32_t                gen, qpn, psn, received, value;
    uint32_t                ledger_key;
    uint64_t                ledger_addr;
    uint16_t                mtu;
    uint8_t                 cause, proof;
    uint64_t                wait; /* ns */
    const struct ha_record *record;
};

enum ha_action_kind {
    HA_ACT_CREATE_QP, /* P  slot gen: build a queue pair in INIT, receives posted → QP_CREATED / QP_FAILED */
    /* A  slot gen: RTR+RTS to view[slot] → QP_CONNECTED / QP_FAILED. May block: not in A itself */
    HA_ACT_CONNECT_QP,
    HA_ACT_FENCE,   /* A  slot gen: modify(ERR) now; → SETTLED behind the barrier; progress drains → DRAINED */
    HA_ACT_RESOLVE, /* P  slot gen: ha_log_resolve() with ha_pair_evidence() → RESOLVED / BAD_PROOF */
    /* P  slot gen value = k: when k messages of it were delivered, re-read the PSN → DELIVERED. Until then keep trying
     */
    HA_ACT_CHECK_CLOSE,
    HA_ACT_DESTROY_QP, /* P  slot gen: park and destroy; every completion of it was polled */
    HA_ACT_SEND,       /* A  send a record to the peer (slot = preferred rail, HA_NO_SLOT = any). value = 1: it was
                             sent before, ask for an answer, for that is what may have been lost. Several before
                             the glue's next control round are one: only the present state is of interest */
    HA_ACT_LANES,      /* A  tx / rx slot may have changed: ask ha_pair_tx_slot() and _rx_slot() again */
    /* P  value = enum ha_fail: both queue pairs are fenced and drained (or timed out): end every operation, report once
     */
    HA_ACT_FAIL,
    HA_ACT_GONE, /* P  both sides have let go and know it: deliver what has arrived on _rx_slot(), fence, destroy,
                    forget the pair. A record that still comes for it: see docs/failover.md, "Closing" */
};

struct ha_action {
    enum ha_action_kind kind;
    int                 slot;
    uint32_t            gen, value;
};

#define HA_ACTIONS_MAX 16 /* one step never emits more */

enum ha_context { HA_CTX_ASYNC, HA_CTX_PROGRESS };

/* `decider`: 1 on exactly one side. `slots`: 1 or 2. */
void ha_pair_init(struct ha_pair *pair, const struct ha_pair_config *cfg, int decider, int slots);

/* Lane that takes new work now, or HA_NO_SLOT. */
int ha_pair_tx_slot(const struct ha_pair *pair);

/* Lane whose messages may be delivered now (others are held), or HA_NO_SLOT.
 * During a failover this is the old lane until it is CLOSED. */
int ha_pair_rx_slot(const struct ha_pair *pair);

/* What the peer proves about `slot`, for ha_log_resolve(). */
struct ha_evidence ha_pair_evidence(const struct ha_pair *pair, int slot);

/* 1 if nothing can be acknowledged to the peer any more on the present lane of `slot`. Who cannot
 * stop his own end counts what he took after this, else a message may be missing. */
int ha_pair_peer_stopped(const struct ha_pair *pair, int slot);

/* Where the peer wants the marks of `slot`. Asked when the lane is connected: the
 * peer's last word on it must be CONN or READY. 0 when it will not prove by ledger. */
int ha_pair_ledger(const struct ha_pair *pair, int slot, uint64_t *addr, uint32_t *key);

/* The failure that an error of ha_log_resolve() means. */
unsigned ha_pair_bad_proof(int error);

/* Endpoint-level questions of the glue. */
int ha_pair_failed(const struct ha_pair *pair);       /* FAILED on this side */
int ha_pair_peer_closing(const struct ha_pair *pair); /* the peer's user has let go */
int ha_pair_standby(const struct ha_pair *pair);      /* slot that is READY on both sides and unused, or HA_NO_SLOT */

#endif
