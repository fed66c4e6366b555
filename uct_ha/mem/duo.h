/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_DUO_H_
#define UCT_HA_DUO_H_

/* A rail and its standby, as a memory domain holds them open, and registering there. */

#include "abi/uct_ha_abi.h"
#include "mem/reg.h"

#define UCT_HA_RAILS 2

struct uct_ha_duo {
    struct ha_rail *rail[UCT_HA_RAILS];    /* [1] is NULL without a standby */
    unsigned        rail_no[UCT_HA_RAILS]; /* of mem/reg.h; [1] = [0] without a standby */
    int             alone;                 /* none is wanted (UCX_HA_RC_ENABLE_BACKUP=n) */
};

/* HA_ACCESS_* of UCT_MD_MEM_ACCESS_*. */
unsigned uct_ha_duo_access(unsigned flags);

/* Register the region on the domain's own rail; says what went wrong, unless
 * `flags` has UCT_MD_MEM_FLAG_HIDE_ERRORS. */
ucs_status_t uct_ha_duo_reg_own(const struct uct_ha_duo *duo, struct uct_ha_mem *mem, unsigned flags);

/* ... on its standby, if there is one. Without it the memory works until the
 * rail is lost: a warning, once per process. */
void uct_ha_duo_reg_standby(const struct uct_ha_duo *duo, struct uct_ha_mem *mem);

#endif
