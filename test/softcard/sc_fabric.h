/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_FABRIC_H_
#define SC_FABRIC_H_

/*
 * What the processes of one fabric share: a folder ($SOFTCARD_DIR, else one in /dev/shm for each
 * user) with the file `fabric` (who takes part, state of ports, faults) and one inbox for each
 * process, which holds a ring for each possible sender. One sender, one receiver to a ring: a
 * process that is killed leaves no lock behind.
 *
 * A number of a queue pair says which process it lives in; an address (LID, GID) which port of
 * which made-up host.
 */

#include <stdint.h>
#include <sys/types.h>

#include "sc_wire.h"

#define SC_PROCS_MAX   63
#define SC_HOSTS_MAX   8
#define SC_DEVICES_MAX 4
#define SC_PORTS_MAX   2
#define SC_PORTS       (SC_HOSTS_MAX * SC_DEVICES_MAX * SC_PORTS_MAX)
#define SC_RULES_MAX   32
#define SC_RING_BYTES  (256u * 1024)
#define SC_NO_PORT     0xffffu

enum sc_port_trouble {
    SC_PORT_DOWN  = 1,  /* and says so: PORT_ERR */
    SC_PORT_MUTE  = 2,  /* sends nothing */
    SC_PORT_DEAF  = 4,  /* receives nothing */
    SC_PORT_NOACK = 8,  /* its answers are lost */
    SC_PORT_FATAL = 16, /* the whole device is gone */
};

struct sc_port_state {
    uint32_t trouble;
    uint32_t lossy;                   /* packets lost of a million */
    uint32_t rate;                    /* bytes that it sends in a millisecond at most; 0: any number */
    uint64_t free_at;                 /* ... and what it has taken is sent by then, in ns */
    uint64_t bytes;                   /* of those that it sent at a rate */
    uint64_t sent, received, dropped; /* packets; approximate */
};

enum sc_rule_action {
    SC_RULE_NONE,
    SC_RULE_DROP,
    SC_RULE_DUPLICATE,
    SC_RULE_QP_ERROR,
    SC_RULE_PORT_DOWN,
    SC_RULE_MUTE,
    SC_RULE_KILL,
    SC_RULE_DELAY,
};

/* Calls that can be told to fail or to take their time. */
enum sc_verb {
    SC_VERB_OPEN,
    SC_VERB_REG_MR,
    SC_VERB_CREATE_CQ,
    SC_VERB_CREATE_QP,
    SC_VERB_MODIFY_QP,
    SC_VERB_QUERY_QP,
    SC_VERB_CREATE_AH,
    SC_VERB_POST_SEND,
    SC_VERBS,
};

struct sc_verb_fault {
    uint32_t skip, times; /* so many calls go well, so many are struck */
    uint32_t error;       /* errno; 0: it only takes long */
    uint32_t hang_ms;
};

/* At packet number `nth` that matches (of those sent by `port`), do it, `times` times. */
struct sc_rule {
    uint32_t action; /* enum sc_rule_action; written last */
    uint32_t port;   /* SC_NO_PORT: any */
    uint32_t qpn;    /* destination or source; 0: any */
    uint32_t ops;    /* bits of enum sc_op; 0: any */
    uint32_t delay_ms;
    uint64_t nth, times;
    uint64_t seen, done;
};

enum sc_object { SC_OBJECT_PD, SC_OBJECT_MR, SC_OBJECT_CQ, SC_OBJECT_QP, SC_OBJECT_SRQ, SC_OBJECT_AH, SC_OBJECTS };

struct sc_member {
    int32_t  pid; /* 0: free */
    uint32_t host;
    uint64_t started; /* tells a process from a later one with its number */
    uint32_t life;    /* counts those who had this place */
    uint32_t next_qpn;
    uint32_t bell;                /* futex */
    uint32_t asleep;              /* ring, else it does not look */
    uint32_t objects[SC_OBJECTS]; /* what it has */
} __attribute__((aligned(64)));

struct sc_fabric {
    uint32_t             magic;
    uint32_t             gone;   /* its file is removed */
    uint32_t             kept;   /* by `softcard up`: survives its last process */
    uint32_t             faulty; /* somewhere in ports or rules */
    uint32_t             bad_verbs;
    uint32_t             epoch; /* of port states */
    struct sc_port_state port[SC_PORTS];
    struct sc_rule       rule[SC_RULES_MAX];
    struct sc_verb_fault verb[SC_VERBS];
    uint64_t             random;
    struct sc_member     member[SC_PROCS_MAX];
};

struct sc_ring {
    uint64_t head __attribute__((aligned(64))); /* receiver's */
    uint32_t want_room;                         /* sender waits: tell it */
    uint64_t tail __attribute__((aligned(64))); /* sender's */
    uint8_t  data[SC_RING_BYTES] __attribute__((aligned(64)));
};

struct sc_inbox {
    uint64_t       ready; /* bit: look at this ring */
    struct sc_ring ring[SC_PROCS_MAX];
};

/* Join (become a member) or just look at it. NULL: errno. */
struct sc_fabric *sc_fabric_open(int create);
void              sc_fabric_close(struct sc_fabric *fabric);
int               sc_fabric_join(struct sc_fabric *fabric, uint32_t host, struct sc_inbox **inbox);
void              sc_fabric_leave(struct sc_fabric *fabric, int place);
void              sc_fabric_remove(struct sc_fabric *fabric); /* even when kept, unless in use */
struct sc_inbox  *sc_fabric_map(int place, uint32_t life);
void              sc_fabric_unmap(struct sc_inbox *inbox);
const char       *sc_fabric_dir(void);

/* Wake all who sleep: something that concerns everybody has changed. */
void sc_fabric_tell_all(struct sc_fabric *fabric);
void sc_member_ring(struct sc_member *member);

static inline unsigned sc_port_place(unsigned host, unsigned device, unsigned port)
{
    return (host * SC_DEVICES_MAX + device) * SC_PORTS_MAX + port - 1;
}

#endif
