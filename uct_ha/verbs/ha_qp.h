/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_QP_H_
#define HA_QP_H_

/*
 * Completion queues and RC queue pairs of a rail, behind the door.
 *
 * Threads: one thread at a time posts to a queue pair and polls a completion
 * queue (the owner: progress). ha_rc_fence() and the PSN reads may be
 * called from another thread meanwhile. ha_rc_connect() may block for a second
 * while the network layer resolves the neighbour: never call it from progress or
 * from the thread that answers heartbeats.
 *
 * Errors are negative errno values.
 */

#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>

#include "ha_rail.h"

struct ha_cq;
struct ha_rc;
struct ha_srq;

/* Completion status, reduced to what the failover needs to tell apart. */
enum ha_wc_status {
    HA_WC_OK,
    HA_WC_FLUSHED,   /* the queue pair is in ERR */
    HA_WC_DEAD,      /* retries exhausted, time-out, fatal: blame the rail */
    HA_WC_NOT_READY, /* receiver-not-ready retries exhausted: flow, not rail */
    HA_WC_OP_FAILED, /* a card could not do it: its fault, or the operation's */
    HA_WC_PROGRAM,   /* protection, access, length, invalid request: the program's fault */
};

struct ha_wc { /* layout of the device's own completion, which is made into one in its place */
    uint64_t wr_id;
    uint32_t status; /* enum ha_wc_status */
    uint32_t raw;    /* of a failure: the device's own status, for messages */
    uint32_t vendor;
    uint32_t byte_len; /* receives only; valid with HA_WC_OK */
    uint32_t imm;      /* host order; receives with HA_WC_OK */
    uint32_t qpn;
    uint32_t src_qpn; /* UD receives */
    uint32_t unused[3];
};

struct ha_sge { /* layout of the device's own element */
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Two words with one store. Who reads both at once right afterwards, as a driver does that copies, gets them from
 * there; of two stores he would wait until everything that was stored before has reached the cache, and lines of the
 * cache that came from far away. */
typedef uint64_t ha_words __attribute__((vector_size(16), aligned(8), may_alias));

static inline void ha_words_store(void *to, uint64_t first, uint64_t second)
{
    *(ha_words *)to = (ha_words){first, second};
}

static inline void ha_sge_set(struct ha_sge *sge, uint64_t addr, uint32_t length, uint32_t lkey)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    ha_words_store(sge, addr, (uint64_t)lkey << 32 | length);
#else
    ha_words_store(sge, addr, (uint64_t)length << 32 | lkey);
#endif
}

struct ha_recv { /* layout of the device's own request; may be kept and posted again */
    uint64_t        wr_id;
    struct ha_recv *next; /* NULL: the last one */
    struct ha_sge  *sge;
    int             num_sge;
};

enum ha_send_op { /* the device's own numbers */
                  HA_WRITE        = 0,
                  HA_WRITE_IMM    = 1,
                  HA_SEND_IMM     = 3,
                  HA_READ         = 4,
                  HA_COMPARE_SWAP = 5,
                  HA_FETCH_ADD    = 6, /* both: 8 bytes, executed by the peer's card; the old value
                                        * comes to the gather list, in host order */
};

/* Does it carry immediate data, and consume a receive of the peer? */
static inline int ha_send_op_has_imm(unsigned op)
{
    return (op & ~2u) == HA_WRITE_IMM;
}

static inline int ha_send_op_is_atomic(unsigned op)
{
    return op >= HA_COMPARE_SWAP;
}

/* The device's own bits, but for SILENT, which is its own turned round. */
#define HA_SEND_FENCE  0x1u
#define HA_SEND_TELL   0x2u /* success makes a completion; without it that of a later one says so */
#define HA_SEND_INLINE 0x8u /* bytes are copied by the post: no lkey needed */

struct ha_send { /* layout of the device's own request, which it is made into in its place */
    uint64_t       wr_id;
    void          *next; /* NULL */
    struct ha_sge *sge;
    int            num_sge;
    uint32_t       op; /* enum ha_send_op */
    uint32_t       flags;
    uint32_t       imm; /* ha_imm() of it */
    uint64_t       remote_addr;
    union {
        uint32_t rkey;
        struct {
            uint64_t compare_add, swap;
            uint32_t rkey;
        } atomic;
    };
    uint64_t unused[7];
};

/* `depth`: completions it must hold. `with_fd`: events can be asked for.
 * A queue that overruns is lost, so the owner counts; ha_cq_resize() grows it
 * while in use, from any thread. */
int  ha_cq_create(struct ha_rail *rail, unsigned depth, int with_fd, struct ha_cq **cq_p);
void ha_cq_destroy(struct ha_cq *cq);
int  ha_cq_resize(struct ha_cq *cq, unsigned depth);

/* At most `max` completions; the number, or an error. */
int ha_cq_poll(struct ha_cq *cq, struct ha_wc *wc, int max);

/* Readable after ha_cq_arm() when a completion came. Always arm, then poll
 * once more before sleeping: one that came before arming does not signal. */
int ha_cq_fd(const struct ha_cq *cq);
int ha_cq_arm(struct ha_cq *cq);
int ha_cq_drain_fd(struct ha_cq *cq); /* take pending events off the fd; how many. By who arms it */

struct ha_rc_caps {
    unsigned send_depth, recv_depth, max_sge, max_inline; /* asked → got */
};

struct ha_rc_path {
    struct ha_rail_addr remote;
    uint32_t            qpn;         /* the peer's */
    uint32_t            recv_psn;    /* first the peer sends */
    uint32_t            send_psn;    /* first we send */
    unsigned            mtu;         /* bytes */
    unsigned            timeout;     /* exponent: 4.096 us * 2^timeout */
    unsigned            retry_count; /* 0..7 */
    unsigned            rnr_retry;   /* 0..7, 7 = for ever */
    unsigned            min_rnr_timer;
    unsigned            rd_init; /* READs and atomics that we may have under way */
    unsigned            rd_resp; /* ... that the peer may have, and we answer */
    unsigned            sl, traffic_class;
};

/* Created in INIT, remote write/read/atomic allowed; receives may be posted: to it, or to the queue that it shares
 * with others (`srq`, of the same rail; NULL: it has one of its own). `owner` is only handed back, in its events. */
int ha_rc_create(struct ha_rail *rail, struct ha_cq *cq, struct ha_srq *srq, const void *owner, struct ha_rc_caps *caps,
                 struct ha_rc **rc_p);
int ha_rc_connect(struct ha_rc *rc, const struct ha_rc_path *path);

/* To ERR. 0: the device has stopped it, which is not yet the fence (a packet may still
 * be executing, see docs/failover.md). An error: it may run on; ask again. */
int  ha_rc_fence(struct ha_rc *rc);
void ha_rc_destroy(struct ha_rc *rc);

uint32_t ha_rc_qpn(const struct ha_rc *rc);

/* The responder's expected PSN as the device reports it now. */
int ha_rc_expected_psn(struct ha_rc *rc, uint32_t *psn);

/* ... of one that the device says is in ERR; -EBUSY when it says otherwise: the number
 * may still move, whatever it is now. */
int ha_rc_final_psn(struct ha_rc *rc, uint32_t *psn);

/* Immediate data as it goes over the wire, and back. */
static inline uint32_t ha_imm(uint32_t imm)
{
    return htonl(imm);
}

/* Post one send, whose description is used up by that. 0, or what the driver says, of which ha_rc_error() makes
 * -ENOMEM when the queue is full, or another error. Posting to a queue pair in ERR is allowed: it comes back
 * flushed. */
int ha_rc_post_send(struct ha_rc *rc, struct ha_send *send);

/* Drivers return errno values, most of them positive ones. */
static inline int ha_rc_error(int status)
{
    return status > 0 ? -status : status;
}

/* A chain of receives by one doorbell. 0 or an error: then some of them may be posted. */
int ha_rc_post_recv(struct ha_rc *rc, struct ha_recv *first);

/* A receive queue that queue pairs share, of so many receives, one piece each; -ENOTSUP where the device has none. A
 * queue pair that is stopped does not flush it: HA_RAIL_EVENT_QP_DRAINED says that it takes no more, where the device
 * tells. Destroyed after the queue pairs. */
int  ha_srq_create(struct ha_rail *rail, unsigned depth, struct ha_srq **srq_p);
void ha_srq_destroy(struct ha_srq *srq);

/* A chain by one doorbell, from any thread. Returns what was not posted: NULL, or the rest of it, when
 * the queue is full or the device refuses. */
struct ha_recv *ha_srq_post(struct ha_srq *srq, struct ha_recv *first);

/* HA_RAIL_EVENT_SRQ_LOW once when fewer than so many receives are left; 0 or an error. A device command. */
int ha_srq_watch(struct ha_srq *srq, unsigned limit);

const char *ha_wc_raw_name(uint32_t raw);

#endif
