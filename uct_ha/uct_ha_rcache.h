/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RCACHE_H_
#define UCT_HA_RCACHE_H_

/*
 * Registration cache of a memory domain, on UCX's own ucs_rcache: it sees
 * memory being unmapped and drops what was registered there. A handle from the
 * cache has to go back to it.
 */

#include "uct_ha_md.h"

/* Leaves md->rcache NULL when the cache is off, or cannot be had and is not
 * required (RCACHE=try). */
ucs_status_t uct_ha_rcache_open(struct uct_ha_md *md, const struct uct_ha_md_config *config);
void         uct_ha_rcache_close(struct uct_ha_md *md);

ucs_status_t uct_ha_rcache_get(struct uct_ha_md *md, void *address, size_t length,
                               unsigned flags, struct uct_ha_mem **mem_p);
void         uct_ha_rcache_put(struct uct_ha_md *md, struct uct_ha_mem *mem);

#endif
