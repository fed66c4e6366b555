/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CTL_H_
#define UCT_HA_CTL_H_

/*
 * The control plane of an interface: what carries its packets, and when something is due.
 * Types only; it is opened and closed in ctl/open.h. Under the control lock, but for what is
 * constant while it is open: pairs, lanes, ud, tcp.
 */

#include "base/job.h"
#include "core/ha_packet.h"
#include "core/ha_probe.h"
#include "ctl/watch.h"
#include "pair/pairs.h"
#include "verbs/ha_ud.h"

#define UCT_HA_ACCEPTS_MAX 256

struct uct_ha_accept { /* a connection that a peer asks for; progress makes it */
    struct ha_packet_header header;
    struct ha_packet_record record;
};

/* Endpoints without a standby, as ctl/standby.c has said it. */
struct uct_ha_bare {
    uint64_t looked_at, told_at, gap, longest;
    unsigned back;
};

/* An own rail that its connections leave: ctl/fall.h. */
struct uct_ha_fall { /* of a rail */
    uint64_t at;     /* it began then, 0: none is under way */
    uint64_t due;    /* it goes on then */
    uint64_t moved;  /* the latest time that somebody was told */
    uint32_t next;   /* place in the table of connections */
    uint32_t window; /* so many may move at once, */
    uint32_t most;   /* ... and later so many */
    uint8_t  cause;
};

/* How to reach the control port of a peer on a rail: looked for by a job, and let go by one. */
struct uct_ha_way {
    struct uct_ha_job   super;
    struct uct_ha_ctl  *ctl;
    struct ha_ud_ah    *ah;
    uint64_t            cookie;
    int                 slot;
    uint32_t            addr_seq;
    uint32_t            ah_job;
    struct ha_rail_addr addr;
};

/* What is known of a rail of a host, by whichever of its processes; of more hosts than there is room
 * for some share a place, and only know less. */
#define UCT_HA_HOSTS 1024u

struct uct_ha_host {
    uint64_t key;
    uint64_t rx;    /* somebody there has answered then */
    uint32_t round; /* the number of this round of heartbeats, */
    uint32_t asked; /* in which so many were asked for their work's sake */
    uint64_t since; /* somebody there has been silent since then, as was found */
    uint32_t found; /* ... in the round of this number */
};

struct uct_ha_recycle { /* a job brings the UD port of a rail up again, or lets it go */
    struct uct_ha_job  super;
    struct uct_ha_ctl *ctl;
    int                slot;
    int                busy; /* nobody else touches the port meanwhile, but to arm it */
};

struct uct_ha_ctl {
    struct uct_ha_pairs  *pairs;
    struct uct_ha_lanes  *lanes;
    struct ha_ud         *ud[HA_SLOTS]; /* NULL: the rail has no UD */
    struct uct_ha_tcp    *tcp;          /* NULL: no TCP carrier */
    struct uct_ha_watch   watch[HA_SLOTS];
    uint8_t               watched[HA_SLOTS], ud_handled[HA_SLOTS];
    struct uct_ha_recycle recycle[HA_SLOTS], leave[HA_SLOTS];
    struct ha_rail_addr   addr[HA_SLOTS]; /* own address, as the peers were told */
    struct uct_ha_accept *accepts;
    unsigned              num_accepts;
    int                   timer_fd;
    uint64_t              timer_at, heartbeat_at, check_at;
    uint64_t              checked_at;        /* the last progress check */
    uint64_t              round_at;          /* the last heartbeat round was then */
    uint32_t              round;             /* ... and had this number */
    struct ha_probe       probe;             /* the budget */
    uint8_t               probes;            /* it has a share of the process's */
    uint64_t              turn_at;           /* everybody had been asked then, */
    unsigned              turn_left;         /* and so many of them have not been since */
    uint64_t              rail_rx[HA_SLOTS]; /* anybody has answered by the rail then */
    struct uct_ha_host    host[UCT_HA_HOSTS];
    uint32_t              looked; /* of the table of connections: the slow look goes on there */
    uint32_t              nonce;
    uint32_t              calls;      /* peers that are called by TCP: ctl/stall.h */
    uint64_t              stall_told; /* that a peer is stalled was said last then */
    uint64_t              fresh_ns;   /* the path of a rail that is silent for so long is resolved anew */
    uint32_t              polls;      /* so often had the program looked at the latest round, */
    uint8_t               polled;     /* ... and since the one before */
    struct uct_ha_bare    bare;
    struct uct_ha_fall    fall[HA_SLOTS];
    struct uct_ha_ctl    *prom_next; /* in the statistics file, too */
    uint8_t               discard;   /* atomic: closing, nobody is accepted any more */
};

#endif
