/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/twins.h"

#include "mem/reg.h"

/* Connections of this process by the rail that UCX chose for them, and all. */
static uint32_t on_rail[HA_RAILS_MAX], all;

static uint32_t count(const uint32_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Another interface has our standby as its own rail, and about as many connections. */
static int has_twin(const struct uct_ha_lanes *lanes)
{
    return lanes->slots == HA_SLOTS && 2 * count(&on_rail[lanes->rail_no[1]]) >= count(&on_rail[lanes->rail_no[0]]);
}

int uct_ha_twins_join(const struct uct_ha_lanes *lanes)
{
    __atomic_add_fetch(&on_rail[lanes->rail_no[0]], 1, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&all, 1, __ATOMIC_RELAXED) > lanes->config->standbys && has_twin(lanes);
}

void uct_ha_twins_leave(const struct uct_ha_lanes *lanes)
{
    __atomic_sub_fetch(&on_rail[lanes->rail_no[0]], 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&all, 1, __ATOMIC_RELAXED);
}
