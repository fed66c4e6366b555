/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_SIM_H_
#define HA_SIM_H_

/*
 * A world of two endpoints for the product's own failover core: queue pairs,
 * links, control datagrams, users, and bad luck, all from one seed and in
 * virtual time. One step is one small thing that happens somewhere; which one
 * is drawn. After every step the oracle, which knows the truth about every
 * operation, checks the invariants of docs/failover.md.
 *
 *   sim_world.c   draws what happens next, faults included
 *   sim_data.c    queue pairs and packets of the data plane
 *   sim_wire.c    control datagrams
 *   sim_side.c    the glue of one side: actions of the core, control context
 *   sim_work.c    the glue of one side: what progress does
 *   sim_oracle.c  the truth, and the invariants
 *   sim_main.c    command line, many schedules, coverage
 */

#include <stdint.h>

#include "core/ha_log.h"
#include "core/ha_packet.h"
#include "core/ha_pair.h"

#define SIM_OPS_MAX    96
#define SIM_LOG_SIZE   16
#define SIM_EPOCHS_MAX 512
#define SIM_NET_MAX    12
#define SIM_OLD_MAX    48

#define SIM_US 1000ull
#define SIM_MS 1000000ull
#define SIM_S  1000000000ull

/* What must have happened at least once in a run, else the run proves nothing. */
enum sim_cover {
    SIM_COVER_FAILOVER, SIM_COVER_RETIRED, SIM_COVER_REPLAYED, SIM_COVER_PARTIAL,
    SIM_COVER_READ_AGAIN, SIM_COVER_FETCH_UNKNOWN, SIM_COVER_HELD, SIM_COVER_UNPOLLED,
    SIM_COVER_EXEC_ERRING, SIM_COVER_EXEC_SENDER_FENCED, SIM_COVER_DOUBLE_START,
    SIM_COVER_BOTH_LANES, SIM_COVER_ALARM, SIM_COVER_SUSPECT, SIM_COVER_SUSPECT_REFUSED,
    SIM_COVER_STANDBY_DIED, SIM_COVER_PASSIVE, SIM_COVER_RETRY_EXHAUSTED, SIM_COVER_ACKS_LOST,
    SIM_COVER_ONE_WAY, SIM_COVER_PORT_DOWN, SIM_COVER_BOTH_CUT, SIM_COVER_CONNECT_FAILED,
    SIM_COVER_FENCED_CONNECTING, SIM_COVER_ABANDONED, SIM_COVER_SKIPPED, SIM_COVER_EMPTY_PROOF,
    SIM_COVER_PSN_WRAP, SIM_COVER_GENERATION_4, SIM_COVER_SLOT_1_FIRST, SIM_COVER_FENCED_OP,
    SIM_COVER_CTL_LOST, SIM_COVER_CTL_REPEATED, SIM_COVER_CTL_REORDERED, SIM_COVER_CTL_OLD,
    SIM_COVER_ERROR_END, SIM_COVER_PEER_KILLED, SIM_COVER_CANCELED, SIM_COVER_CLOSED_EARLY,
    SIM_COVER_REJECTED, SIM_COVER_ONE_RAIL, SIM_COVER_LAST
};

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
    uint8_t  kind, fence;
};

struct sim_qp {
    uint8_t        state;
    uint8_t        created_untold, job, fence_asked, settled_told, drained_told, error_cqe;
    uint8_t        resolve_untold, close_asked;
    uint8_t        refused;       /* the error completion is about a request that was wrong */
    uint32_t       gen, psn, mtu;
    /* requester */
    struct sim_wqe wqe[SIM_OPS_MAX];
    uint32_t       num_wqe, posted, wired;
    uint32_t       acked, polled; /* work requests */
    uint64_t       progress_at;   /* latest acknowledgement, or first posting after it */
    uint64_t       suspected_at;
    /* responder */
    uint32_t       rx, rx_wqe;    /* packets and work requests executed here */
    uint32_t       msg[SIM_OPS_MAX];
    uint32_t       num_msg, visible, taken, delivered;
    uint32_t       close_k, resolved_k;
};

struct sim_op {
    uint64_t length;
    uint8_t  kind, fence, wrong; /* wrong: the peer will refuse it */
    uint8_t  submitted, executed, has_data, ended, result, delivered;
    int8_t   slot; /* latest posting, -1 = never */
    uint32_t gen;
};

struct sim_side {
    struct ha_pair pair;
    struct ha_log  log;
    struct ha_op   log_ops[SIM_LOG_SIZE];
    uint32_t       op_of[SIM_LOG_SIZE]; /* operation behind a log entry */
    struct sim_qp  qp[HA_SLOTS];
    uint8_t        port_down[HA_SLOTS], port_told[HA_SLOTS];
    uint8_t        dead, closed, gone, failed, send_wanted, lost_told;
    int            send_slot, heard_slot;
    int            tx_slot, rx_slot; /* as the glue caches them */
    uint64_t       busy_until;       /* the program computes: no progress */
    uint32_t       busy_epoch;
    uint64_t       patience;         /* the timer is served this late */
    uint32_t       nonce;
    /* the truth about its operations */
    struct sim_op  op[SIM_OPS_MAX];
    uint32_t       num_ops, submitted, ended;
    uint32_t       next_executed;    /* first operation other than READ not executed */
    uint32_t       fenced_executed;  /* 1 + highest fenced operation executed */
    uint32_t       next_delivered;   /* first SEND not delivered at the peer */
    uint64_t       rank[HA_SLOTS];
    uint32_t       epoch;
};

/* One rail: its cable and what is wrong with it. Direction = sending side. */
struct sim_rail {
    uint8_t  data_lost[2]; /* nothing arrives in this direction, silently */
    uint8_t  acks_lost[2]; /* only acknowledgements towards this side die */
    uint64_t heal_at;      /* 0 = healthy */
    uint64_t hurt_at;
};

struct sim_packet {
    uint8_t  to, slot;
    uint16_t length;
    uint32_t number; /* order of sending */
    uint8_t  bytes[HA_PACKET_HEADER_LEN + HA_PACKET_RECORD_LEN];
};

enum sim_plot {
    SIM_PLOT_FAULTS, SIM_PLOT_FLAPPING,                   /* everything must finish */
    SIM_PLOT_BOTH_CUT, SIM_PLOT_KILL, SIM_PLOT_CANCEL /* must end, with an error if need be */
};

struct sim_world {
    uint64_t          seed, random, now, end_at;
    uint32_t          steps;
    struct sim_side   side[2];
    struct sim_rail   rail[HA_SLOTS];
    struct sim_packet net[SIM_NET_MAX], old[SIM_OLD_MAX];
    uint32_t          net_used, old_used, packets, newest[2];
    enum sim_plot     plot;
    uint32_t          faults_left, alarms_left;
    uint64_t          next_fault_at, doom_at;
    uint8_t           loss; /* of control packets, percent */
    uint8_t           slots, doomed, leave_one_dead, lazy;
    struct { int8_t slot; uint32_t gen; } lane_of[SIM_EPOCHS_MAX];
    uint64_t         *cover;
    int               tracing;
    char              violation[256];
};

/* ---- sim_world.c ---- */
uint64_t sim_random(struct sim_world *w);
static inline uint32_t sim_below(struct sim_world *w, uint32_t n)
{
    return (uint32_t)(sim_random(w) >> 33) % n;
}
static inline int sim_chance(struct sim_world *w, uint32_t percent)
{
    return sim_below(w, 100) < percent;
}
/* Run one schedule; 0 = everything held, else w->violation says what did not. */
int sim_run(struct sim_world *w, uint64_t seed, uint32_t ops, int tracing, uint64_t *cover);

/* ---- sim_main.c ---- */
void sim_trace(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- sim_data.c: things that may happen; return 1 if they did ---- */
int sim_data_wire(struct sim_world *w, int x, int slot);
int sim_data_execute(struct sim_world *w, int x, int slot);
int sim_data_ack(struct sim_world *w, int x, int slot);
int sim_data_complete_receive(struct sim_world *w, int x, int slot);
int sim_data_give_up(struct sim_world *w, int x, int slot);
int sim_data_settle(struct sim_world *w, int x, int slot);
uint32_t sim_data_packets(uint64_t length, unsigned kind, uint32_t mtu);
int sim_data_stalled(const struct sim_world *w, int x, int slot, uint64_t time);

/* ---- sim_wire.c ---- */
void sim_wire_send(struct sim_world *w, int x);
int sim_wire_receive(struct sim_world *w, int x);

/* ---- sim_side.c: control context ---- */
void sim_side_give(struct sim_world *w, int x, const struct ha_event *event);
int sim_side_pair_run(struct sim_world *w, int x, enum ha_context ctx);
int sim_side_settled(struct sim_world *w, int x, int slot);
int sim_side_connected(struct sim_world *w, int x, int slot);
int sim_side_timer(struct sim_world *w, int x);
int sim_side_send(struct sim_world *w, int x);
int sim_side_suspect(struct sim_world *w, int x, int slot);
int sim_side_alarm(struct sim_world *w, int x, int slot);
int sim_side_port(struct sim_world *w, int x, int slot);
int sim_side_lost(struct sim_world *w, int x);
void sim_side_cancel(struct sim_world *w, int x);

/* ---- sim_work.c: progress context ---- */
int sim_work_submit(struct sim_world *w, int x);
int sim_work_post(struct sim_world *w, int x);
int sim_work_poll_send(struct sim_world *w, int x, int slot);
int sim_work_poll_error(struct sim_world *w, int x, int slot);
int sim_work_poll_receive(struct sim_world *w, int x, int slot);
int sim_work_deliver(struct sim_world *w, int x, int slot);
int sim_work_created(struct sim_world *w, int x, int slot);
int sim_work_drained(struct sim_world *w, int x, int slot);
int sim_work_resolved(struct sim_world *w, int x, int slot);
int sim_work_check_close(struct sim_world *w, int x, int slot);
int sim_work_close(struct sim_world *w, int x);
void sim_work_create(struct sim_world *w, int x, int slot, uint32_t gen);
void sim_work_resolve(struct sim_world *w, int x, int slot);
void sim_work_fail(struct sim_world *w, int x, uint32_t why);
void sim_work_gone(struct sim_world *w, int x);
void sim_work_retire(struct sim_world *w, int x);

/* ---- sim_oracle.c ---- */
void sim_violation(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_oracle_post(struct sim_world *w, int x, uint32_t op, int slot);
void sim_oracle_execute(struct sim_world *w, int x, uint32_t op, int slot);
void sim_oracle_packet(struct sim_world *w, int x, int slot); /* a packet of x executes at the peer */
void sim_oracle_end(struct sim_world *w, int x, uint32_t op, enum ha_op_result result);
void sim_oracle_deliver(struct sim_world *w, int x, uint32_t op); /* at x, operation of the peer */
void sim_oracle_create(struct sim_world *w, int x, int slot, uint32_t gen);
void sim_oracle_resolve(struct sim_world *w, int x, int slot);
void sim_oracle_destroy(struct sim_world *w, int x, int slot);
void sim_oracle_fail(struct sim_world *w, int x);
void sim_oracle_gone(struct sim_world *w, int x);
void sim_oracle_step(struct sim_world *w);
void sim_oracle_finish(struct sim_world *w);
int sim_oracle_idle(const struct sim_world *w); /* 1 when everything has ended */

#endif
