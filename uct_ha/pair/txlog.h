/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TXLOG_H_
#define UCT_HA_TXLOG_H_

/*
 * The operations of a connection that are under way: the core's log, and in each entry what is needed to post it, and
 * to post it again on another rail. An entry is one cache line; what does not fit is in the entry's place of a second
 * ring, whose memory is touched by who needs it:
 *
 *   what it is                             entry                      second ring
 *   bytes, few (`pieces` 0)                the bytes                  -
 *   bytes, more                            -                          the bytes
 *   a copy: all of it in a bounce buffer   the buffer                 -       (`more` is NULL)
 *   pieces of the user's memory, or one    the buffer, if one is      the pieces, and who waits
 *   whose end concerns somebody            held until the end
 *
 * Progress alone writes it: the data part all the time, the failover's driver when it resolves a
 * lane (in progress, too). Others read only what is atomic.
 */

#include "base/slab.h"
#include "core/ha_log.h"
#include "core/ha_pair.h"
#include "lane/desc.h"
#include "mem/reg.h"
#include "verbs/ha_qp.h"

#include <errno.h>

/* Largest number of pieces of one operation, a header included. */
#define UCT_HA_IOV_MAX    8
#define UCT_HA_INLINE_MAX 128

/* The user's handle is looked at when the operation goes out, again and again if need be. With his endpoint it may
 * be gone: then keys are kept instead. */
struct uct_ha_piece {
    uint64_t           addr;
    struct uct_ha_mem *mem; /* NULL: these are kept: */
    uint32_t           length;
    uint32_t           rails; /* bit per slot whose rail it is registered on */
    uint32_t           lkey[HA_SLOTS];
};

static inline void uct_ha_piece_set(struct uct_ha_piece *piece, const void *addr, size_t length, struct uct_ha_mem *mem)
{
    piece->addr   = (uintptr_t)addr;
    piece->length = (uint32_t)length;
    piece->mem    = mem;
}

/* As the rail of `slot`, which has this number, knows it; -ENXIO: it does not. */
static inline int uct_ha_piece_sge(const struct uct_ha_piece *piece, unsigned slot, unsigned rail_no,
                                   struct ha_sge *sge)
{
    if (ucs_unlikely(piece->mem == NULL)) {
        ha_sge_set(sge, piece->addr, piece->length, piece->lkey[slot]);
        return piece->rails >> slot & 1u ? 0 : -ENXIO;
    }
    if (ucs_unlikely(!uct_ha_reg_is_on(piece->mem, rail_no))) {
        return -ENXIO;
    }
    ha_sge_set(sge, piece->addr, piece->length, piece->mem->lkey[rail_no]);
    return 0;
}

#define UCT_HA_TXOP_BOUNCED 0x1u /* GET: the answer comes to `desc`, then to the pieces */
#define UCT_HA_TXOP_STAINED 0x2u /* a card that nobody could stop may come to `desc` yet */
#define UCT_HA_TXOP_DOUBT   0x4u /* it is in doubt, and that was seen to */

struct uct_ha_more {
    uct_completion_t     *comp;
    uct_unpack_callback_t unpack;     /* GET bcopy */
    void                 *unpack_arg; /* of a GET that is bounced: the entry */
    union {
        uint8_t             bytes[UCT_HA_INLINE_MAX]; /* without pieces */
        struct uct_ha_piece piece[UCT_HA_IOV_MAX];
        struct {
            struct uct_ha_piece result; /* piece[0] */
            uint64_t            compare_add, swap;
        } atomic;
    };
} __attribute__((aligned(UCT_HA_LINE)));

#define UCT_HA_BYTES_FEW 16u /* a header and eight bytes */

/* An entry of the log, and what is needed to post it. */
struct uct_ha_txop {
    struct ha_op core;
    uint8_t      op;     /* enum ha_send_op */
    uint8_t      pieces; /* 0: its bytes are kept, and its end concerns nobody */
    uint16_t     imm;    /* low half of the immediate data: UCT_HA_IMM_* */
    uint8_t      flags;  /* UCT_HA_TXOP_* */
    uint64_t     remote_addr;
    uct_rkey_t   rkey; /* keys of both rails */
    union {
        uint8_t bytes[UCT_HA_BYTES_FEW]; /* if these are all */
        struct {
            struct uct_ha_desc *desc; /* bounce buffer held until the end, or NULL */
            struct uct_ha_more *more; /* NULL: all is in that */
        };
    };
} __attribute__((aligned(UCT_HA_LINE)));

_Static_assert(offsetof(struct uct_ha_txop, core) == 0 && sizeof(struct uct_ha_txop) == UCT_HA_LINE,
               "the core finds it there; an entry is one line");

/* All of it is in a bounce buffer, and its end concerns nobody. Of one that has pieces. */
static inline int uct_ha_txop_is_copy(const struct uct_ha_txop *txop)
{
    return txop->more == NULL;
}

static inline int uct_ha_txop_has_more(const struct uct_ha_txop *txop)
{
    return txop->pieces == 0 ? txop->core.length > UCT_HA_BYTES_FEW : !uct_ha_txop_is_copy(txop);
}

/* Of one without pieces, which has so many. */
static inline uint8_t *uct_ha_txop_bytes(struct uct_ha_txop *txop, uint32_t length)
{
    return ucs_likely(length <= UCT_HA_BYTES_FEW) ? txop->bytes : txop->more->bytes;
}

/* Who waits for its end, or NULL. */
static inline uct_completion_t *uct_ha_txop_comp(const struct uct_ha_txop *txop)
{
    return txop->pieces == 0 || uct_ha_txop_is_copy(txop) ? NULL : txop->more->comp;
}

/* The operation sends `length` bytes of the buffer, or receives them there, and
 * holds it until its end. Of one that has more. */
static inline void uct_ha_txop_use(struct uct_ha_txop *txop, struct uct_ha_desc *desc, size_t length)
{
    txop->pieces = 1; /* first: the compiler takes a byte for anything's */
    txop->desc   = desc;
    uct_ha_piece_set(&txop->more->piece[0], desc->data, length, desc->mem);
}

#define UCT_HA_LONG_OP (8u << 20) /* bytes; shorter ones end well within any RTO */

struct uct_ha_txlog {
    /* in one cache line with what the log has before its head */
    uint32_t            held;   /* behind the latest operation with pieces */
    uint16_t            sent;   /* messages appended so far */
    uint8_t             awake;  /* atomic: the timer looks at the connection, see pair/awake.h */
    uint8_t             dead;   /* atomic: no more work, the connection has ended */
    struct ha_log       log;    /* head, tail and told are atomic */
    struct uct_ha_more *more;   /* the second ring; untouched where nothing needed it */
    struct uct_ha_slab *slab;   /* of first rings, as short as they begin */
    uint32_t            length; /* operations that it may take at once, however long the ring is now */
    uint8_t             fatal;  /* enum ha_fail: an operation has gone wrong that had no
                                 * completion to report by */
    uint32_t longest;           /* atomic: bytes of the longest operation since the log was empty, when that
                                 * is more than UCT_HA_LONG_OP: progress writes, a check resets */
    struct ha_wc rejected;      /* for UCT_HA_TODO_REJECT */
};

_Static_assert(offsetof(struct uct_ha_txlog, log.head) == UCT_HA_LINE,
               "an operation that goes out needs one line of it");

static inline struct uct_ha_txop *uct_ha_txlog_op(const struct uct_ha_txlog *tx, uint32_t index)
{
    return (struct uct_ha_txop *)tx->log.ops + (index & tx->log.mask);
}

static inline struct uct_ha_more *uct_ha_txlog_more(const struct uct_ha_txlog *tx, uint32_t index)
{
    return &tx->more[index & tx->log.mask];
}

/* For those who are not progress. */
static inline uint32_t uct_ha_txlog_head(const struct uct_ha_txlog *tx)
{
    return __atomic_load_n(&tx->log.head, __ATOMIC_RELAXED);
}

static inline uint32_t uct_ha_txlog_tail(const struct uct_ha_txlog *tx)
{
    return __atomic_load_n(&tx->log.tail, __ATOMIC_RELAXED);
}

/* Is something under way that will tell of its end? */
static inline int uct_ha_txlog_is_told(const struct uct_ha_txlog *tx)
{
    return (int32_t)(__atomic_load_n(&tx->log.told, __ATOMIC_RELAXED) - uct_ha_txlog_head(tx)) > 0;
}

/* Where logs that begin short have their first ring. A line more, or those of all logs would meet in the same places of
 * the cache. */
#define UCT_HA_RING_FIRST 64u /* entries; a power of two */
#define UCT_HA_RING_BYTES ((UCT_HA_RING_FIRST + 1) * sizeof(struct uct_ha_txop))

/* 0 or -ENOMEM; `length`: operations that it may take at once, a power of two. With many `others` the ring begins
 * short, in a block of the `slab`, which outlives it: few of them have much under way at a time, and what goes round in
 * little memory stays in the cache. */
int  uct_ha_txlog_open(struct uct_ha_txlog *tx, uint32_t length, uint32_t others, struct uct_ha_slab *slab);
void uct_ha_txlog_close(struct uct_ha_txlog *tx);

/* It is full: twice as long a ring. 0; -ENOSPC: it is as long as it may be; -ENOMEM: it stays as it is. Entries are
 * elsewhere then, at the same indices. */
int uct_ha_txlog_grow(struct uct_ha_txlog *tx);

/* Entry `index` was the program's own fault: this operation ends with an error, the rest goes
 * on. But one without a completion, a buffered message for example, would vanish without a
 * word: then `fatal` is set, for the endpoint to end. */
void uct_ha_txlog_reject(struct uct_ha_txlog *tx, uint32_t index);

/* The proof could not tell about some: those with a completion say so. For the others their
 * endpoint has to, if it is `bound` (`id`: its name for the log line): returns whether there are
 * any; then `fatal` is set. */
int uct_ha_txlog_doubt(struct uct_ha_txlog *tx, int bound, uint32_t id);

/* Buffers of operations on a lane that may not have been drained are not used again: its card may
 * come to them yet. */
void uct_ha_txlog_stain(struct uct_ha_txlog *tx, int slot, uint32_t gen);

#endif
