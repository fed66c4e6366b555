/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TXLOG_H_
#define UCT_HA_TXLOG_H_

/*
 * The operations of a connection that are under way: the core's log, and beside each entry what
 * is needed to post it, and to post it again on another rail.
 *
 * Progress alone writes it: the data part all the time, the failover's driver when it resolves a
 * lane (in progress, too). Others read only what is atomic.
 */

#include "core/ha_log.h"
#include "core/ha_pair.h"
#include "lane/desc.h"
#include "mem/reg.h"
#include "verbs/ha_qp.h"

/* Largest number of pieces of one operation, a header included. */
#define UCT_HA_IOV_MAX    8
#define UCT_HA_INLINE_MAX 128

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
static inline void uct_ha_piece_set(struct uct_ha_piece *piece, const void *addr, size_t length, struct uct_ha_mem *mem,
                                    const unsigned *rail_no)
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

/* Parallel to the log's ring. */
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
    union {
        struct uct_ha_piece piece[UCT_HA_IOV_MAX];
        uint8_t             bytes[UCT_HA_INLINE_MAX];
        struct {
            struct uct_ha_piece result; /* piece[0] */
            uint64_t            compare_add, swap;
        } atomic;
    };
};

/* The operation sends `length` bytes of the buffer, or receives them there, and
 * holds it until its end. */
static inline void uct_ha_txop_use(struct uct_ha_txop *txop, struct uct_ha_desc *desc, size_t length,
                                   const unsigned *rail_no)
{
    txop->desc   = desc;
    txop->pieces = 1;
    uct_ha_piece_set(&txop->piece[0], desc->data, length, desc->mem, rail_no);
}

#define UCT_HA_LONG_OP (8u << 20) /* bytes; shorter ones end well within any RTO */

struct uct_ha_txlog {
    struct ha_log       log; /* head, tail and told are atomic */
    struct uct_ha_txop *ops;
    uint16_t            sent;  /* messages appended so far */
    uint8_t             awake; /* atomic: the timer looks at the connection, see pair/awake.h */
    uint8_t             dead;  /* atomic: no more work, the connection has ended */
    uint8_t             fatal; /* enum ha_fail: an operation has gone wrong that had no
                                * completion to report by */
    uint32_t longest;          /* atomic: bytes of the longest operation since the log was empty, when that
                                * is more than UCT_HA_LONG_OP: progress writes, a check resets */
    struct ha_wc rejected;     /* for UCT_HA_TODO_REJECT */
};

static inline struct uct_ha_txop *uct_ha_txlog_op(const struct uct_ha_txlog *tx, uint32_t index)
{
    return &tx->ops[index & tx->log.mask];
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

/* 0 or -ENOMEM; `length`: operations that it can take at once, a power of two. */
int  uct_ha_txlog_open(struct uct_ha_txlog *tx, uint32_t length);
void uct_ha_txlog_close(struct uct_ha_txlog *tx);

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
