/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/rails.h"

#include "topo/ha_discover.h"

#include <pthread.h>
#include <string.h>

/* What was learnt last, when every rail could be opened. */
static pthread_mutex_t     learnt_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uct_ha_rails learnt;

int uct_ha_rails_list(struct uct_ha_rails *rails)
{
    char names[HA_RAILS_MAX][HA_RAIL_NAME_MAX];

    rails->num = ha_rail_list(names, HA_RAILS_MAX);
    for (int i = 0; i < rails->num; i++) {
        ha_topo_rail_init(&rails->rail[i], names[i]);
    }
    return rails->num;
}

/* Returns whether the rail could be opened. */
static int learn_rail(struct ha_topo_rail *topo, const struct ha_rail_opts *opts)
{
    const struct ha_rail_limits *limits;
    struct ha_rail              *rail;

    if (ha_rail_open(topo->name, opts, &rail) < 0) {
        return 0;
    }
    limits           = ha_rail_limits(rail);
    topo->link_layer = (enum ha_link_layer)ha_rail_addr(rail).link_layer;
    topo->active     = ha_rail_up(rail);
    topo->numa_node  = limits->numa_node;
    topo->node_guid  = limits->node_guid;
    topo->image_guid = limits->image_guid;
    ha_rail_close(rail);
    return 1;
}

static int same_names(const struct uct_ha_rails *a, const struct uct_ha_rails *b)
{
    int same = a->num == b->num;

    for (int i = 0; same && i < a->num; i++) {
        same = strcmp(a->rail[i].name, b->rail[i].name) == 0;
    }
    return same;
}

void uct_ha_rails_learn(struct uct_ha_rails *rails, const struct ha_rail_opts *opts)
{
    int opened = 0;

    pthread_mutex_lock(&learnt_lock);
    if (same_names(rails, &learnt)) {
        memcpy(rails->rail, learnt.rail, sizeof(rails->rail));
    } else {
        for (int i = 0; i < rails->num; i++) {
            opened += learn_rail(&rails->rail[i], opts);
        }
        ha_discover(rails->rail, rails->num);
        if (opened == rails->num) {
            learnt = *rails;
        }
    }
    pthread_mutex_unlock(&learnt_lock);
}

int uct_ha_rails_pair(struct uct_ha_rails *rails, const char *groups, char *error, size_t error_size)
{
    if (ha_topo_groups_given(groups)) {
        return ha_topo_pair_groups(rails->rail, rails->num, groups, rails->choice, error, error_size);
    }
    ha_topo_pair(rails->rail, rails->num, rails->choice);
    return 0;
}
