/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IFACE_H_
#define UCT_HA_IFACE_H_

/*
 * An interface of transport `ha_rc`: its rails, completion queues, connections
 * and the control plane. Slot 0 is the UCX device it was opened on, slot 1 the
 * standby rail.
 *
 * Progress owns the data part and takes no lock for it. The control part is
 * guarded by ctl.lock, shared with UCX's async thread and the job thread. The
 * two meet in ctl.pending: set when progress should look at the control part.
 */

#include "abi/uct_ha_abi.h"
#include "core/ha_pace.h"
#include "core/ha_rto.h"
#include "uct/addr.h"
#include "base/config.h"
#include "pair/conn.h"
#include "uct/md.h"
#include "pair/peer.h"
#include "ctl/watch.h"
#include "verbs/ha_qp.h"
#include "verbs/ha_ud.h"

#include <pthread.h>

#define UCT_HA_ACCEPTS_MAX 256
#define UCT_HA_POLL_BATCH  16 /* completions that one call of progress takes per rail, if there are */

struct uct_ha_accept { /* a connection that a peer asks for; progress makes it */
    struct ha_packet_header header;
    struct ha_packet_record record;
};

/* A peer that was forgotten and may live all the same: numbers of pairs are not used twice. */
#define UCT_HA_FORGOTTEN_MAX 256

struct uct_ha_forgotten {
    uint64_t cookie;
    uint32_t next_sn;
};

struct uct_ha_ctl {
    pthread_mutex_t       lock;
    int                   pending; /* atomic: progress should come */
    int                   armed;   /* atomic: the user sleeps on the event fd */
    int                   wake_fd, timer_fd;
    struct ha_ud         *ud[HA_SLOTS]; /* NULL: the rail has no UD */
    struct uct_ha_tcp    *tcp;          /* NULL: no TCP carrier */
    struct uct_ha_watch   watch[HA_SLOTS];
    uint8_t               watched[HA_SLOTS], ud_handled[HA_SLOTS];
    uint8_t               down[HA_SLOTS];  /* own port is not usable */
    uint8_t               gone[HA_SLOTS];  /* own card: what it says is not believed, and it never comes back */
    struct ha_rail_addr   addr[HA_SLOTS];  /* own address, as the peers were told */
    ucs_list_link_t       peers, conns, attention;
    struct uct_ha_conn  **table;           /* by connection id */
    uint32_t              table_len;
    struct uct_ha_lane   *parked;
    struct uct_ha_accept *accepts;
    unsigned              num_accepts;
    uint64_t              timer_at, heartbeat_at, check_at;
    uint64_t              checked_at; /* the last progress check */
    uint64_t              round_at; /* the last heartbeat round was then */
    uint32_t              nonce;
    struct uct_ha_forgotten forgotten[UCT_HA_FORGOTTEN_MAX]; /* a ring */
    uint32_t              num_forgotten;
    struct ha_pair_config pair_config;
    struct ha_rto         rto;
    struct ha_pace        stranger_pace;   /* of answers to those who look for somebody else */
    struct ha_pace        pace[HA_SLOTS];  /* of lanes that are built while the other rail works */
    uint64_t              heartbeat, dead_peer, cooldown, cooldown_max;
    uint64_t              silence;  /* a card that was told to stop may say nothing for so long */
    uint64_t              fresh_ns; /* the path of a rail that is silent for so long is resolved anew */
    uint8_t               leaving;         /* the interface closes */
};

struct uct_ha_iface {
    uct_base_iface_t           super;
    struct uct_ha_md          *md;
    struct uct_ha_iface_config config;
    uint64_t                   cookie;
    int                        slots;
    struct ha_rail            *rail[HA_SLOTS]; /* the domain's; valid while it is open */
    unsigned                   rail_no[HA_SLOTS]; /* their numbers, see mem/reg.h */
    uint8_t                    place[HA_SLOTS];
    uint8_t                    proof[HA_SLOTS]; /* kind that this side gives, enum ha_proof */
    unsigned                   caps;            /* HA_CAP_*: what peers have to know */
    struct ha_zones            zones; /* constant, as is match */
    struct ha_match_opts       match;
    unsigned                   max_inline, max_sge;
    uint32_t                   max_zcopy; /* of a PUT or GET, on whatever rail it ends */
    struct ha_opts             opts; /* constant: what this side wants of its connections */
    unsigned                   credits, rx_window_max, rx_depth; /* first window, largest, with reserve */
    uint32_t                   log_len;

    /* data part */
    struct ha_cq              *cq[HA_SLOTS];
    unsigned                   cq_depth[HA_SLOTS], cq_reserved[HA_SLOTS], cq_lanes[HA_SLOTS],
                               cq_logs[HA_SLOTS];
    unsigned                   cq_sends[HA_SLOTS], cq_sends_max[HA_SLOTS], cq_parked[HA_SLOTS];
    unsigned                   cq_freed[HA_SLOTS]; /* atomic; see lane/room.h */
    struct uct_ha_lane       **lanes;    /* by id modulo lanes_len */
    uint32_t                   lanes_len, next_lane;
    struct uct_ha_desc        *free_desc;
    struct uct_ha_desc        *returned_desc; /* atomic; by the job thread */
    size_t                     rx_grown; /* bytes of all windows beyond their first size */
    struct uct_ha_chunk       *chunks;
    uint32_t                   outstanding; /* operations in all logs */
    uint32_t                   fence_seq;
    uint32_t                   polls;       /* progress calls, for the RTO */
    ucs_list_link_t            pending, backlog;
    struct uct_ha_conn        *dispatching; /* its pending queue may send */
    struct ha_wc               stash[HA_SLOTS]; /* completion found while arming */
    uint8_t                    stashed;     /* bit per slot */
    uint8_t                    limit_told;  /* a limit of the device was reached */
    uint8_t                    discard;     /* closing: deliver nothing any more */
    int                        event_fd;

    struct uct_ha_ctl          ctl;
};

static inline struct uct_ha_iface *uct_ha_iface(uct_iface_h tl_iface)
{
    return ucs_container_of((uct_base_iface_t *)(void *)tl_iface, struct uct_ha_iface, super);
}

/* For the transport's table: see uct_iface_open_func of UCX. */
ucs_status_t uct_ha_iface_open(uct_md_h md, uct_worker_h worker,
                               const uct_iface_params_t *params,
                               const uct_iface_config_t *config, uct_iface_h *iface_p);

/* Everything behind the base class (uct/iface_setup.c): slots, rails, config
 * and cookie are filled in. A failed setup leaves nothing behind. */
ucs_status_t uct_ha_iface_setup(struct uct_ha_iface *iface);
void         uct_ha_iface_teardown(struct uct_ha_iface *iface);

/* What the peer needs to know of our rail in `slot`. */
struct uct_ha_rail_where uct_ha_iface_where(const struct uct_ha_iface *iface, int slot);

unsigned uct_ha_iface_progress(uct_iface_h tl_iface);

/* Only take what the completion queues hold; progress, no lock held. */
unsigned uct_ha_iface_poll(struct uct_ha_iface *iface);
unsigned uct_ha_iface_poll_slot(struct uct_ha_iface *iface, int slot);

/* Nanoseconds of CLOCK_MONOTONIC. Never on the path of an operation. */
uint64_t uct_ha_now(void);

#endif
