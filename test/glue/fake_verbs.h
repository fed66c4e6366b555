/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAKE_VERBS_H_
#define FAKE_VERBS_H_

/*
 * RDMA hardware made of memory, behind the product's own door to the hardware
 * (uct_ha/verbs): the glue is linked with this instead of libibverbs. All rails
 * of all "hosts" live in one process; rails with the same network number can
 * talk. Queue pairs count packets as real ones do, execute them one by one,
 * lose acknowledgements, retry, give up, and flush in order.
 *
 * The network moves whenever somebody polls, and by a thread of its own for
 * those who sleep. Everything is drawn from one seed; threads still interleave
 * as they like.
 */

#include "verbs/ha_qp.h"

#include <stddef.h>
#include <stdint.h>

#define FAKE_RAILS_MAX 8

struct ha_rail_limits; /* verbs/ha_rail.h */

/* Begin anew. Nothing of the product may be open. */
void fake_begin(uint64_t seed);

/* Stop the network's thread. Returns the number of objects (rails, queues,
 * registrations, ...) that the product has left behind; 0 is right. */
int fake_end(void);

/* A port "name" on network `net`; returns its index. */
int fake_rail_add(const char *name, unsigned net, unsigned host);

/* Port state, told by an event (as the kernel does), or silently. */
void fake_port(int rail, int up);
void fake_port_silently(int rail, int up);
/* The port gets another host number in its address, or the address another place in
 * the port's table; both are told by an event. Or another hardware address, which
 * nobody tells. */
void fake_readdress(int rail, unsigned host);
void fake_move_gid(int rail);
void fake_change_mac(int rail);
void fake_partition(int rail, uint16_t pkey); /* nobody is told, and the network does not mind */

/* Before the port is opened: it has an IPv6 address of its network, or is one of InfiniBand with LID 100 + rail. */
void fake_ipv6(int rail);
void fake_infiniband(int rail);
void fake_gid(int rail, uint8_t gid[16]);

/* The next datagram port on this rail gets this number: a new process may well have
 * the numbers of the one before. */
void     fake_next_ud(int rail, uint32_t qpn);
uint32_t fake_last_ud(int rail);

/* A datagram comes in at this control port, now. */
struct ha_ud;
void fake_ud_bring(struct ha_ud *ud, const void *data, size_t length);

void fake_event_qp_fatal(int rail);     /* for every connected queue pair there */
void fake_event_one_qp_fatal(int rail); /* for the youngest of them */

/* The largest packet that the port takes; for rails that nobody has opened yet. */
void fake_mtu(int rail, uint16_t mtu);

/* A port behaves as that kind of card does: "mlx5", "irdma", "bnxt_re", "hns", "rxe", "rxe-old", or "plain" as all
 * are otherwise. For rails that nobody has opened yet. -1: there is no such kind. */
int         fake_personality(int rail, const char *name);
const char *fake_personality_name(unsigned n); /* NULL behind the last */

/* Misfortune of a rail; per mille unless a unit is given. 0 = none. */
enum fake_knob {
    FAKE_LOSE_DATA_OUT, /* requests that leave by this rail */
    FAKE_LOSE_DATA_IN,
    FAKE_LOSE_ACK_OUT, /* acknowledgements that leave by this rail */
    FAKE_LOSE_ACK_IN,
    FAKE_LOSE_CTL,     /* datagrams, both directions */
    FAKE_LOSE_CTL_OUT, /* those that leave by this rail */
    FAKE_CTL_DELAY_US, /* datagrams that leave by this rail take so long */
    FAKE_REPEAT_CTL,
    FAKE_LATE,         /* a fence after which one more packet executes */
    FAKE_LATE_READS,   /* not before it was asked so often how far it is, or a second has passed */
    FAKE_LATE_LOST,    /* and if it is a message: it counts, but its receive comes back flushed */
    FAKE_SCRIBBLE,     /* the device writes into the buffer of a receive that it flushes */
    FAKE_STALL,        /* network steps that do nothing for this rail */
    FAKE_PSN,          /* enum fake_psn: what the device says of its responder */
    FAKE_BLOCK_MS,     /* connecting and address look-up take this long */
    FAKE_LOOKUP_MS,    /* address look-up alone: the kernel remembers the neighbour for who connects then */
    FAKE_HANG_MS,      /* so do commands about a queue pair: to stop it, to ask how far it is */
    FAKE_LOSE_FLUSHES, /* enum fake_flushes: what comes back flushed is lost */
    FAKE_KNOBS
};
void fake_set(int rail, enum fake_knob knob, unsigned value);

enum fake_flushes { FAKE_FLUSHES_ALL, FAKE_FLUSHES_NO_SENDS, FAKE_FLUSHES_NO_RECVS, FAKE_FLUSHES_NONE };

/* The card of a rail is reset, and its owner is told: every command about it fails, nothing completes on
 * it any more, for good. DEAD: nothing passes it either; UNDEAD: it goes on sending and executing;
 * OVERRUN: only its completion queues are lost, and its queue pairs are in error. What is opened by that name then is
 * nothing, until fake_card_back() has put a new card with the same name and address there, whose number it returns. */
enum fake_card { FAKE_CARD_WELL, FAKE_CARD_DEAD, FAKE_CARD_UNDEAD, FAKE_CARD_OVERRUN };
void fake_card_reset(int rail, enum fake_card how);
int  fake_card_back(int rail);

/* The card works, and its kernel waits without a word until nobody has anything of it open. What is held: completion
 * queues, queue pairs, control ports, address handles, listeners. */
void fake_card_remove(int rail);
int  fake_card_held(int rail);

/* Devices that do not report packet numbers as Soft-RoCE and mlx5 do. */
enum fake_psn {
    FAKE_PSN_LIVE,
    FAKE_PSN_STALE, /* what was given at RTR, as irdma says */
    FAKE_PSN_ZERO,
    FAKE_PSN_GARBAGE,
    FAKE_PSN_STALE_ERR,  /* live while it runs, the number at RTR when it is stopped */
    FAKE_PSN_BEHIND_ERR, /* ... one packet behind */
};

/* What was found out about another device of the same model holds for this one. */
void fake_model(int rail, const char *model);

/* What the device says of itself; change it while nobody has it open. */
struct ha_rail_limits *fake_limits(int rail);

/* The next `count` calls on this rail (-1: any) fail with `error` (negative). */
enum fake_call {
    FAKE_CALL_CQ_CREATE,
    FAKE_CALL_CQ_RESIZE,
    FAKE_CALL_MR_REG,
    FAKE_CALL_RC_CREATE,
    FAKE_CALL_RC_CONNECT,
    FAKE_CALL_RC_FENCE,
    FAKE_CALL_EXPECTED_PSN,
    FAKE_CALL_POST_SEND,
    FAKE_CALL_POST_RECV,
    FAKE_CALL_SRQ_CREATE,
    FAKE_CALL_SRQ_WATCH,
    FAKE_CALL_UD_CREATE,
    FAKE_CALL_UD_SEND,
    FAKE_CALL_AH_CREATE,
    /* those that cannot fail, but hang */
    FAKE_CALL_CQ_DESTROY,
    FAKE_CALL_MR_DEREG,
    FAKE_CALL_RC_DESTROY,
    FAKE_CALL_SRQ_DESTROY,
    FAKE_CALL_UD_RECYCLE,
    FAKE_CALL_UD_DESTROY,
    FAKE_CALL_AH_DESTROY,
    FAKE_CALL_PORT_QUERY,
    FAKE_CALL_GID_QUERY,
    FAKE_CALL_LAST
};
void fake_fail(enum fake_call call, int rail, int error, unsigned count);

/* The next `count` of these calls on this rail take `ms` each, and then do what they do. */
void     fake_hang(enum fake_call call, int rail, unsigned ms, unsigned count);
unsigned fake_hung(enum fake_call call);  /* how many have, since fake_begin() */
int      fake_hangs(enum fake_call call); /* one does now */

/* Nothing that may enter kernel or firmware (all but POST_*, UD_SEND) may be called where `forbidden` says so, nor on
 * UCX's async thread: such calls are counted as forbidden. */
void fake_forbid(int (*forbidden)(void));

/* The responder's device fails at the next `count` WRITEs to this address, before it has
 * executed anything of them. */
void fake_break(uint64_t addr, unsigned count);

/* Limits of rails opened later. */
void fake_limit_cqe(uint32_t max_cqe);

/* With what the latest queue pair of this rail was connected. */
struct ha_rc_path fake_last_path(int rail);

/* What happened since fake_begin(). */
struct fake_counts {
    uint64_t packets; /* executed */
    uint64_t lost, acks_lost;
    uint64_t late; /* executed after modify(ERR) had returned */
    uint64_t retry_exceeded;
    uint64_t port_kills; /* queue pairs that went with their port */
    uint64_t err_events; /* events about queue pairs that were stopped */
    uint64_t forgot;     /* completions that a destroyed queue pair took along */
    uint64_t rnr;        /* no receive was posted, and one was later: flow control is broken. (None is posted any more
                          * where the owner has begun to fence.) */
    uint64_t overruns;   /* completions that found their queue full */
    uint64_t overbooked; /* posted although the queue could not take them all */
    uint64_t bad_lkey, bad_rkey, bad_length;
    uint64_t wrong_peer; /* packets that a fenced or other queue pair refused */
    uint64_t connects, fences;
    uint64_t too_long;       /* packets longer than the receiver's path allows; it dropped them */
    uint64_t psn_overruns;   /* sends for which a queue pair had no packet numbers left */
    uint64_t hasty;          /* queue pairs destroyed, and their numbers free, less than a second after their end */
    uint64_t after_reset;    /* packets that an undead card has executed */
    uint64_t unheard;        /* completions that never came: lost flushes, queues that are lost */
    uint64_t forbidden;      /* device commands under the control lock, or on the async thread; the first was */
    unsigned forbidden_call; /* ... this one, enum fake_call */
    uint64_t lookups;        /* address handles asked for where that takes time */
    uint64_t silent;         /* operations whose success made no completion */
    uint64_t atomics;
    uint64_t recvs, recv_doorbells; /* receives posted, in so many calls */
    uint64_t srq_low, srq_in_use;   /* said so; destroyed too early */
    uint64_t taken_along;           /* shared receives that never came back */
    uint64_t mr_regs;               /* registrations made */
    uint64_t mr_regs_in_switch;     /* ... on a host between a fence and its first post on another rail */
};
struct fake_counts fake_counts(void);

/* The number of the latest queue pair of a rail. */
uint32_t fake_last_qpn(int rail);

/* Messages were meant to find no receive. */
void fake_forgive_rnr(void);

/* What the product has at present. */
struct fake_objects {
    int all; /* rails, completion queues and address handles too */
    int rcs, mrs, uds, ahs;
};
struct fake_objects fake_objects(void);
size_t              fake_cq_bytes(void);
uint64_t            fake_cq_polls(int rail); /* looks into its queues so far */

/* Called, under the network's lock, when a WRITE has been executed to its end.
 * Only look; call nothing. */
void fake_on_write(void (*cb)(void *arg, uint64_t addr, uint64_t length), void *arg);

/* Called, under the network's lock, with each datagram that is sent, whether it arrives or not. NULL: no more. */
void fake_on_datagram(void (*cb)(const void *data, size_t length));

#endif
