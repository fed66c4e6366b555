/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_MODEL_H_
#define HA_MODEL_H_

/*
 * A small world around the product's own failover core, for exploration: two
 * endpoints, two rails, a few operations each. Whatever may happen next is one
 * `thing`; the search tries every one of them in every state. Nothing is drawn
 * and there is no clock: a time limit is a thing that may or may not happen.
 *
 *   model_world.c   the start, the table of things
 *   model_data.c    queue pairs and packets of the data plane
 *   model_side.c    the glue of one side: the core, its log and queue pairs
 *   model_fate.c    dead rails, false triggers, time limits, users
 *   model_card.c    cards that are gone
 *   model_proof.c   what a responder counts, and says of it
 *   model_wire.c    control packets
 *   model_oracle.c  the truth, and the invariants of docs/failover.md
 *   model_pack.c    a state as canonical bytes, and back
 *   model_reduce.c  what need not be explored, and why
 *   model_search.c  breadth-first search, counter-example, reachability
 *   model_small.c   the bounds of `make check`
 *   model_main.c    command line
 *
 * What follows from a state at once, cannot be seen from outside before the
 * side's next own step, and only makes steps possible (a drained queue pair is
 * reported, a deliverable message is delivered) happens without being a choice.
 */

#include <stdint.h>

#include "core/ha_log.h"
#include "core/ha_packet.h"
#include "core/ha_pair.h"

#define MODEL_OPS_MAX   4
#define MODEL_TELL      4 /* one in so many tells */
#define MODEL_NET_MAX   2
#define MODEL_BYTES_MAX 256
#define MODEL_NOW       1024ull      /* the one time there is */
#define MODEL_SOON      (1ull << 20) /* until work goes back to the preferred lane */
#define MODEL_LATER     (1ull << 40) /* beyond any step */

enum model_start {
    MODEL_START_NOTHING,
    MODEL_START_ONE_LANE,
    MODEL_START_TWO_LANES,
    MODEL_START_MOVED,
    MODEL_START_LATE
};

struct model_options {
    char     ops[2][MODEL_OPS_MAX + 1];
    uint8_t  cuts, alarms, suspicions, giveups;
    uint8_t  cards;      /* that are gone, or do not say how far they came */
    uint8_t  channel;    /* control packets in flight per direction */
    uint8_t  start;      /* enum model_start */
    uint8_t  proof;      /* enum ha_proof that both sides give; 0: by packet number */
    uint8_t  single;     /* one rail only */
    uint8_t  failback;   /* work goes back to rail 0 */
    uint8_t  late_sends; /* send completions wait to be polled */
    uint8_t  late_recvs; /* received messages become visible late */
    uint8_t  at_once;    /* a context runs until nothing is enabled, as the glue does */
    uint8_t  no_echo;    /* control packets carry no echo: a side may send at any time */
    uint8_t  no_late;    /* packets of a cut lane never arrive */
    uint8_t  ports;      /* a cut is seen as port events too */
    uint8_t  for_ever;   /* rail 0, once cut, never returns */
    uint8_t  split;      /* connecting takes time and may fail; the handler may come between resolving and telling */
    uint8_t  closing;    /* the users let go when they owe nothing */
    uint8_t  reduced;    /* safety alone, and what cannot be told apart is one: see model_reduce.c */
    uint8_t  luck;       /* tell the first arrival of a control packet from a repeat: for L1 */
    uint16_t ignored;    /* violations of these invariants are let pass: bit n for In, bit 0 for L1 */
    uint8_t  unchecked;  /* without the product's run-time checks: what would they have prevented? */
};

extern struct model_options model_options;

enum model_qp_state { MODEL_QP_NONE, MODEL_QP_INIT, MODEL_QP_UP, MODEL_QP_ERRING, MODEL_QP_ERR };

/* One queue pair: x's end of lane (slot, gen). */
struct model_qp {
    uint8_t state, gen;
    /* requester: what was posted, in order; work requests answered and polled */
    uint8_t op[MODEL_OPS_MAX], num_ops, acked, polled;
    uint8_t silent; /* which of them make no completion, one bit each */
    /* responder: packets and work requests of the peer that executed here */
    uint8_t rx, rx_ops, marks;
    /* messages received, by operation of the peer; counts of those visible and delivered */
    uint8_t msg[MODEL_OPS_MAX], num_msg, visible, delivered;
    /* the glue */
    uint8_t job, fence_asked, settled_told, drained_told, resolve_untold, resolved_k;
    uint8_t close_asked, close_k;
    /* its card does not stop; stops and says nothing; what came is declared, no more is taken */
    uint8_t gone, mute, final;
};

struct model_side {
    struct ha_pair  pair;
    struct ha_log   log; /* the index of an entry is the number of the operation */
    struct ha_op    log_ops[MODEL_OPS_MAX];
    struct model_qp qp[HA_SLOTS];
    int8_t          tx_slot, rx_slot; /* as the glue caches them */
    uint8_t         send_wanted, failed, closed, gone;
    /* the truth about its operations, one bit each */
    uint8_t executed, has_data, ended, delivered, doubt;
};

struct model_world {
    struct model_side side[2];               /* side 0 is the decider */
    struct ha_record  net[2][MODEL_NET_MAX]; /* [receiver]: what is on the way and may arrive, again too */
    uint8_t           net_used[2];
    uint8_t           net_heard[2];   /* which of them were heard before, one bit each */
    uint8_t           dead[HA_SLOTS]; /* 1 + the youngest generation that a cut has hit */
    uint8_t           cuts, alarms, suspicions, giveups, cards;
    const char       *violation;
};

/* ---- operations: a small letter is one that nobody waits for ---- */
static inline int model_is_quiet(int x, unsigned op)
{
    return model_options.ops[x][op] >= 'a';
}
static inline char model_kind(int x, unsigned op)
{
    return (char)(model_is_quiet(x, op) ? model_options.ops[x][op] - 'a' + 'A' : model_options.ops[x][op]);
}
int      model_has_quiet(int x); /* any */
unsigned model_num_ops(int x);
uint8_t  model_ops_of_kind(int x, char kind); /* as a mask */
unsigned model_packets(int x, unsigned op);
uint8_t  model_receivers(int x); /* those that consume a receive, as a mask */
uint32_t model_psn(int slot);    /* every queue pair of a slot starts there */
uint16_t model_mtu(int slot);

/* ---- model_proof.c ---- */
unsigned    model_proof(void);                                             /* enum ha_proof */
int         model_counts(void);                                            /* may a count of receives be told? */
int         model_slots(void);                                             /* rails */
unsigned    model_mark(int x, unsigned op);                                /* 1: a mark follows it */
uint32_t    model_npsn(const struct ha_op *op);                            /* as the log reckons it */
uint32_t    model_word(const struct model_world *w, int x, int slot);      /* of x's proof */
const char *model_proof_lie(const struct model_world *w, int x, int slot); /* what x believes, is it so? */

/* ---- model_world.c ---- */
#define MODEL_LUCK 0x1u /* good or bad: must not be needed to reach the goal */
#define MODEL_DATA 0x2u /* of the data plane */

struct model_thing {
    const char *name;
    uint8_t     sides, slots, variants, flags;
    int (*happen)(struct model_world *w, int x, int slot, int n); /* 0: cannot happen now */
};

typedef uint16_t model_label; /* thing, side, slot, variant */

extern const struct model_thing model_things[];
extern const unsigned           model_num_things;

void model_start(struct model_world *w);
void model_copy(struct model_world *to, const struct model_world *from); /* a log points into its world */
int  model_goal(const struct model_world *w);
int  model_has_ended(const struct model_world *w, int x);
/* 1 if it happened; `w` is as before if not. */
int model_happen(struct model_world *w, model_label label);
int model_is_luck(model_label label);
/* The label after `label` (0xffff: the first one), 0xffff at the end. */
model_label model_next_label(model_label label);
#define MODEL_NO_LABEL ((model_label)0xffff)
const char *model_label_text(model_label label, char *buf, unsigned size);

/* ---- model_data.c: things; return 1 if they happened ---- */
int      model_data_post(struct model_world *w, int x, int slot, int n);
int      model_data_tail(struct model_world *w, int x, int slot, int n);
unsigned model_data_told(const struct model_qp *qp); /* work requests whose success can be polled */
int      model_data_execute(struct model_world *w, int x, int slot, int n);
int      model_data_execute_late(struct model_world *w, int x, int slot, int n);
int      model_data_ack(struct model_world *w, int x, int slot, int n);
int      model_data_ack_late(struct model_world *w, int x, int slot, int n);
int      model_data_poll_send(struct model_world *w, int x, int slot, int n);
int      model_data_show_receive(struct model_world *w, int x, int slot, int n);
int      model_data_cut(struct model_world *w, int x, int slot, int n);
int      model_data_is_cut(const struct model_world *w, int slot, unsigned gen);
void     model_data_retire(struct model_world *w, int x);

/* ---- model_side.c ---- */
int  model_side_run_async(struct model_world *w, int x, int slot, int n);
int  model_side_run_progress(struct model_world *w, int x, int slot, int n);
int  model_side_settle(struct model_world *w, int x, int slot, int n);
int  model_side_connected(struct model_world *w, int x, int slot, int n);
int  model_side_resolved(struct model_world *w, int x, int slot, int n);
void model_side_give(struct model_world *w, int x, const struct ha_event *event);
void model_side_give_at(struct model_world *w, int x, const struct ha_event *event, uint64_t now);
/* What follows at once, see above. */
void model_side_follow(struct model_world *w, int x);
void model_side_refresh(struct model_side *side);

/* ---- model_wire.c ---- */
int model_side_send(struct model_world *w, int x, int slot, int n);
int model_side_lose(struct model_world *w, int x, int slot, int n);
int model_side_receive(struct model_world *w, int x, int slot, int n);
int model_side_receive_again(struct model_world *w, int x, int slot, int n);
/* 1 when the retransmission timer would make the core send. */
int model_side_would_resend(const struct model_side *side);

/* ---- model_fate.c ---- */
int model_side_detect(struct model_world *w, int x, int slot, int n);
int model_side_cut_noticed(struct model_world *w, int x, int slot, int n);
int model_side_alarm(struct model_world *w, int x, int slot, int n);
int model_side_suspect(struct model_world *w, int x, int slot, int n);
int model_side_port_up(struct model_world *w, int x, int slot, int n);
int model_side_run_at(struct model_world *w, int x, enum ha_context ctx, uint64_t now);
int model_side_fail_back(struct model_world *w, int x, int slot, int n);
int model_side_deadline(struct model_world *w, int x, int slot, int n);
int model_side_cancel(struct model_world *w, int x, int slot, int n);
int model_side_close(struct model_world *w, int x, int slot, int n);

int model_side_down(struct model_world *w, int x, int slot, enum ha_event_kind kind, unsigned cause);

/* ---- model_card.c ---- */
int model_card_dies(struct model_world *w, int x, int slot, int n);
int model_card_declare(struct model_world *w, int x, int slot, int n);
int model_card_give_up(struct model_world *w, int x, int slot, int n);

/* ---- model_oracle.c ---- */
void model_violation(struct model_world *w, const char *text);
void model_oracle_post(struct model_world *w, int x, unsigned op, int slot);
void model_oracle_packet(struct model_world *w, int x, int slot); /* a packet of x executes at the peer */
void model_oracle_execute(struct model_world *w, int x, unsigned op);
void model_oracle_execute_undead(struct model_world *w, int x, unsigned op); /* where no more is taken */
void model_oracle_doubt(struct model_world *w, int x, int slot);
void model_oracle_end(struct model_world *w, int x, unsigned op, enum ha_op_result result);
void model_oracle_deliver(struct model_world *w, int x, unsigned op);
void model_oracle_create(struct model_world *w, int x, int slot, unsigned gen);
void model_oracle_resolve(struct model_world *w, int x, int slot);
void model_oracle_destroy(struct model_world *w, int x, int slot);
void model_oracle_fail(struct model_world *w, int x);
void model_oracle_gone(struct model_world *w, int x);
void model_oracle_step(const struct model_world *before, struct model_world *w);

/* ---- model_pack.c ---- */
/* Canonical bytes of a state: what differs in nothing that matters packs to
 * the same bytes. Returns the length; `buf` has MODEL_BYTES_MAX bytes. */
unsigned model_pack(struct model_world *w, uint8_t *buf);
void     model_unpack(struct model_world *w, const uint8_t *buf);

/* ---- model_reduce.c ---- */
extern int model_eager; /* past the start of a reduced world */
int        model_reduce_post(struct model_world *w, int x);
void       model_reduce_net(struct model_world *w);
/* 1 when what is left to do is one lane's work, and nothing can disturb it. */
int model_reduce_is_quiet(const struct model_world *w);
int model_is_data(model_label label);

/* ---- model_search.c ---- */
enum model_outcome { MODEL_COMPLETE, MODEL_VIOLATED, MODEL_STOPPED };

struct model_limits {
    uint64_t states;
    unsigned seconds;    /* 0 = no limit */
    int      reach_goal; /* also check L1 */
    int      verbose;
};

struct model_result {
    uint64_t    states, transitions, goals, bytes;
    unsigned    depth, steps; /* steps: length of the counter-example */
    unsigned    max_gen, max_epoch;
    const char *violation;
};

enum model_outcome model_search(const struct model_limits *limits, struct model_result *result);

/* ---- model_small.c ---- */
int model_run_smalls(void); /* what main() returns */

/* What was seen at least once: a run without it proves nothing about it. */
enum model_cover {
    MODEL_COVER_RETIRED,
    MODEL_COVER_REPLAYED,
    MODEL_COVER_PARTIAL,
    MODEL_COVER_READ_AGAIN,
    MODEL_COVER_UNKNOWN,
    MODEL_COVER_HELD,
    MODEL_COVER_ERRING,
    MODEL_COVER_SENDER_FENCED,
    MODEL_COVER_DOUBLE_START,
    MODEL_COVER_BOTH_LANES,
    MODEL_COVER_WAITED,
    MODEL_COVER_EMPTY,
    MODEL_COVER_SKIPPED,
    MODEL_COVER_WRAP,
    MODEL_COVER_DECLARED,
    MODEL_COVER_UNDEAD,
    MODEL_COVER_DOUBT,
    MODEL_COVER_SILENT,
    MODEL_COVER_TAIL,
    MODEL_COVER_FENCED_OP,
    MODEL_COVER_COUNT,
    MODEL_COVER_LEDGER,
    MODEL_COVER_FAILBACK,
    MODEL_COVER_SINGLE,
    MODEL_COVER_CLOSING_CUT,
    MODEL_COVER_LAST
};
extern uint64_t          model_cover[MODEL_COVER_LAST];
extern const char *const model_cover_name[MODEL_COVER_LAST];

/* ---- model_main.c ---- */
/* By model_options; prints the result. */
enum model_outcome model_explore(const struct model_limits *limits);

/* Tells the story of a counter-example while it is run again. */
void       model_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void       model_show(const struct model_world *w);
extern int model_telling;

#endif
