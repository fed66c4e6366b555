/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/look.h"

static void choose(struct uct_ha_lanes *lanes)
{
    int look = UCT_HA_LOOK_ALL;

    if (lanes->stopping == 0 && (lanes->used[0] == 0 || lanes->used[1] == 0)) {
        look = lanes->used[1] > 0;
    }
    __atomic_store_n(&lanes->look, look, __ATOMIC_RELAXED);
}

void uct_ha_look_used_locked(struct uct_ha_lanes *lanes, int slot, int more)
{
    lanes->used[slot] += (unsigned)more;
    choose(lanes);
}

void uct_ha_look_stopping_locked(struct uct_ha_lanes *lanes, int more)
{
    lanes->stopping += (unsigned)more;
    choose(lanes);
}
