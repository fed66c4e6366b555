/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_REG_H_
#define UCT_HA_REG_H_

/*
 * Registered memory: one region of this process and its registrations, at most
 * one per rail, made when somebody needs it there. The handle that UCX holds
 * (uct_mem_h) is such a region, the same one for every memory domain that asks
 * the cache for it: a domain finds its own rail and its standby by the rails'
 * numbers.
 *
 *   on the domain's own rail    when UCX registers
 *   on its standby              when its remote key is packed: a peer may use
 *                               it any time; else by the first operation after
 *                               a failover that needs it there
 *
 * So nothing is registered while a failover is decided and switched, however
 * many regions there are: see data/late.h for what was under way.
 *
 * Threads: any. A region is given back by its last user; nobody may use it any
 * more then.
 */

#include "uct_ha.h"
#include "verbs/ha_rail.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct uct_ha_mem {
    void           *address;
    size_t          length;
    unsigned        access;             /* HA_ACCESS_*: constant */
    uint32_t        rails;              /* atomic: bit per rail number where it is registered */
    pthread_mutex_t lock;               /* one registration at a time */
    uint32_t        lkey[HA_RAILS_MAX]; /* valid once the bit was seen */
    struct ha_mr   *mr[HA_RAILS_MAX];
};

/* A number for the rail, 0 to HA_RAILS_MAX - 1, the same for everybody in this
 * process until the last uct_ha_reg_leave(); -ENOSPC when all are taken. The
 * caller keeps the rail open at least until it leaves. */
int  uct_ha_reg_join(struct ha_rail *rail);
void uct_ha_reg_leave(unsigned rail_no);

/* A region that is registered nowhere yet. `access`: HA_ACCESS_* for peers,
 * 0 = local use only. The memory stays the caller's. */
void uct_ha_reg_init(struct uct_ha_mem *mem, void *address, size_t length, unsigned access);

/* Undo every registration. */
void uct_ha_reg_cleanup(struct uct_ha_mem *mem);

/* Register on a rail too, if it is not yet: 0, or what the device answered
 * (negative errno value). A system call and a walk over the pages. */
int uct_ha_reg_on(struct uct_ha_mem *mem, unsigned rail_no);

static inline int uct_ha_reg_is_on(const struct uct_ha_mem *mem, unsigned rail_no)
{
    return (int)(__atomic_load_n(&mem->rails, __ATOMIC_ACQUIRE) >> rail_no & 1u);
}

/* Key that peers use on this rail, 0 = not registered there. */
uint32_t uct_ha_reg_rkey(const struct uct_ha_mem *mem, unsigned rail_no);

#endif
