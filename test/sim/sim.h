/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_H_
#define SIM_H_

/*
 * A world for the product's own failover core: hosts with a port on each rail,
 * endpoint pairs between them, queue pairs, control datagrams, users, and bad
 * luck, all from one seed and in virtual time. One step is one small thing that
 * happens somewhere; which one is drawn. Pairs share rails, so that one fault
 * strikes many. After every step the oracle, which knows the truth about every
 * operation, checks the invariants of docs/failover.md.
 *
 *   sim_world.c   draws what happens next, until all have finished
 *   sim_make.c    hosts, rails, pairs, their users and the plot
 *   sim_fate.c    faults: by the clock, in ambush, and the end of a host
 *   sim_rail.c    what works between two hosts, and what does not
 *   sim_data.c    queue pairs and packets of the data plane
 *   sim_wire.c    control datagrams
 *   sim_side.c    the glue of one side: actions of the core, control context
 *   sim_work.c    the glue of one side: what progress does
 *   sim_user.c    the user of one side: operations, flush, the end
 *   sim_oracle.c  the truth, and the invariants
 *   sim_cover.c   what has been seen
 *   sim_report.c  the story of a schedule that failed
 *   sim_main.c    command line, many schedules on many processes
 */

#include <stdint.h>

#include "core/ha_damp.h"
#include "core/ha_log.h"
#include "core/ha_packet.h"
#include "core/ha_pair.h"

#include "sim_cover.h"

#define SIM_OPS_MAX    96
#define SIM_LOG_SIZE   16
#define SIM_LOG_FIRST  2                  /* it grows */
#define SIM_TELL_EVERY (SIM_LOG_SIZE / 4) /* of the operations that may be silent */
#define SIM_WQES_MAX   (2 * SIM_OPS_MAX)  /* operations and tails */
#define SIM_TAIL       UINT32_MAX         /* in the place of an operation's number */
#define SIM_EPOCHS_MAX 512
#define SIM_NET_MAX    12
#define SIM_OLD_MAX    48
#define SIM_RAILS_MAX  4
#define SIM_HOSTS_MAX  6
#define SIM_PAIRS_MAX  32 /* 16 at first, and as many anew after a restart */

#define SIM_US    1000ull
#define SIM_MS    1000000ull
#define SIM_S     1000000000ull
#define SIM_NEVER UINT64_MAX

enum sim_qp_state {
    SIM_QP_NONE,
    SIM_QP_INIT,
    SIM_QP_UP,
    SIM_QP_BROKEN, /* retries exhausted: in error by itself */
    SIM_QP_ERRING, /* modify(ERR) returned; packets may still execute */
    SIM_QP_ERR,    /* truly stopped */
};

/* One posted work request. Positions count packets from 0, without wrap. */
struct sim_wqe {
    uint32_t op, index; /* operation of the user; entry of the log */
    uint32_t pos, npsn;
    uint8_t  kind;
    uint8_t  receives; /* consumes a receive */
    uint8_t  mark;     /* its last packet is its mark in the ledger */
    uint8_t  silent;   /* its success makes no completion */
};

struct sim_qp {
    uint8_t  state;
    uint8_t  created_untold, job, fence_asked, settled_told, drained_told, error_cqe;
    uint8_t  resolve_untold, close_asked;
    uint8_t  refused; /* the error completion is about a request that was wrong */
    uint32_t gen, psn, mtu;
    /* requester */
    struct sim_wqe wqe[SIM_WQES_MAX];
    uint32_t       num_wqe, posted, wired;
    uint32_t       acked, polled; /* work requests */
    uint64_t       progress_at;   /* latest acknowledgement, or first posting after it */
    uint64_t       suspected_at;
    /* responder */
    uint32_t rx, rx_wqe;  /* packets and work requests executed here */
    uint32_t marks;       /* of these packets, in the ledger */
    uint64_t ledger_addr; /* where the peer leaves them */
    uint32_t ledger_key;
    uint32_t msg[SIM_OPS_MAX];
    uint32_t num_msg, visible, taken, delivered;
    uint32_t close_k, resolved_k;
    uint8_t  gone;  /* its card is: it does not stop, and says nothing */
    uint8_t  mute;  /* ... or it stops, and that is all */
    uint8_t  final; /* what it took is declared: no more is taken from it */
};

struct sim_op {
    uint64_t length;
    uint8_t  kind, fence, wrong; /* wrong: the peer will refuse it */
    uint8_t  quiet;              /* its user does not wait for it */
    uint8_t  submitted, executed, has_data, ended, result, delivered;
    uint8_t  unknown; /* given up as in doubt, or without its answer */
    uint8_t  undead;  /* executed by a card that nobody could stop */
    uint8_t  refused; /* the peer has refused it */
    int8_t   slot;    /* latest posting, -1 = never */
    uint32_t gen;
};

struct sim_side {
    struct ha_pair pair;
    struct ha_log  log;
    struct ha_op   log_ops[2][SIM_LOG_SIZE]; /* one of them, the other when it has grown */
    uint32_t       op_of[SIM_LOG_SIZE];      /* operation behind a log entry */
    struct sim_qp  qp[HA_SLOTS];
    uint64_t       cookie; /* of the process it lives in */
    uint32_t       ep;     /* its index there */
    uint8_t        host;
    uint8_t        port_told[HA_SLOTS]; /* down, as it was told */
    uint8_t        proof[HA_SLOTS];     /* what its device on that rail can prove by */
    uint8_t        counted;             /* it may prove by count: WRITEs to it consume receives */
    struct ha_damp damp[HA_SLOTS];
    uint64_t       born[HA_SLOTS], hold[HA_SLOTS]; /* of the queue pair; to be told, 0 = nothing */
    uint8_t        dead, closed, gone, failed, send_wanted, send_asks, lost_told;
    int            send_slot, heard_slot;
    int            tx_slot, rx_slot; /* as the glue caches them */
    uint64_t       rests_until[2];   /* by context: the core has nothing to do before, unless it hears something */
    uint64_t       busy_until;       /* the program computes: no progress */
    uint32_t       busy_epoch;
    uint64_t       patience;  /* the timer is served this late */
    uint64_t       told;      /* number of the latest packet */
    uint8_t        cold;      /* builds no standby before it is needed */
    uint32_t       slow_left; /* times that it leaves a rail for being slow */
    uint64_t       moved_at;  /* the log's head moved then, or there was nothing to wait for */
    uint64_t       silent_at; /* something is posted, and nothing will tell, since then */
    /* a flush under way: it ends when the log has come to `flush_index` */
    uint8_t  flushing;
    uint32_t flush_index, flush_ops, flush_epoch;
    /* the truth about its operations */
    struct sim_op op[SIM_OPS_MAX];
    uint32_t      num_ops, submitted, ended;
    uint32_t      next_executed;   /* first operation other than READ not executed */
    uint32_t      fenced_executed; /* 1 + highest fenced operation executed */
    uint32_t      next_delivered;  /* first SEND not delivered at the peer */
    uint64_t      rank[HA_SLOTS];
    uint32_t      epoch;
};

/* A host's port on a rail, and what is wrong with it. */
struct sim_port {
    uint8_t  down;              /* and its host is told */
    uint8_t  out_lost, in_lost; /* silently, in this direction */
    uint8_t  acks_lost;         /* only acknowledgements towards this host */
    uint8_t  ctl_lost;          /* percent of the control datagrams that leave here */
    uint8_t  slow;              /* it works, but takes many times as long */
    uint8_t  fatal;             /* the card was reset, and its host is told */
    uint64_t heal_at;           /* 0 = healthy */
    uint64_t hurt_at;
};

struct sim_packet {
    uint8_t  to, slot;
    uint16_t length;
    uint32_t number; /* order of sending */
    uint64_t at;     /* it does not arrive before */
    uint8_t  bytes[HA_PACKET_HEADER_LEN + HA_PACKET_RECORD_LEN + HA_SEAL_LEN];
};

struct sim_world;

/* Two endpoints and what is between them. */
struct sim_pair {
    struct sim_world *world;
    struct sim_pair  *before; /* of the same users, ended by a restart */
    int               number;
    struct sim_side   side[2];
    uint8_t           rail[HA_SLOTS]; /* of the world, by slot */
    uint8_t           slots, doomed;
    struct sim_packet net[SIM_NET_MAX], old[SIM_OLD_MAX];
    uint32_t          net_used, old_used, packets, newest[2];
    uint32_t          alarms_left;
    struct {
        int8_t   slot;
        uint32_t gen;
    } lane_of[SIM_EPOCHS_MAX];
};

enum sim_plot {
    SIM_PLOT_FAULTS,
    SIM_PLOT_FLAPPING, /* everything must finish */
    /* of whom it strikes all must end, with an error if need be; the others must finish */
    SIM_PLOT_CUT_OFF,
    SIM_PLOT_KILL,
    SIM_PLOT_RESTART,
    SIM_PLOT_CANCEL,
};

/* A fault that waits for its moment. */
enum sim_ambush {
    SIM_AMBUSH_NONE,
    SIM_AMBUSH_CONNECT,
    SIM_AMBUSH_FAILOVER,
    SIM_AMBUSH_FLUSH,
    SIM_AMBUSH_CLOSE,
    SIM_AMBUSH_FAILBACK,
    SIM_AMBUSH_LAST
};

struct sim_world {
    uint64_t        seed, random, now, end_at;
    uint32_t        steps;
    struct sim_pair pair[SIM_PAIRS_MAX];
    struct sim_port port[SIM_HOSTS_MAX][SIM_RAILS_MAX];
    uint32_t        incarnation[SIM_HOSTS_MAX];
    int             num_pairs, num_rails, num_hosts;
    uint32_t        ops; /* at most so many of a user */
    enum sim_plot   plot;
    int             victim; /* host or, to be canceled, pair */
    uint32_t        faults_left;
    uint64_t        next_fault_at, doom_at, rebirth_at;
    enum sim_ambush ambush;
    uint32_t        ambushes_left;
    uint8_t         loss;  /* of control packets, percent */
    uint8_t         delay; /* control packets are this late, at most, in ms */
    uint8_t         leave_one_dead, lazy, struck;
    uint64_t        silence;             /* so long a side waits before it has the silent told */
    uint64_t        heal_at;             /* the next port to heal */
    uint8_t         live[SIM_PAIRS_MAX]; /* numbers of the pairs that have not ended */
    int             num_live;
    uint64_t       *cover;
    int             tracing;
    char            violation[256];
};

/* ---- sim_world.c ---- */
uint64_t               sim_random(struct sim_world *w);
static inline uint32_t sim_below(struct sim_world *w, uint32_t n)
{
    return (uint32_t)(sim_random(w) >> 33) % n;
}
static inline int sim_chance(struct sim_world *w, uint32_t percent)
{
    return sim_below(w, 100) < percent;
}
static inline uint64_t sim_time(struct sim_world *w, uint64_t from, uint64_t to)
{
    return from + sim_random(w) % (to - from);
}
/* Run one schedule; 0 = everything held, else w->violation says what did not. */
int sim_run(struct sim_world *w, uint64_t seed, uint32_t ops, int tracing, uint64_t *cover);

/* ---- sim_make.c ---- */
void sim_make_world(struct sim_world *w);
void sim_make_again(struct sim_world *w, struct sim_pair *before); /* after a restart */

/* ---- sim_fate.c ---- */
void sim_fate_strike(struct sim_world *w);                     /* by the clock */
void sim_fate_ambush(struct sim_world *w, struct sim_pair *p); /* something has happened at p */

/* ---- sim_rail.c ---- */
const struct sim_port *sim_port_of(const struct sim_pair *p, int x, int slot);
int                    sim_path_works(const struct sim_pair *p, int from, int slot);
int                    sim_is_slow(const struct sim_pair *p, int slot); /* drawn: not this time */
uint64_t               sim_hurt_at(const struct sim_pair *p, int slot);
enum sim_fault {
    SIM_FAULT_PORT,
    SIM_FAULT_SILENT,
    SIM_FAULT_MUTE,
    SIM_FAULT_DEAF,
    SIM_FAULT_CARD,
    SIM_FAULT_UNDEAD, /* a card of which nothing is heard any more, but it executes packets. These kill the rail */
    SIM_FAULT_ACKS,
    SIM_FAULT_CONTROL,
    SIM_FAULT_SLOW,
    SIM_FAULT_LAST
};
#define SIM_FAULTS_DEADLY ((int)SIM_FAULT_UNDEAD + 1)

void sim_hurt(struct sim_world *w, int host, int rail, enum sim_fault kind, uint64_t heal_at);
void sim_heal(struct sim_world *w, int host, int rail);
int  sim_is_told_down(const struct sim_pair *p, int x, int slot); /* by an event */

/* ---- sim_report.c ---- */
void sim_trace(const struct sim_pair *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_world(const struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Run the seed again, this time telling the story. */
void sim_report(struct sim_world *w, uint64_t seed, uint32_t ops);

/* ---- sim_data.c: things that may happen; return 1 if they did ---- */
int      sim_data_wire(struct sim_pair *p, int x, int slot);
int      sim_data_execute(struct sim_pair *p, int x, int slot);
int      sim_data_ack(struct sim_pair *p, int x, int slot);
int      sim_data_complete_receive(struct sim_pair *p, int x, int slot);
int      sim_data_give_up(struct sim_pair *p, int x, int slot);
int      sim_data_settle(struct sim_pair *p, int x, int slot);
uint32_t sim_data_packets(uint64_t length, unsigned kind, uint32_t mtu);
uint32_t sim_data_told(const struct sim_qp *qp);                    /* work requests whose success can be polled */
int      sim_data_rests(const struct sim_pair *p, int x, int slot); /* nothing may happen there */
uint32_t sim_data_word(const struct sim_pair *p, int x, int slot);  /* of the proof that x would give */
int      sim_data_stalled(const struct sim_pair *p, int x, int slot, uint64_t time);

/* ---- sim_wire.c ---- */
void sim_wire_send(struct sim_pair *p, int x);
int  sim_wire_receive(struct sim_pair *p, int x, int slot);

/* ---- sim_side.c: control context ---- */
void     sim_side_give(struct sim_pair *p, int x, const struct ha_event *event);
int      sim_side_pair_run(struct sim_pair *p, int x, enum ha_context ctx);
int      sim_side_settled(struct sim_pair *p, int x, int slot);
int      sim_side_connected(struct sim_pair *p, int x, int slot);
int      sim_side_timer(struct sim_pair *p, int x, int slot);
int      sim_side_send(struct sim_pair *p, int x, int slot);
int      sim_side_suspect(struct sim_pair *p, int x, int slot);
uint64_t sim_side_hold_of(const struct sim_pair *p, int x, int slot);
int      sim_side_hold(struct sim_pair *p, int x, int slot);
int      sim_side_alarm(struct sim_pair *p, int x, int slot);
int      sim_side_port(struct sim_pair *p, int x, int slot);
int      sim_side_lost(struct sim_pair *p, int x, int slot);

/* ---- sim_work.c: progress context ---- */
int  sim_work_post(struct sim_pair *p, int x, int slot);
int  sim_work_tail(struct sim_pair *p, int x, int slot);
int  sim_work_poll_send(struct sim_pair *p, int x, int slot);
int  sim_work_poll_error(struct sim_pair *p, int x, int slot);
int  sim_work_poll_receive(struct sim_pair *p, int x, int slot);
int  sim_work_deliver(struct sim_pair *p, int x, int slot);
int  sim_work_created(struct sim_pair *p, int x, int slot);
int  sim_work_drained(struct sim_pair *p, int x, int slot);
int  sim_work_resolved(struct sim_pair *p, int x, int slot);
int  sim_work_check_close(struct sim_pair *p, int x, int slot);
void sim_work_create(struct sim_pair *p, int x, int slot, uint32_t gen);
void sim_work_resolve(struct sim_pair *p, int x, int slot);
void sim_work_fail(struct sim_pair *p, int x, uint32_t why);
void sim_work_gone(struct sim_pair *p, int x);
void sim_work_retire(struct sim_pair *p, int x);

/* ---- sim_user.c ---- */
int  sim_user_has_room(struct sim_side *side); /* the log grows for it */
int  sim_user_submit(struct sim_pair *p, int x, int slot);
int  sim_user_flush(struct sim_pair *p, int x, int slot);
int  sim_user_close(struct sim_pair *p, int x, int slot);
void sim_user_cancel(struct sim_pair *p, int x);

/* ---- sim_oracle.c ---- */
void sim_violation(struct sim_pair *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_oracle_post(struct sim_pair *p, int x, uint32_t op, int slot);
void sim_oracle_execute(struct sim_pair *p, int x, uint32_t op, int slot);
void sim_oracle_never_taken(struct sim_pair *p, int x, uint32_t op);      /* the peer has declared so */
void sim_oracle_undead(struct sim_pair *p, int x, uint32_t op, int slot); /* executes where no more is taken */
void sim_oracle_packet(struct sim_pair *p, int x, int slot);              /* a packet of x executes at the peer */
void sim_oracle_end(struct sim_pair *p, int x, uint32_t op, enum ha_op_result result);
void sim_oracle_deliver(struct sim_pair *p, int x, uint32_t op); /* at x, operation of the peer */
void sim_oracle_create(struct sim_pair *p, int x, int slot, uint32_t gen);
void sim_oracle_connect(struct sim_pair *p, int x, int slot);
void sim_oracle_resolve(struct sim_pair *p, int x, int slot);
int  sim_oracle_unknown(struct sim_pair *p, int x, uint32_t op);
void sim_oracle_destroy(struct sim_pair *p, int x, int slot);
void sim_oracle_fail(struct sim_pair *p, int x);
void sim_oracle_gone(struct sim_pair *p, int x);
void sim_oracle_step(struct sim_pair *p);
void sim_oracle_finish(struct sim_pair *p);
int  sim_oracle_idle(const struct sim_pair *p); /* 1 when everything has ended */

#endif
