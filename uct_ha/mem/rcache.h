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

#include "base/config.h"
#include "mem/duo.h"

/* For a domain of `rail`. *cached_p is 0 when the cache is off, or cannot be had and is not
 * required (RCACHE=try); else the domain has to close it. */
ucs_status_t uct_ha_rcache_open(const struct uct_ha_md_config *config, const char *rail, int *cached_p);
void         uct_ha_rcache_close(void);

/* A region that holds the memory, registered on the domain's own rail. It has
 * to go back. */
ucs_status_t uct_ha_rcache_get(const struct uct_ha_duo *duo, void *address, size_t length, unsigned flags,
                               struct uct_ha_mem **mem_p);
void         uct_ha_rcache_put(struct uct_ha_mem *mem);

#endif
