/* SPDX-License-Identifier: BSD-3-Clause */

/* Pairs as the user wants them: UCX_HA_RC_RAILS. */

#include "ha_topo_pair.h"
#include "ha_span.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int ha_topo_groups_given(const char *groups)
{
    return groups != NULL && ha_span_trim(groups, groups + strlen(groups)).length > 0;
}

static int find_rail(const struct ha_topo_rail *rails, int num, struct ha_span span)
{
    for (int i = 0; i < num; i++) {
        if (ha_span_is_rail(span, rails[i].name)) {
            return i;
        }
    }
    return -1;
}

static int unknown_rail(const struct ha_topo_rail *rails, int num, struct ha_span span, char *error, size_t error_size)
{
    int length = snprintf(error, error_size, "'%.*s' is no rail of this host, which has", (int)span.length, span.start);

    for (int i = 0; i < num && length > 0 && (size_t)length < error_size; i++) {
        length += snprintf(error + length, error_size - (size_t)length, " %s", rails[i].name);
    }
    if (num == 0 && length > 0 && (size_t)length < error_size) {
        snprintf(error + length, error_size - (size_t)length, " none");
    }
    return -EINVAL;
}

/* Each member's standby is the next one, the last one's is the first. */
static void link_group(const struct ha_topo_rail *rails, const int *members, int num_members,
                       struct ha_topo_choice *choices)
{
    struct ha_topo_choice *choice;

    for (int i = 0; i < num_members && num_members > 1; i++) {
        choice              = &choices[members[i]];
        choice->standby     = members[(i + 1) % num_members];
        choice->equals      = 1;
        choice->near        = ha_topo_near(&rails[members[i]], &rails[choice->standby]);
        choice->shared_fate = choice->near == HA_TOPO_SAME_CARD;
    }
}

static int choose_group(const struct ha_topo_rail *rails, int num, struct ha_span group, struct ha_topo_choice *choices,
                        char *error, size_t error_size)
{
    const char    *rest = group.start;
    int            members[HA_RAILS_MAX], num_members = 0, rail;
    struct ha_span name;

    while (rest != NULL) {
        name = ha_span_next(&rest, group.start + group.length, '+');
        if (name.length == 0) {
            snprintf(error, error_size, "group '%.*s' has an empty member", (int)group.length, group.start);
            return -EINVAL;
        }
        rail = find_rail(rails, num, name);
        if (rail < 0) {
            return unknown_rail(rails, num, name, error, error_size);
        }
        if (choices[rail].standby != HA_TOPO_UNUSED) {
            snprintf(error, error_size, "'%s' is named twice", rails[rail].name);
            return -EINVAL;
        }
        choices[rail].standby  = HA_TOPO_NONE; /* seen */
        members[num_members++] = rail;         /* distinct, so <= num */
    }
    link_group(rails, members, num_members, choices);
    return 0;
}

int ha_topo_pair_groups(const struct ha_topo_rail *rails, int num, const char *groups, struct ha_topo_choice *choices,
                        char *error, size_t error_size)
{
    const char    *rest = groups, *limit = groups + strlen(groups);
    struct ha_span group;
    int            ret;

    for (int i = 0; i < num; i++) {
        memset(&choices[i], 0, sizeof(choices[i]));
        choices[i].standby = HA_TOPO_UNUSED;
        choices[i].by_user = 1;
    }
    while (rest != NULL) {
        group = ha_span_next(&rest, limit, ',');
        if (group.length == 0) {
            snprintf(error, error_size, "'%s' has an empty group", groups);
            return -EINVAL;
        }
        ret = choose_group(rails, num, group, choices, error, error_size);
        if (ret != 0) {
            return ret;
        }
    }
    return 0;
}
