/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_CARD_H_
#define SC_CARD_H_

/*
 * The card inside of one process.
 *
 * One lock guards everything. A packet for a queue pair of the same process is executed where it is
 * sent; one for another process goes through a ring in its inbox, and is executed by whoever polls
 * a completion queue there, or else by that process's thread, which sleeps until somebody rings.
 */

#pragma GCC visibility push(default) /* what is declared there is what we are there for */
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#include <pthread.h>
#include <stdint.h>

#include "sc_fabric.h"
#include "sc_lock.h"
#include "sc_personality.h"
#include "sc_wire.h"

/* The header hides these behind macros. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SC_QP_MAX  65536
#define SC_MR_MAX  65536
#define SC_SGE_MAX 16
#define SC_RD_MAX  16
#define SC_CQE_MAX 4194303
#define SC_ANSWERS 64 /* a power of two */

struct sc_device {
    struct ibv_device            base;
    char                         nothing[512]; /* libraries look behind an ibv_device: they find zeros */
    unsigned                     index;
    const struct sc_personality *kind;
};

struct sc_context {
    struct sc_context   *next;
    struct sc_device    *device;
    int                  events_in; /* write end of async_fd */
    struct verbs_context base;      /* last: it ends with the ibv_context */
};

struct sc_mr {
    struct ibv_mr base;
    uint64_t      iova;
    unsigned      access;
};

struct sc_cq {
    struct ibv_cq  base;
    struct ibv_wc *ring;
    unsigned      *frees; /* beside each: where the send queue is free from, when it is polled */
    unsigned       size;  /* a power of two */
    unsigned       head, tail;
    int            armed, solicited_only, overrun;
    unsigned       events_read;
    unsigned       told; /* asynchronous events that were read, see sc_event_settle() */
};

struct sc_channel {
    struct ibv_comp_channel base;
    int                     in; /* write end */
};

struct sc_rqe {
    uint64_t        wr_id;
    unsigned        num_sge;
    struct ibv_sge *sge; /* in the ring: behind it */
};

struct sc_rq {
    uint8_t *ring;
    unsigned stride; /* bytes from one to the next */
    unsigned size, depth, max_sge;
    unsigned head, tail;
};

struct sc_srq {
    struct ibv_srq base;
    struct sc_rq   rq;
    unsigned       limit;
    unsigned       told;
};

struct sc_sqe {
    uint64_t       wr_id, raddr, operand, swap, length;
    uint32_t       rkey, imm, psn, packets;
    uint8_t        op, imm_given, send_flags, num_sge;
    uint8_t        finished; /* READ and atomic: the answer is here */
    uint8_t        status;   /* enum ibv_wc_status, found out before it was sent */
    uint8_t        wc_opcode;
    uint8_t        inlined; /* its bytes are where its pieces would be: as cards have it, and as near */
    struct ibv_sge sge[];
};

_Static_assert(sizeof(struct sc_sqe) == 64, "a line of its own, and one for pieces or bytes");

/* What the responder still has to say, oldest first. */
struct sc_answer {
    uint8_t  op, syndrome;
    uint32_t psn, packets, sent, rkey;
    uint64_t raddr, length, value;
};

struct sc_atomic_done {
    uint32_t psn;
    uint64_t value;
};

struct sc_said {
    struct sc_atomic_done atomic[2 * SC_RD_MAX];
    struct sc_answer      answer[SC_ANSWERS]; /* the first one last */
};

/* What each message needs comes first and side by side: of thousands of queue pairs the cache holds little else. For
 * the same reason, of pages, one piece of memory has what was said, the queue pair and its send queue: first answer and
 * first request lie beside it. Queues are not cleared, so what was never used is no memory. */
struct sc_qp {
    union {
        struct ibv_qp    base;
        struct ibv_qp_ex ex;
    };
    const struct sc_personality *kind;
    unsigned                     told;
    enum ibv_qp_state            state; /* base.state is what the program was told last, as libibverbs keeps it */
    unsigned                     sport, dport, mtu;

    /* requester: indices run freely */
    uint8_t      *sq;
    unsigned      sq_stride, sq_size, sq_depth, sq_head, sq_next, sq_tail;
    unsigned      sq_base;           /* see sc_slot() */
    unsigned      sq_polled;         /* slots before it are free: a completion said so */
    uint32_t      next_packet;       /* of sq_next */
    uint32_t      post_psn, una_psn; /* next one posted; oldest without acknowledgement */
    unsigned      reads;             /* sent, without their answer */
    unsigned      retries, retries_left, rnr_left;
    uint64_t      progress, progress_seen, since, rnr_until;
    struct sc_qp *busy_next; /* list of those whose time runs */
    uint8_t       busy, pumping, blocked, answering;
    uint8_t       gap_seen; /* answers are missing, and were asked for again */

    /* responder */
    uint8_t         nak_sent, in_message, ack_due, have_rqe;
    uint32_t        epsn;
    struct sc_qp   *ack_next;
    struct sc_rq   *rqp;
    struct sc_said *said;
    unsigned        answer_head, answer_tail; /* anew from 0 when all is said */
    unsigned        atomic_next;
    uint64_t        offset;
    struct sc_rqe   rqe; /* taken by the SEND under way */
    struct ibv_sge  rqe_sge[SC_SGE_MAX];

    struct ibv_qp_attr      attr;
    struct ibv_qp_init_attr init;
    struct sc_rq            rq;
    struct sc_wr_builder   *builder; /* extended posting */
};

struct sc_peer {
    struct sc_inbox *inbox;
    uint32_t         life;
    uint64_t         head_seen;
};

/* A packet that a rule holds back. */
struct sc_late {
    struct sc_late  *next;
    uint64_t         due;
    struct sc_packet packet;
    uint8_t          payload[];
};

struct sc_card {
    uint32_t           lock;
    int                place; /* in the fabric; -1: not yet a member */
    unsigned           host;
    struct sc_fabric  *fabric;
    struct sc_member  *me;
    struct sc_inbox   *inbox;
    struct sc_peer     peer[SC_PROCS_MAX];
    struct sc_context *contexts;
    struct sc_qp      *qp[SC_QP_MAX];
    struct sc_mr      *mr[SC_MR_MAX];
    struct sc_qp      *busy, *ack_list;
    uint64_t           tick_at;         /* not before */
    struct sc_late    *late;            /* the one due first comes first */
    unsigned           blocked;         /* queue pairs that wait for room in a ring */
    uint32_t           ticking;         /* the thread looks at the time anyway */
    uint64_t           polls;           /* of queues that were empty: somebody looks himself */
    uint64_t           polls_of_use;    /* what they were when something was found */
    uint64_t           look_at;         /* not before; 0: at any time */
    uint64_t           packets_at_post; /* what had come when something was sent last */
    uint32_t           epoch, trouble[SC_DEVICES_MAX * SC_PORTS_MAX]; /* told so far */
    int                stop, has_thread;
    uint64_t           linger_ns; /* how long the thread waits for more before it sleeps */
    pthread_t          thread;
    pid_t              pid;
};

extern struct sc_card sc;

/* What the card has done, for benchmarks: read by dlsym. */
struct sc_counts {
    uint64_t sends, signaled, recvs, recv_doorbells, send_doorbells, polls, completions, packets;
};
extern struct sc_counts softcard_counts;

/* One more or less of them, for `softcard status`. */
static inline void sc_count(enum sc_object kind, int more)
{
    __atomic_fetch_add(&sc.me->objects[kind], (uint32_t)more, __ATOMIC_RELAXED);
}

/* sc_device.c */
struct sc_context *sc_context_of(struct ibv_context *context);
unsigned           sc_context_port(const struct sc_context *context, unsigned port);

/* sc_nic.c */
int      sc_nic_start(void);
void     sc_nic_look(void);   /* take what arrived; lock held */
void     sc_nic_poll(void);   /* the same from a queue that was empty; lock not held */
void     sc_nic_sleepy(void); /* somebody is about to sleep on a descriptor */
void     sc_nic_busy(struct sc_qp *qp);
void     sc_nic_mind_time(void); /* something waits for a moment */
uint64_t sc_now(void);           /* ns */

void sc_nic_tick(uint64_t now); /* lock held */

/* sc_net.c: 1 sent (or lost), 0 no room now: `from` is blocked, and will be pumped again. */
int  sc_net_send(struct sc_qp *from, struct sc_packet *packet, const void *payload);
void sc_net_drain(void);
void sc_net_send_late(uint64_t now); /* those that were held back until now */
void sc_net_unblock(struct sc_qp *qp);

/* sc_fault.c: what befalls a packet at its sender. */
enum sc_fate { SC_FATE_PASS, SC_FATE_LOST, SC_FATE_TWICE, SC_FATE_LATE };
enum sc_fate sc_fault_of(struct sc_qp *from, const struct sc_packet *packet, uint64_t *delay_ns);
int          sc_fault_cut(const struct sc_packet *packet); /* by the state of its ports now */

/* ... and a call: 0, or the error that it must end with. May take its time. */
int               sc_fault_slow(enum sc_verb verb);
static inline int sc_fault_verb(enum sc_verb verb)
{
    return __atomic_load_n(&sc.fabric->bad_verbs, __ATOMIC_RELAXED) ? sc_fault_slow(verb) : 0;
}

/* sc_memory.c: NULL when the key does not allow it. */
void *sc_memory_local(const struct ibv_pd *pd, uint32_t lkey, uint64_t addr, uint64_t length, unsigned access);
void *sc_memory_remote(const struct ibv_pd *pd, uint32_t rkey, uint64_t addr, uint64_t length, unsigned access);

/* sc_cq.c */
struct ibv_wc *sc_cq_next(struct sc_cq *cq);
void           sc_cq_push(struct sc_cq *cq, int notify);
void           sc_cq_push_send(struct sc_cq *cq, int notify, unsigned sq_index);
void           sc_cq_forget(struct sc_cq *cq, uint32_t qpn);
int            sc_cq_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int            sc_cq_notify(struct ibv_cq *cq, int solicited_only);

/* sc_event.c */
void sc_event_raise(struct ibv_context *context, const struct ibv_async_event *event);
void sc_event_port(unsigned place, enum ibv_event_type type);
void sc_event_forget(struct ibv_context *context, const void *object);

/* Behind that: wait until all events that were read of it are acknowledged, as libibverbs does. Not under a lock. */
void sc_event_settle(pthread_mutex_t *mutex, pthread_cond_t *cond, const unsigned *told, const uint32_t *acked);
int  sc_pipe(int *out, int *in);
void sc_pipe_filter(int out, int in, size_t size, int (*keep)(const void *record, const void *arg), const void *arg);

/* sc_rq.c */
int  sc_rq_init(struct sc_rq *rq, unsigned depth, unsigned max_sge);
void sc_rq_free(struct sc_rq *rq);
int  sc_rq_take(struct sc_qp *qp);
int  sc_rq_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int  sc_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* sc_qp.c */
static inline struct sc_qp *sc_qp_find(uint32_t qpn)
{
    return sc.qp[qpn % SC_QP_MAX];
}
void           sc_qp_error(struct sc_qp *qp); /* to ERR, flush */
void           sc_qp_event(struct sc_qp *qp, enum ibv_event_type type);
void           sc_qp_flush(struct sc_qp *qp);
struct ibv_qp *sc_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *sc_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* sc_post.c */
int  sc_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void sc_post_ring(struct sc_qp *qp);
int  sc_post_one(struct sc_qp *qp, const struct ibv_send_wr *wr);

/* sc_requester.c */
void     sc_requester_pump(struct sc_qp *qp);
void     sc_requester_answer(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload);
void     sc_requester_tick(struct sc_qp *qp, uint64_t now);
unsigned sc_requester_retries(const struct sc_qp *qp);
int      sc_requester_idle(const struct sc_qp *qp);

/* sc_responder.c */
void sc_responder_request(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload);
void sc_responder_acks(void);
void sc_responder_pump(struct sc_qp *qp);

/* sc_ud.c */
int      sc_ud_send(struct sc_qp *qp, const struct ibv_send_wr *wr);
void     sc_ud_receive(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload);
unsigned sc_av_port(const struct ibv_ah_attr *attr);

/* sc_wr.c */
int  sc_wr_init(struct sc_qp *qp);
void sc_wr_free(struct sc_qp *qp);

/* Where a request is kept: from the beginning of the memory on whenever the queue was empty, so that of a queue pair
 * with little to do only little has to be in the cache. */
static inline unsigned sc_slot(const struct sc_qp *qp, unsigned index)
{
    return (index - qp->sq_base) & (qp->sq_size - 1);
}

static inline struct sc_sqe *sc_sqe_at(const struct sc_qp *qp, unsigned index)
{
    return (struct sc_sqe *)(void *)(qp->sq + (size_t)sc_slot(qp, index) * qp->sq_stride);
}

static inline struct sc_rqe *sc_rqe_at(const struct sc_rq *rq, unsigned index)
{
    return (struct sc_rqe *)(void *)(rq->ring + (size_t)(index & (rq->size - 1)) * rq->stride);
}

static inline unsigned sc_pow2(unsigned n)
{
    unsigned p = 1;

    while (p < n) {
        p <<= 1;
    }
    return p;
}

/* Copy out of or into a scatter list: number of bytes that found a place, or -1 (a wrong key). */
int64_t sc_scatter(struct ibv_pd *pd, const struct ibv_sge *sge, unsigned num, uint64_t offset, const uint8_t *from,
                   uint64_t length);
int     sc_gather(struct ibv_pd *pd, const struct ibv_sge *sge, unsigned num, uint64_t offset, uint8_t *to,
                  uint64_t length);

#endif
