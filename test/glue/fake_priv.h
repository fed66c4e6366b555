/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAKE_PRIV_H_
#define FAKE_PRIV_H_

/* Inside of the made-up hardware. Everything is guarded by fake.lock. */

#include "fake_verbs.h"
#include "verbs/ha_qp.h"
#include "verbs/ha_rail.h"
#include "verbs/ha_ud.h"

#include <pthread.h>

#define FAKE_SGE_MAX    8
#define FAKE_HOSTS_MAX  8
#define FAKE_INLINE_MAX 256
#define FAKE_PSN_MASK   0xffffffu
#define FAKE_EVENTS_MAX 64
#define FAKE_LATE_NS    4000000ull    /* a late packet has executed by then */
#define FAKE_REST_NS    1000000000ull /* so long the number of a queue pair must not come back */
#define FAKE_LATER_NS   1000000000ull /* ... or, with FAKE_LATE_READS, by then */

/* What kind of card a rail is on, see fake_personality.c. */
struct fake_personality {
    const char       *name;
    enum fake_psn     psn;
    unsigned          forgets;             /* per mille: a queue pair that is destroyed takes its completions along */
    unsigned          sends_first;         /* per mille: of flushes, a send comes before a receive */
    unsigned          command_ms;          /* stopping a queue pair, and asking it, take so long */
    unsigned          late;                /* per mille: a packet executes after modify(ERR) */
    uint32_t          max_inline, max_cqe; /* 0: whatever is asked for */
    enum ha_atomics   atomics;
    enum ha_wc_status port_kills;   /* a send while the own port is down: so, and ERR; HA_WC_OK: it is retried */
    uint8_t           err_event;    /* an event for each queue pair that is in error */
    uint8_t           twice;        /* events of ports come twice */
    uint8_t           late_receive; /* posted in ERR: never flushed */
    unsigned          takes_along;  /* per mille: the shared receive of a message that is cut off never comes back */
    unsigned          says_drained; /* per mille: an event when a queue pair of a shared queue is at rest */
    uint8_t           no_srq;
    uint8_t           mlx5, retry7_forever;
};

extern const struct fake_personality *const fake_plain;

struct ha_rail {
    char                           name[HA_RAIL_NAME_MAX];
    const struct fake_personality *is;
    int                            index, refs;
    unsigned                       net;
    unsigned                       host;
    int                            port_up; /* the truth; `up` is what was last asked */
    int                            up;
    struct ha_rail_addr            addr; /* as last asked; the truth is what follows */
    uint8_t                        gid[16];
    unsigned                       gid_index, mac;
    enum fake_card                 card;
    int                            gone;    /* ... and its owner has heard of it */
    int                            removed; /* the kernel waits for those who have it open */
    int                            held;    /* what of it is open, but for memory */
    uint32_t                       next_ud, last_ud;
    struct ha_rc_path              last_path;
    struct ha_rail_limits          limits;
    struct ha_rail_opts            opts; /* of the first opener */
    unsigned                       knob[FAKE_KNOBS];
    uint64_t                       polls; /* of completion queues */
    int                            event_fd;
    struct ha_rail_event           events[FAKE_EVENTS_MAX];
    unsigned                       num_events;
};

struct ha_mr {
    struct ha_mr   *next;
    struct ha_rail *rail;
    uint64_t        addr, length;
    unsigned        access;
    uint32_t        key; /* even: lkey; + 1: rkey */
};

struct ha_cq {
    struct ha_rail *rail;
    struct ha_wc   *ring;
    unsigned        depth, head, tail;
    unsigned        promised; /* what was posted and not yet polled */
    int             fd, armed;
};

/* What a sender has fixed when it made its queue pair or address handle. */
struct fake_path {
    uint8_t  sgid[16], dgid[16];
    unsigned sgid_index, dmac;
};

struct fake_wqe {
    struct ha_send send;
    struct ha_sge  sge[FAKE_SGE_MAX];
    uint8_t        bytes[FAKE_INLINE_MAX];
    uint64_t       length;
    uint32_t       psn, npsn;
    int            read_done; /* the answer is here; atomics too */
    uint64_t       old;       /* of an atomic: kept by the responder for those who ask again */
};

struct fake_rqe {
    uint64_t      wr_id;
    struct ha_sge sge;
};

struct fake_rq { /* a ring; indices run freely */
    struct fake_rqe *rqe;
    unsigned         depth, head, tail;
    unsigned         not_ready; /* messages that found no receive since one was posted */
};

struct ha_srq {
    struct ha_rail *rail;
    struct fake_rq  rq;
    unsigned        limit;
    int             users;
};

enum fake_rc_state { FAKE_INIT, FAKE_RTS, FAKE_ERR };

struct ha_rc {
    struct ha_rc      *next;
    struct ha_rail    *rail;
    const void        *owner;
    struct ha_cq      *cq;
    struct ha_rc_caps  caps;
    struct ha_rc_path  path;
    struct fake_path   way;
    struct ha_rail    *dest_rail;
    uint32_t           qpn;
    enum fake_rc_state state;

    /* requester: indices run freely */
    struct fake_wqe *sq;
    unsigned         head, send, tail; /* oldest, being sent, next free */
    unsigned         freed;            /* places up to here may be used again */
    uint32_t         send_pkt;         /* of `send`: next packet */
    uint32_t         next_psn;         /* for the next one posted */
    unsigned         retries, rnr_retries;
    uint64_t         retry_at; /* something was lost: try again then */
    uint64_t         rnr_until;

    /* responder */
    struct fake_rq  rq; /* its own, empty when it shares one */
    struct ha_srq  *srq;
    struct fake_rqe taken; /* of those that are shared, for the message under way */
    int             has_taken, at_rest;
    uint32_t        expected_psn;
    uint64_t        offset; /* in the message or write under way */

    /* ERR */
    int      late, deaf; /* one more packet; acknowledgements are lost */
    unsigned late_reads; /* ... not before so many reads of the packet number */
    uint64_t err_at;     /* of one that was connected */
    uint64_t flush_at;
};

struct fake_datagram {
    struct fake_datagram *next;
    struct ha_rail       *from, *to;
    struct fake_path      way;
    uint32_t              qpn;
    size_t                length;
    uint64_t              due;
    uint8_t               data[];
};

struct ha_ud_ah {
    struct ha_rail  *rail;
    struct fake_path way;
};

struct ha_ud {
    struct ha_ud         *next;
    struct ha_rail       *rail;
    uint32_t              qpn;
    unsigned              depth, max_len, received;
    int                   fd, armed, dead;
    struct fake_datagram *queue, **queue_tail;
};

struct fake {
    pthread_mutex_t       lock;
    pthread_cond_t        wake;
    pthread_t             thread;
    int                   running, stopping, idle;
    uint64_t              random;
    struct ha_rail        rail[FAKE_RAILS_MAX];
    int                   num_rails;
    struct ha_mr         *mrs;
    struct ha_rc         *rcs;
    struct ha_ud         *uds;
    struct fake_datagram *wire;
    uint32_t              next_key, next_qpn;
    uint32_t              max_cqe;
    int                   live; /* objects of the product */
    int                   ahs;  /* address handles, of them */
    size_t                cq_bytes;
    struct fake_counts    counts;
    const struct ha_rail *switching[FAKE_HOSTS_MAX]; /* the rail that a host has fenced last */
    struct {
        int      rail, error;
        unsigned count;
    } fail[FAKE_CALL_LAST];
    struct {
        int      rail;
        unsigned ms, count, hung;
        int      now;
    } hang[FAKE_CALL_LAST];
    int (*forbidden)(void);
    uint64_t broken_addr; /* of the WRITEs that fail, and how many more */
    unsigned broken;
    void (*on_write)(void *arg, uint64_t addr, uint64_t length);
    void *on_write_arg;
    void (*on_datagram)(const void *data, size_t length);
};

extern struct fake fake;

uint64_t fake_now(void);
uint32_t fake_draw(uint32_t below);
int      fake_luck(unsigned per_mille); /* 1 with this probability */

void fake_push_event(struct ha_rail *rail, enum ha_rail_event_kind kind);
void fake_push_qp_event(const struct ha_rc *rc, enum ha_rail_event_kind kind);

/* A device command begins: is it allowed here, does it hang? Without fake.lock. */
void fake_command(enum fake_call call, const struct ha_rail *rail);
void fake_async_thread(void); /* ... is this one */

/* The error that this call has to answer with, or 0. */
int fake_refuses(enum fake_call call, const struct ha_rail *rail);

struct ha_rail *fake_rail_of_gid(const uint8_t *gid);
int             fake_reachable(const struct ha_rail *from, const struct ha_rail *to);

/* The way as it is now, and whether one that was fixed earlier still leads there. */
struct fake_path fake_path(const struct ha_rail *from, const uint8_t *dgid);
int              fake_path_leads(const struct ha_rail *from, const struct ha_rail *to, const struct fake_path *way);

/* Memory behind a key, or NULL when key, bounds or access are wrong. */
void *fake_local(const struct ha_rail *rail, uint64_t addr, uint64_t length, uint32_t lkey);
void *fake_remote(const struct ha_rail *rail, uint64_t addr, uint64_t length, uint32_t rkey, unsigned access);

void fake_cq_push(struct ha_cq *cq, const struct ha_wc *wc);
void fake_fd_raise(int fd);
void fake_fd_lower(int fd);

/* A flush completion that is lost: it was promised, and never comes. */
void fake_cq_lose(struct ha_cq *cq);

/* A send of this queue pair fails at once: its own port is down. */
int fake_port_kills(const struct ha_rc *rc);

/* Something to do has come up. */
void fake_kick(void);

/* a - b on the circle of packet numbers */
static inline int32_t fake_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* The peer's device takes packet number `pkt` of an operation; what the sender hears at once. */
enum fake_answer { FAKE_ANSWER_NONE, FAKE_ANSWER_RNR, FAKE_ANSWER_GAP, FAKE_ANSWER_REFUSED, FAKE_ANSWER_BROKEN };
enum fake_answer fake_respond(struct ha_rc *rc, struct ha_rc *peer, struct fake_wqe *wqe, uint32_t pkt);

/* Does the operation bring something back; does what the peer sends back arrive now? */
int fake_has_answer(const struct fake_wqe *wqe);
int fake_ack_arrives(const struct ha_rc *rc, const struct ha_rc *peer);

void fake_complete_recv(struct ha_rc *rc, enum ha_wc_status status, uint32_t length, uint32_t imm);

/* The receive for the message under way, or NULL: there is none. */
struct fake_rqe *fake_rqe_of(struct ha_rc *rc);

/* A queue pair that shares its receives is stopped, and takes none any more. */
void fake_srq_leave(struct ha_rc *rc);

/* What completes sometime: is there room, should it be now? */
void fake_promise(struct ha_cq *cq);

/* The queue pair goes to ERR; it flushes with the next steps. */
void fake_rc_to_err(struct ha_rc *rc);

/* Somebody has asked a queue pair that is in ERR how far it is. */
void fake_rc_was_read(struct ha_rc *rc);

/* Move the network; returns 1 when something moved or will by itself. */
int  fake_rc_step(void);
int  fake_ud_step(void);
void fake_step(void);

#endif
