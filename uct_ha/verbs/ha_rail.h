/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_RAIL_H_
#define HA_RAIL_H_

/*
 * A rail: one port of one RDMA device, opened once per process and shared by
 * everybody who names it (reference counted): memory domains, interfaces,
 * workers. It holds the device context, the protection domain and the chosen
 * GID. Two ports of one device are two rails with a context and a protection domain
 * each. This folder is the only door to libibverbs: no other file includes it.
 *
 * Threads: list/open/close take a process-wide lock. An open rail's identity
 * (name, device limits) never changes; its `addr` and `up` do, see
 * ha_rail_refresh(). Memory registration is safe from any thread.
 *
 * Errors are negative errno values everywhere in this folder.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "ha_addr.h"

#define HA_RAIL_NAME_MAX 32 /* UCX limits a device name to 32 bytes */
#define HA_RAILS_MAX     32 /* ports one process looks at */

struct ha_rail;
struct ha_mr;

/* Which atomics that the card executes are atomic to each other. */
enum ha_atomics {
    HA_ATOMICS_NONE, /* it executes none */
    HA_ATOMICS_CARD, /* those of this card */
    HA_ATOMICS_ALL,  /* all, of any card and the CPU */
};

/* Constant facts of an open rail. */
struct ha_rail_limits {
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t max_sge;
    uint32_t max_cqe;
    uint32_t max_srq_wr;  /* receives of a shared queue; 0: there is none */
    uint32_t max_rd_init; /* outstanding READs and atomics that a QP may ask */
    uint32_t max_rd_resp; /* ... that it may answer */
    uint64_t max_msg_size;
    uint64_t max_mr_size;
    double   bandwidth;      /* bytes per second of the link */
    unsigned packet_extra;   /* bytes of a packet beside the data of a WRITE */
    double   slot_rate;      /* ... of data that the device's slot carries, INFINITY: unknown */
    double   latency;        /* seconds, from a CPU near it: for UCX's cost model only */
    int      numa_node;      /* -1 = unknown */
    uint64_t node_guid;      /* shared by the ports of one device: shared fate */
    uint64_t image_guid;     /* ... of one card, however many devices it is; 0 = unknown */
    int      retry7_forever; /* retry_cnt 7 never gives up (Soft-RoCE) */
    int      mlx5;           /* retries by its own rule, see ha_window_mlx5() */
    int      has_ud;
    int      atomics;   /* enum ha_atomics */
    char     model[48]; /* vendor, part and firmware: what was found out about one
                         * device of a model holds for the others */
};

/* Choices that the user may make for every rail. */
struct ha_rail_opts {
    int      gid_index; /* -1 = choose: RoCE v2 IPv4, IPv6 global, link-local */
    unsigned pkey_index;
    unsigned sl;
    unsigned traffic_class;
    unsigned hop_limit;
    unsigned mtu; /* upper bound in bytes, 0 = the port's */
};

enum ha_rail_event_kind {
    HA_RAIL_EVENT_NONE,
    HA_RAIL_EVENT_PORT_DOWN, /* the port is not ACTIVE any more */
    HA_RAIL_EVENT_PORT_UP,
    HA_RAIL_EVENT_ADDR_CHANGE,  /* GID, LID or partition table moved */
    HA_RAIL_EVENT_QP_FATAL,     /* qpn is dead */
    HA_RAIL_EVENT_QP_DRAINED,   /* qpn, of a shared receive queue, is stopped and takes no receive any more */
    HA_RAIL_EVENT_SRQ_LOW,      /* see ha_srq_watch() */
    HA_RAIL_EVENT_DEVICE_FATAL, /* the device is gone, or a completion queue lost: nothing will answer */
    HA_RAIL_EVENT_REMOVED,      /* see ha_rail_check(): what is open of it still answers */
};

struct ha_rail_event {
    enum ha_rail_event_kind kind;
    uint32_t                qpn;
    const void             *owner; /* of that queue pair, see ha_rc_create(); NULL: not known, or of the whole rail */
};

#define HA_ACCESS_REMOTE_PUT    0x1u
#define HA_ACCESS_REMOTE_GET    0x2u
#define HA_ACCESS_REMOTE_ATOMIC 0x4u

/* Names ("device:port") of all ports with a usable link layer, in the order of
 * the device list, whatever their state. Returns how many were written (at
 * most max); 0 without any RDMA device. Never an error: no device is no rail. */
int ha_rail_list(char (*names)[HA_RAIL_NAME_MAX], int max);

/* -ENODEV: no such device or port; -EADDRNOTAVAIL: no usable GID at the
 * requested index; -ENOKEY: the port is ACTIVE and has no partition key there; what ha_rail_why_not() knows: it is no
 * rail at all; else what the device answered. `opts` of the first opener win. A rail whose port is down opens: it may
 * come up later. */
static inline const char *ha_rail_why_not(int error)
{
    return error == -EPROTONOSUPPORT ? "its transport makes no reliable connections by verbs alone (iWARP, EFA, usNIC)"
           : error == -EOPNOTSUPP    ? "its device refuses a reliable connection that is tried"
                                     : NULL;
}

int  ha_rail_open(const char *name, const struct ha_rail_opts *opts, struct ha_rail **rail_p);
void ha_rail_close(struct ha_rail *rail);
void ha_rail_hold(struct ha_rail *rail); /* open once more */

const char                  *ha_rail_name(const struct ha_rail *rail);
const struct ha_rail_limits *ha_rail_limits(const struct ha_rail *rail);
const struct ha_rail_opts   *ha_rail_opts(const struct ha_rail *rail); /* of the first opener */

/* Ask the device for port state, MTU and GID anew (the index may have moved).
 * Returns 1 when the port is ACTIVE and has an address, 0 when not, or an error. */
int ha_rail_refresh(struct ha_rail *rail);

/* As last refreshed. A copy, taken under the rail's lock. */
struct ha_rail_addr ha_rail_addr(struct ha_rail *rail);
int                 ha_rail_up(const struct ha_rail *rail);

/* The device has said that it is lost, or is being removed. This rail stays so; who opens the name from now on opens
 * the device anew, if it is there again. The lost one is closed when nothing of it is in use any more: completion
 * queues, queue pairs, control ports, address handles and their like are destroyed, and nobody waits for events. Memory
 * that is registered keeps its keys, which mean nothing. */
int ha_rail_is_gone(const struct ha_rail *rail);

/* Does the port still have this address of its own, be it the chosen one or not?
 * A queue pair that was connected with one that is gone reaches nobody. */
int ha_rail_has_addr(struct ha_rail *rail, const struct ha_rail_addr *addr);

/* Net device that carries the rail's GID, as last refreshed; "" when there is none
 * (InfiniBand without IPoIB). */
void ha_rail_netdev(struct ha_rail *rail, char netdev[HA_NETDEV_MAX]);

/* The kernel removes a device of some drivers without a word, and waits for us, while it still works: has that begun?
 * 1 when it is seen for the first time, and from then on it is gone; else 0. No device command. */
int ha_rail_check(struct ha_rail *rail);

/* Non-blocking file descriptor of the device's asynchronous events, or -ENODEV. The caller
 * polls it; ha_rail_event_get() takes one event (already acknowledged) for
 * this port, returns 1, 0 when there is none, or -EIO when the device is gone. Nobody touches the descriptor after
 * the end, which may close the device: that takes a while. */
int  ha_rail_event_begin(struct ha_rail *rail);
int  ha_rail_event_get(struct ha_rail *rail, struct ha_rail_event *event);
void ha_rail_event_end(struct ha_rail *rail);

/* Register memory on this rail. `access` = HA_ACCESS_*; local write is always
 * included when the mapping allows. The region belongs to the caller until
 * ha_mr_dereg(). */
int      ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access, struct ha_mr **mr_p);
void     ha_mr_dereg(struct ha_mr *mr);
uint32_t ha_mr_lkey(const struct ha_mr *mr);
uint32_t ha_mr_rkey(const struct ha_mr *mr);

#endif
