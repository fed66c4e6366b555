/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_LOG_H_
#define HA_LOG_H_

/*
 * The operation log of one endpoint: one ordered ring of everything the user
 * asked for and that has not ended yet. It knows no buffers and no devices:
 * the glue keeps what is needed to post an operation again behind each entry.
 *
 *             append            post             success on its lane
 *   (free) ──────────▶ WAIT ──────────▶ POSTED ─────────────────────▶ DONE ──▶ retired (free)
 *                       ▲                 │  └── resolve: executed ────▲
 *                       └── resolve: not ─┘
 *
 * WAIT    not on any lane now. Either new, or put back by resolve at its old place.
 * POSTED  on lane (slot, gen), at packet numbers [psn_first, psn_first + npsn).
 * DONE    ended with `result`; leaves the ring when everything before it has left.
 *
 * "New work queues behind the replay" follows from posting always taking the
 * first WAIT entry of the one order.
 *
 * Most operations for which nobody waits are posted silently: their success makes no
 * completion, that of a later one on the lane stands for them. Behind the last of them a
 * TAIL has to follow sometime, which tells (docs/failover.md, "Silent operations").
 *
 * Owned by progress alone: no lock. Another thread may watch head, tail and told move.
 * Pure: no allocation, clock or callback.
 */

#include <stddef.h>
#include <stdint.h>

#include "ha_proof.h"
#include "ha_psn.h"

enum ha_op_kind {
    HA_OP_SEND, /* consumes a receive at the peer */
    HA_OP_WRITE,
    HA_OP_READ,   /* may be repeated: its answer is what may be lost */
    HA_OP_ATOMIC, /* result not fetched */
    HA_OP_FETCH,  /* fetching atomic: unknowable when its answer was lost */
    HA_OP_TAIL,   /* of no effect, and nobody's: its success tells of the silent ones before it */
};

enum ha_op_state { HA_OP_FREE, HA_OP_WAIT, HA_OP_POSTED, HA_OP_DONE };

/* How an operation ended. */
enum ha_op_result {
    HA_RESULT_NONE,
    HA_RESULT_OK,       /* success completion */
    HA_RESULT_PROVEN,   /* executed by the peer's proof: success */
    HA_RESULT_UNKNOWN,  /* in doubt, or executed and its result lost: error, never repeated */
    HA_RESULT_REJECTED, /* the program's own fault, reported by the device */
    HA_RESULT_CANCELED, /* the endpoint ended */
};

#define HA_OP_FLAG_FENCE   0x1u /* starts only when earlier READs and atomics are done; kept on replay */
#define HA_OP_FLAG_RECEIVE 0x2u /* consumes a receive though it is no SEND (WRITE with immediate data) */
#define HA_OP_FLAG_QUIET   0x4u /* nobody waits for its end: it may be posted silently */

struct ha_op {
    union {
        struct {
            uint32_t gen; /* lane generation of the latest posting */
            uint32_t psn_first;
        };
        uint64_t place; /* both */
    };
    uint32_t npsn;
    uint32_t length;
    uint8_t  kind;
    uint8_t  flags;
    uint8_t  state;
    uint8_t  result;
    uint8_t  posts; /* times posted, saturating: > 1 means replayed */
    uint8_t  slot;
    uint8_t  pad[2];
};

/* Per slot, for its current lane generation. Numbers are packet numbers; on a
 * lane that the peer proves by ledger they count ledger marks instead. */
struct ha_log_lane {
    union {
        struct {
            uint32_t gen;
            uint32_t nxt; /* next number to be sent */
        };
        uint64_t place; /* both, where the next operation goes */
    };
    uint32_t takes;  /* receives that what was posted here takes, but for what was rejected or cancelled since */
    uint32_t silent; /* posted since the latest one that tells */
};

/* ... and of what was posted there before. */
struct ha_log_acks {
    uint32_t una;   /* oldest number without success */
    uint32_t first; /* no entry before this one is POSTED on this generation */
    uint32_t acked; /* 1 when there was a success on this generation */
};

/* First what each operation needs as it goes out. */
struct ha_log {
    struct ha_op      *ops;    /* the caller's array of mask + 1 entries, */
    uint32_t           stride; /* ... which lie so many bytes apart */
    uint32_t           mask;   /* capacity - 1 */
    uint32_t           post;   /* no WAIT entry lies before this one; indices run freely */
    uint32_t           tail;   /* next free */
    struct ha_log_lane lane[2];

    uint32_t           head; /* oldest entry not retired */
    uint32_t           told; /* behind the latest entry that was posted to tell */
    uint32_t           read; /* behind the entry that was posted latest of those that fetch */
    uint32_t           run;  /* the clean run begins here, see ha_log_is_clean() */
    uint32_t           run_slot;
    struct ha_log_acks acks[2];
};

/* What ha_log_resolve() found. */
struct ha_resolution {
    uint32_t k;        /* receives that our operations consumed on this lane generation */
    uint32_t retired;  /* operations completed by proof */
    uint32_t replayed; /* operations put back to WAIT */
    uint32_t unknown;  /* operations ended with HA_RESULT_UNKNOWN */
};

/* Errors of ha_log_resolve(); all end the endpoint. */
#define HA_EPROOF_WINDOW (-1) /* proof outside [acknowledged, posted] */
#define HA_EPROOF_ACKED  (-2) /* proof below something acknowledged */
#define HA_EPROOF_ORDER  (-3) /* ledger and count contradict each other: a message is missing */

/* `capacity`: a power of two; `ops`: that many entries, owned by the caller
 * until the log is no longer used. `stride`: bytes from one entry to the next, what is between them is the caller's. */
void ha_log_init_apart(struct ha_log *log, struct ha_op *ops, uint32_t stride, uint32_t capacity);

static inline void ha_log_init(struct ha_log *log, struct ha_op *ops, uint32_t capacity)
{
    ha_log_init_apart(log, ops, sizeof(*ops), capacity);
}

/* The ring becomes longer, or shorter: everything goes to the same indices of `ops`, the caller's new array of
 * `capacity` entries, a power of two that holds what is in the log, as far apart as before. He moves what is between
 * them himself. */
void ha_log_move(struct ha_log *log, struct ha_op *ops, uint32_t capacity);

static inline uint32_t ha_log_used(const struct ha_log *log)
{
    return log->tail - log->head;
}

static inline uint32_t ha_log_room(const struct ha_log *log)
{
    return log->mask + 1 - ha_log_used(log);
}

static inline struct ha_op *ha_log_op(const struct ha_log *log, uint32_t index)
{
    return (struct ha_op *)(void *)((char *)log->ops + (size_t)(index & log->mask) * log->stride);
}

/* 1 when nothing waits to be posted: a new operation may go straight out. */
static inline int ha_log_no_backlog(const struct ha_log *log)
{
    return log->post == log->tail;
}

/*
 * The clean run: all entries from log->run on went straight out (ha_log_enter()) on one lane, that of log->run_slot,
 * and nothing has happened to them since: they are POSTED there. Whatever posts, resolves, rejects or cancels
 * otherwise has it begin anew behind that. While it spans the whole log, a success of one entry is that of all before
 * it, without a look at them. `run` may have been left behind long ago: outside of (head, tail] it says that everything
 * is clean.
 */
static inline int ha_log_is_clean(const struct ha_log *log)
{
    return log->run - log->head - 1u >= ha_log_used(log);
}

/* It begins at `index` or later. */
static inline void ha_log_run_from(struct ha_log *log, uint32_t index)
{
    if (log->run - index > log->tail - index) {
        log->run = index;
    }
}

/* From here on operations go straight out on `slot`: before the first ha_log_enter() of it. */
static inline void ha_log_run_on(struct ha_log *log, unsigned slot)
{
    if (log->run_slot != slot) {
        log->run_slot = slot;
        log->run      = log->tail;
    }
}

/* A new lane generation on `slot` starts sending at `psn`. Nothing of the
 * slot's earlier generation may be POSTED any more. */
void ha_log_lane_start(struct ha_log *log, int slot, uint32_t gen, uint32_t psn);

/* ---- fast path ---- */

/* log->post moves on to the next entry that waits, or to the end. */
static inline void ha_log_skip_to_wait(struct ha_log *log)
{
    while (log->post != log->tail && ha_log_op(log, log->post)->state != HA_OP_WAIT) {
        log->post++;
    }
}

/* Append as WAIT; returns its index. The caller checked ha_log_room(). */
static inline uint32_t ha_log_append(struct ha_log *log, enum ha_op_kind kind, unsigned flags, uint32_t length)
{
    uint32_t      index = log->tail;
    struct ha_op *op    = ha_log_op(log, index);

    __atomic_store_n(&log->tail, index + 1, __ATOMIC_RELAXED);

    op->length = length;
    op->kind   = (uint8_t)kind;
    op->state  = HA_OP_WAIT;
    op->flags  = (uint8_t)flags;
    op->result = HA_RESULT_NONE;
    op->posts  = 0;
    return index;
}

/* First WAIT entry, or log->tail when there is none; moves log->post there. */
static inline uint32_t ha_log_next_wait(struct ha_log *log)
{
    ha_log_skip_to_wait(log);
    return log->post;
}

static inline int ha_op_consumes_receive(const struct ha_op *op)
{
    return op->kind == HA_OP_SEND || (op->flags & HA_OP_FLAG_RECEIVE);
}

/* Does it need a mark on a lane that is proved by ledger? What consumes a
 * receive is counted, a READ is repeated anyway, a TAIL does nothing. */
static inline int ha_op_needs_mark(const struct ha_op *op)
{
    return op->kind != HA_OP_READ && op->kind != HA_OP_TAIL && !ha_op_consumes_receive(op);
}

/* Numbers that an operation takes: packets at path MTU `mtu`; `mtu` 0 = the
 * lane is proved by ledger: marks. */
static inline uint32_t ha_log_npsn(const struct ha_op *op, uint32_t mtu)
{
    if (mtu == 0) {
        return (uint32_t)ha_op_needs_mark(op);
    }
    /* atomics have 8 bytes, which is one packet by the other rule, too; this one is the device's */
    return op->kind >= HA_OP_ATOMIC ? 1 : ha_psn_count(op->length, mtu);
}

/* Numbers posted on the slot, of which no success is known. */
static inline uint32_t ha_log_ahead(const struct ha_log *log, int slot)
{
    return ha_psn_distance(log->acks[slot].una, log->lane[slot].nxt);
}

/* 1 if `npsn` more packets fit in the window of the slot (else post later). */
static inline int ha_log_psn_room(const struct ha_log *log, int slot, uint32_t npsn)
{
    return npsn < HA_PSN_WINDOW && ha_log_ahead(log, slot) + npsn < HA_PSN_WINDOW;
}

/* Fences are kept here, not by the device's flag (docs/failover.md, "Proof"). 1 when the entry at log->post is
 * fenced and one before it still waits for its data. Messages and writes are in order anyway. `read` serves
 * after a resolve as well: entries go out again in their order, so one of those that fetch and were posted before
 * the present one is either the latest of them, or has its data when that one has. One that waits to be posted
 * again lies at or behind log->post, and counts for nothing. */
static inline int ha_log_is_held(const struct ha_log *log)
{
    return (ha_log_op(log, log->post)->flags & HA_OP_FLAG_FENCE) && log->read - log->head - 1u < log->post - log->head;
}

/* May the entry at log->post go out silently on `slot`? One in `every` has to tell (0 or 1: all do); one that
 * was posted before tells, so that a failover does not end in silence; and no more than half of the
 * window waits for somebody to tell. `npsn` as for ha_log_post(). */
static inline int ha_log_may_be_silent(const struct ha_log *log, int slot, uint32_t npsn, uint32_t every)
{
    const struct ha_log_lane *lane = &log->lane[slot];
    const struct ha_op       *op   = ha_log_op(log, log->post);

    return (op->flags & HA_OP_FLAG_QUIET) && op->posts == 0 && lane->silent + 1 < every &&
           ha_log_ahead(log, slot) + npsn < HA_PSN_WINDOW / 2;
}

/* The entry at log->post (which must be WAIT) goes out on `slot`, `npsn` = ha_log_npsn() of it, `silent` if
 * its success makes no completion. The caller checked ha_log_is_held(), and ha_log_psn_room() with the same count. */
static inline void ha_log_post(struct ha_log *log, int slot, uint32_t npsn, int silent)
{
    struct ha_log_lane *lane = &log->lane[slot];
    struct ha_op       *op   = ha_log_op(log, log->post);

    op->state     = HA_OP_POSTED;
    op->slot      = (uint8_t)slot;
    op->gen       = lane->gen;
    op->psn_first = lane->nxt;
    op->npsn      = npsn;
    op->posts     = (uint8_t)(op->posts + (op->posts < UINT8_MAX));
    lane->nxt     = ha_psn_add(lane->nxt, npsn);
    lane->takes += (uint32_t)ha_op_consumes_receive(op);
    log->post++;
    ha_log_run_from(log, log->post);
    if (op->kind == HA_OP_READ || op->kind == HA_OP_FETCH) {
        log->read = log->post;
    }
    if (silent) {
        lane->silent++;
    } else {
        lane->silent = 0;
        if ((int32_t)(log->post - log->told) > 0) {
            __atomic_store_n(&log->told, log->post, __ATOMIC_RELAXED);
        }
    }
    ha_log_skip_to_wait(log);
}

/* Both at once, for an operation that goes out on `slot`, whose `lane` this is, as soon as it comes; nothing waits.
 * Two halves, so that little has to be kept while the device takes it: before, what is written behind the log's end,
 * which nobody looks at; after, it is in the log. One that the device refuses is appended as any other. ha_log_run_on()
 * was called for this slot, and for no other one since. */
static inline void ha_log_draft(struct ha_op *op, const struct ha_log_lane *lane, unsigned slot, enum ha_op_kind kind,
                                unsigned flags, uint32_t length, uint32_t npsn)
{
    op->length = length;
    op->place  = lane->place;
    op->npsn   = npsn;
    op->kind   = (uint8_t)kind;
    op->flags  = (uint8_t)flags;
    op->state  = HA_OP_POSTED;
    op->result = HA_RESULT_NONE;
    op->posts  = 1;
    op->slot   = (uint8_t)slot;
}

static inline void ha_log_enter(struct ha_log *log, struct ha_log_lane *lane, enum ha_op_kind kind, unsigned flags,
                                uint32_t npsn, int silent)
{
    uint32_t index = log->tail;

    lane->takes += kind == HA_OP_SEND || (flags & HA_OP_FLAG_RECEIVE);
    lane->nxt = ha_psn_add(lane->nxt, npsn);
    log->post = index + 1;
    __atomic_store_n(&log->tail, index + 1, __ATOMIC_RELAXED);
    if (kind == HA_OP_READ || kind == HA_OP_FETCH) {
        log->read = index + 1;
    }
    if (silent) {
        lane->silent++;
    } else {
        lane->silent = 0;
        __atomic_store_n(&log->told, index + 1, __ATOMIC_RELAXED);
    }
}

static inline void ha_log_append_posted(struct ha_log *log, struct ha_log_lane *lane, int slot, enum ha_op_kind kind,
                                        unsigned flags, uint32_t length, uint32_t npsn, int silent)
{
    ha_log_run_on(log, (unsigned)slot);
    ha_log_draft(ha_log_op(log, log->tail), lane, (unsigned)slot, kind, flags, length, npsn);
    ha_log_enter(log, lane, kind, flags, npsn, silent);
}

/* Operations under way of which nothing will tell but what is posted behind them. */
static inline uint32_t ha_log_silent(const struct ha_log *log)
{
    return log->lane[0].silent + log->lane[1].silent;
}

/* 1 when there are some and everything is posted: when somebody waits, or it has been so for long, a TAIL
 * must follow. */
static inline int ha_log_is_silent(const struct ha_log *log)
{
    return ha_log_silent(log) > 0 && ha_log_no_backlog(log);
}

static inline int ha_op_is_posted_on(const struct ha_op *op, int slot, uint32_t gen)
{
    return op->state == HA_OP_POSTED && op->slot == slot && op->gen == gen;
}

static inline void ha_op_succeeded(struct ha_op *op)
{
    op->state  = HA_OP_DONE;
    op->result = HA_RESULT_OK;
}

/* Every entry POSTED on (slot, gen) from `i` to `end`, this one not, is DONE/OK; how many there were. */
static inline uint32_t ha_log_succeed(struct ha_log *log, uint32_t i, uint32_t end, int slot, uint32_t gen)
{
    uint32_t ended = 0;

    for (; i != end; i++) {
        if (ha_op_is_posted_on(ha_log_op(log, i), slot, gen)) {
            ha_op_succeeded(ha_log_op(log, i));
            ended++;
        }
    }
    return ended;
}

/* A success completion for entry `index` on (slot, gen): it and, because a
 * lane completes in order, every earlier entry POSTED there have ended, well.
 * Returns how many these are; a stale generation is ignored. `seen` 0: when all have ended, ha_log_all_ended(), then
 * ha_log_retire_to() follows at once, before anybody looks at them; so they need not be made DONE. */
static inline uint32_t ha_log_success(struct ha_log *log, uint32_t index, int slot, uint32_t gen, int seen)
{
    struct ha_log_acks *acks = &log->acks[slot];
    struct ha_op       *op   = ha_log_op(log, index);
    uint32_t            i    = acks->first;

    if (log->lane[slot].gen != gen || index - log->head >= ha_log_used(log) || !ha_op_is_posted_on(op, slot, gen)) {
        return 0;
    }
    acks->una   = ha_psn_add(op->psn_first, op->npsn);
    acks->acked = 1;
    acks->first = index + 1;
    if (ha_log_is_clean(log)) {
        for (i = seen ? log->head : index + 1; i != index + 1; i++) {
            ha_op_succeeded(ha_log_op(log, i));
        }
        return index + 1 - log->head;
    }
    ha_log_run_from(log, index + 1);
    if (i - log->head >= ha_log_used(log)) {
        i = log->head; /* what it pointed to has left the ring */
    }
    return ha_log_succeed(log, i, index + 1, slot, gen);
}

/* The oldest entry if it is DONE: retires it, sets *index and *result and
 * returns 1. Returns 0 when there is none. */
static inline int ha_log_retire(struct ha_log *log, uint32_t *index, enum ha_op_result *result)
{
    struct ha_op *op = ha_log_op(log, log->head);

    if (log->head == log->tail || op->state != HA_OP_DONE) {
        return 0;
    }
    *index    = log->head;
    *result   = (enum ha_op_result)op->result;
    op->state = HA_OP_FREE;
    if (log->post == log->head) {
        log->post++; /* whoever posts next would skip it; but post is never behind head */
    }
    __atomic_store_n(&log->head, log->head + 1, __ATOMIC_RELAXED);
    return 1;
}

/* A success of `index` has just `ended` so many: are these all up to there? */
static inline int ha_log_all_ended(const struct ha_log *log, uint32_t index, uint32_t ended)
{
    return ended == index + 1 - log->head;
}

/* Then they need not be looked at to be retired: all entries before `end` are, at once. They were posted, so
 * log->post is not before `end`. */
static inline void ha_log_retire_to(struct ha_log *log, uint32_t end)
{
    __atomic_store_n(&log->head, end, __ATOMIC_RELAXED);
}

/* ---- the rest ---- */

/* Entry `index` ends by the program's own fault. */
void ha_log_reject(struct ha_log *log, uint32_t index);

/*
 * Lane (slot, gen) is fenced on both sides and its send completions were all
 * counted; `peer` is what the peer proves or, of kind NONE, declares. Every entry
 * POSTED there becomes DONE (executed, or in doubt) or WAIT (not executed, or a
 * READ); see the table in docs/failover.md. Returns 0 and fills `res`, or
 * HA_EPROOF_* and changes nothing.
 */
int ha_log_resolve(struct ha_log *log, int slot, uint32_t gen, const struct ha_evidence *peer,
                   struct ha_resolution *res);

/* The endpoint ends: every entry not DONE becomes DONE/CANCELED. */
void ha_log_cancel(struct ha_log *log);

/* 1 when some entry is POSTED on this lane generation. */
int ha_log_posted_on(const struct ha_log *log, int slot, uint32_t gen);

#endif
