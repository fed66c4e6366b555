/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for libuct_ha.so in the test of the Open MPI component: it shows
 * the component's view of UCX in the state that FAKE_UCT_HA names.
 *
 *   ok (default)   component "ha" with two devices, fixed totals
 *   refused        no component "ha", and says why
 *   silent         no component "ha", and does not know why
 *   nodevice       component "ha" without devices
 *   norail         component "ha" with devices that nobody uses
 *   down           as ok, one of two ports down, endpoints without a standby
 *   quiet          as ok, and nothing has failed over
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uct/api/uct.h>

#include "uct_ha/uct_ha.h"

static uct_component_h fake_list[1];

static int is_state(const char *name)
{
    const char *state = getenv("FAKE_UCT_HA");

    return state && strcmp(state, name) == 0;
}

ucs_status_t uct_query_components(uct_component_h **components_p, unsigned *num_components_p)
{
    *components_p     = fake_list;
    *num_components_p = is_state("refused") || is_state("silent") ? 0 : 1;
    return UCS_OK;
}

void uct_release_component_list(uct_component_h *components)
{
    (void)components;
}

ucs_status_t uct_component_query(uct_component_h component, uct_component_attr_t *attr)
{
    (void)component;
    if (attr->field_mask & UCT_COMPONENT_ATTR_FIELD_NAME) {
        strcpy(attr->name, "ha");
    }
    if (attr->field_mask & UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT) {
        attr->md_resource_count = is_state("nodevice") ? 0 : 2;
    }
    return UCS_OK;
}

const char *uct_ha_refusal(void)
{
    return is_state("refused") ? "the wrong UCX" : NULL;
}

int uct_ha_stats_get(struct uct_ha_stats *stats, size_t size)
{
    static const struct uct_ha_stats fixed = {.failovers         = 3,
                                              .replayed          = 17,
                                              .retired           = 5,
                                              .outage_ns_total   = 1500000,
                                              .silent_ns_total   = 700000000,
                                              .silent_hist       = {[7] = 2, [9] = 1},
                                              .move_hist         = {[0] = 3},
                                              .rails_up          = 2,
                                              .pairs             = 4,
                                              .standbys          = 4,
                                              .heartbeats_missed = 9};
    struct uct_ha_stats              now   = fixed;

    if (is_state("norail")) {
        now.rails_up = 0;
    } else if (is_state("down")) {
        now.rails_up = now.rails_down = now.ep_errors = 1;
        now.standbys                                  = 0;
    } else if (is_state("quiet")) {
        now.failovers = 0;
    }
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
    return 0;
}

/* Between the two there is none, as where a device was opened anew. */
int uct_ha_rail_stats_get(unsigned index, struct uct_ha_rail_stats *stats, size_t size)
{
    memset(stats, 0, size);
    if (index == 1) {
        return -ENOENT;
    }
    (void)snprintf(stats->name, sizeof(stats->name), "fake%u:1", index / 2);
    return index > 2 ? -EINVAL : 0;
}
