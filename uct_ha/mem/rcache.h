/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RCACHE_H_
#define UCT_HA_RCACHE_H_

/*
 * The process's registration cache, on UCX's own ucs_rcache: it sees memory
 * being unmapped and drops what was registered there, counts references, and
 * drops the least recently used regions when a limit is set
 * (RCACHE_MAX_REGIONS, RCACHE_MAX_SIZE).
 *
 * All memory domains share it, so UCP, which opens one domain per device and
 * registers on each, gets the same region from all of them and one registration
 * per rail. Without the cache they share nothing: nobody would tell when memory
 * moved under a registration that another domain still holds.
 *
 * Its limits are those of the domain that opened it first.
 */

#include "uct/md.h"

/* Leaves md->cached 0 when the cache is off, or cannot be had and is not
 * required (RCACHE=try). */
ucs_status_t uct_ha_rcache_open(struct uct_ha_md *md, const struct uct_ha_md_config *config);
void         uct_ha_rcache_close(struct uct_ha_md *md);

/* A region that holds the memory, registered on the domain's own rail. It has
 * to go back. */
ucs_status_t uct_ha_rcache_get(const struct uct_ha_md *md, void *address, size_t length,
                               unsigned flags, struct uct_ha_mem **mem_p);
void         uct_ha_rcache_put(struct uct_ha_mem *mem);

#endif
