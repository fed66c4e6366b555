/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MD_H_
#define UCT_HA_MD_H_

/*
 * Memory domain: one per rail. It also opens the rail's standby. Index 0 is
 * always the domain's own rail, 1 its standby.
 */

#include "abi/uct_ha_abi.h"
#include "base/config.h"
#include "mem/reg.h"
#include "verbs/ha_rail.h"

#include <stdint.h>

#define UCT_HA_RAILS 2

struct uct_ha_md {
    uct_md_t        super;
    struct ha_rail *rail[UCT_HA_RAILS]; /* [1] is NULL without a standby */
    unsigned        rail_no[UCT_HA_RAILS]; /* of mem/reg.h; [1] = [0] without a standby */
    int             hopeless;           /* no rail of it worked when it was opened, others did */
    int             cached;             /* handles come from the process's cache */
    double          rcache_overhead;    /* seconds per look-up */
};

/*
 * Packed remote key, on the wire: one 32-bit key per rail, big endian, own
 * rail of the exporting domain first; 0 = not registered on the standby.
 * Unpacked it is held by the uct_rkey_t itself, no allocation: rail 0 in the
 * low half, rail 1 in the high half. Index = the EXPORTER's rail index.
 */
struct uct_ha_packed_rkey {
    uint8_t key[UCT_HA_RAILS][4];
};

static inline uct_rkey_t uct_ha_rkey_make(uint32_t rail0, uint32_t rail1)
{
    return (uct_rkey_t)rail0 | ((uct_rkey_t)rail1 << 32);
}

static inline uint32_t uct_ha_rkey(uct_rkey_t rkey, unsigned rail)
{
    return (uint32_t)(rkey >> (rail * 32));
}

_Static_assert(sizeof(uct_rkey_t) == 8, "two 32-bit keys must fit in uct_rkey_t");

static inline struct uct_ha_md *uct_ha_md(uct_md_h md)
{
    return ucs_container_of(md, struct uct_ha_md, super);
}

static inline struct uct_ha_mem *uct_ha_mem(uct_mem_h memh)
{
    return (struct uct_ha_mem*)memh;
}

/* Methods of the component and the transport (uct/component.c). */
ucs_status_t uct_ha_md_query_resources(uct_component_t *component,
                                       uct_md_resource_desc_t **resources_p,
                                       unsigned *num_resources_p);
ucs_status_t uct_ha_md_open(uct_component_t *component, const char *md_name,
                            const uct_md_config_t *config, uct_md_h *md_p);
ucs_status_t uct_ha_rkey_unpack(uct_component_t *component,
                                const void *rkey_buffer, uct_rkey_t *rkey_p,
                                void **handle_p);
ucs_status_t uct_ha_rkey_release(uct_component_t *component, uct_rkey_t rkey,
                                 void *handle);
ucs_status_t uct_ha_query_devices(uct_md_h md,
                                  uct_tl_device_resource_t **devices_p,
                                  unsigned *num_devices_p);

#endif
