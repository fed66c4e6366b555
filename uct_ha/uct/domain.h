/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_DOMAIN_H_
#define UCT_HA_DOMAIN_H_

/*
 * Memory domain: one per rail. It also opens the rail's standby. Index 0 is
 * always the domain's own rail, 1 its standby.
 */

#include "abi/uct_ha_abi.h"
#include "mem/duo.h"

struct uct_ha_md {
    uct_md_t          super;
    struct uct_ha_duo duo;
    int               hopeless;        /* no rail of it worked when it was opened, others did */
    int               cached;          /* handles come from the process's cache */
    double            rcache_overhead; /* seconds per look-up */
};

static inline struct uct_ha_md *uct_ha_md(uct_md_h md)
{
    return ucs_container_of(md, struct uct_ha_md, super);
}

#endif
