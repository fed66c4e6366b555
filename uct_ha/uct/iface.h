/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IFACE_H_
#define UCT_HA_IFACE_H_

/*
 * An interface of transport `ha_rc`: of each room below, the part that all its connections
 * share. Slot 0 is the UCX device it was opened on, slot 1 the standby rail.
 *
 * Progress owns the data part (flows, lanes) and takes no lock for it. The control part (pairs,
 * ctl) is guarded by lanes.wake.lock, shared with UCX's async thread and the job threads. The
 * two meet in lanes.wake: it says when progress should look at the control part.
 */

#include "base/config.h"
#include "ctl/ctl.h"
#include "data/flow.h"

#define UCT_HA_POLL_BATCH 16 /* completions that one call of progress takes per rail, if there are */

struct uct_ha_iface {
    uct_base_iface_t           super;
    struct uct_ha_iface_config config;
    struct uct_ha_lanes        lanes;
    struct uct_ha_flows        flows;
    struct uct_ha_pairs        pairs;
    struct uct_ha_ctl          ctl;
    struct ha_wc               stash[HA_SLOTS]; /* completion found while arming */
    uint8_t                    stashed;         /* bit per slot */
    uint8_t                    patience;        /* calls of progress until all queues are looked at */
    int                        event_fd;
};

static inline struct uct_ha_iface *uct_ha_iface(uct_iface_h tl_iface)
{
    return ucs_container_of((uct_base_iface_t *)(void *)tl_iface, struct uct_ha_iface, super);
}

#endif
