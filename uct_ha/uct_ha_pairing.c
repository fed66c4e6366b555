/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_pairing.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A piece of the user's string, without copying it. */
struct span {
    const char *start;
    size_t      length;
};

static struct span span_trim(const char *start, const char *end)
{
    struct span span;

    while ((start < end) && isspace((unsigned char)*start)) {
        ++start;
    }
    while ((end > start) && isspace((unsigned char)end[-1])) {
        --end;
    }
    span.start  = start;
    span.length = (size_t)(end - start);
    return span;
}

/* Take the text up to `separator` (or the end) off *rest; NULL rest = no more. */
static struct span span_next(const char **rest, const char *limit, char separator)
{
    const char *start = *rest;
    const char *end   = memchr(start, separator, (size_t)(limit - start));

    *rest = (end == NULL) ? NULL : end + 1;
    return span_trim(start, (end == NULL) ? limit : end);
}

int uct_ha_pair_groups_given(const char *groups)
{
    return (groups != NULL) && (span_trim(groups, groups + strlen(groups)).length > 0);
}

/* "mlx5_0" alone means port 1, as elsewhere in UCX. */
static int span_is_rail(struct span span, const char *name)
{
    size_t length = strlen(name);

    if (memchr(span.start, ':', span.length) == NULL) {
        return (length == span.length + 2) && (strcmp(name + span.length, ":1") == 0) &&
               (memcmp(name, span.start, span.length) == 0);
    }
    return (length == span.length) && (memcmp(name, span.start, length) == 0);
}

static int find_rail(const struct uct_ha_pair_rail *rails, int num, struct span span)
{
    int i;

    for (i = 0; i < num; ++i) {
        if (span_is_rail(span, rails[i].name)) {
            return i;
        }
    }
    return -1;
}

static int unknown_rail(const struct uct_ha_pair_rail *rails, int num,
                        struct span span, char *error, size_t error_size)
{
    int length, i;

    length = snprintf(error, error_size, "'%.*s' is no rail of this host, which has",
                      (int)span.length, span.start);
    for (i = 0; (i < num) && (length > 0) && ((size_t)length < error_size); ++i) {
        length += snprintf(error + length, error_size - (size_t)length, " %s",
                           rails[i].name);
    }
    if ((num == 0) && (length > 0) && ((size_t)length < error_size)) {
        snprintf(error + length, error_size - (size_t)length, " none");
    }
    return -EINVAL;
}

/* Each member's standby is the next one, the last one's is the first. */
static void link_group(const int *members, int num_members, int *standby)
{
    int i;

    for (i = 0; i < num_members; ++i) {
        standby[members[i]] = (num_members == 1) ? UCT_HA_PAIR_NONE :
                              members[(i + 1) % num_members];
    }
}

static int choose_group(const struct uct_ha_pair_rail *rails, int num,
                        struct span group, int *standby, char *error,
                        size_t error_size)
{
    const char *rest = group.start;
    int members[HA_RAILS_MAX];
    int num_members = 0;
    struct span name;
    int rail;

    while (rest != NULL) {
        name = span_next(&rest, group.start + group.length, '+');
        if (name.length == 0) {
            snprintf(error, error_size, "group '%.*s' has an empty member",
                     (int)group.length, group.start);
            return -EINVAL;
        }
        rail = find_rail(rails, num, name);
        if (rail < 0) {
            return unknown_rail(rails, num, name, error, error_size);
        }
        if (standby[rail] != UCT_HA_PAIR_UNUSED) {
            snprintf(error, error_size, "'%s' is named twice", rails[rail].name);
            return -EINVAL;
        }
        standby[rail]          = UCT_HA_PAIR_NONE; /* seen */
        members[num_members++] = rail;             /* distinct, so <= num */
    }

    link_group(members, num_members, standby);
    return 0;
}

static int choose_by_groups(const struct uct_ha_pair_rail *rails, int num,
                            const char *groups, int *standby, char *error,
                            size_t error_size)
{
    const char *rest  = groups;
    const char *limit = groups + strlen(groups);
    struct span group;
    int ret, i;

    for (i = 0; i < num; ++i) {
        standby[i] = UCT_HA_PAIR_UNUSED;
    }

    while (rest != NULL) {
        group = span_next(&rest, limit, ',');
        if (group.length == 0) {
            snprintf(error, error_size, "'%s' has an empty group", groups);
            return -EINVAL;
        }
        ret = choose_group(rails, num, group, standby, error, error_size);
        if (ret != 0) {
            return ret;
        }
    }
    return 0;
}

static int same_card(const struct uct_ha_pair_rail *a, const struct uct_ha_pair_rail *b)
{
    size_t a_device = strcspn(a->name, ":");
    size_t b_device = strcspn(b->name, ":");

    if ((a->node_guid != 0) && (a->node_guid == b->node_guid)) {
        return 1;
    }
    return (a_device == b_device) && (memcmp(a->name, b->name, a_device) == 0);
}

static int near(const struct uct_ha_pair_rail *a, const struct uct_ha_pair_rail *b)
{
    return (a->numa_node < 0) || (b->numa_node < 0) || (a->numa_node == b->numa_node);
}

/* 0 = cannot; else the larger the better. */
static int standby_score(const struct uct_ha_pair_rail *rail,
                         const struct uct_ha_pair_rail *standby)
{
    if ((standby->link_layer == HA_LINK_NONE) ||
        (standby->link_layer != rail->link_layer)) {
        return 0;
    }
    return 1 + (same_card(rail, standby) ? 0 : 2) + (near(rail, standby) ? 1 : 0);
}

/* Starting behind the rail itself spreads equal candidates evenly. */
static int best_standby(const struct uct_ha_pair_rail *rails, int num, int rail)
{
    int best       = UCT_HA_PAIR_NONE;
    int best_score = 0;
    int step, i, score;

    for (step = 1; step < num; ++step) {
        i     = (rail + step) % num;
        score = standby_score(&rails[rail], &rails[i]);
        if (score > best_score) {
            best       = i;
            best_score = score;
        }
    }
    return best;
}

int uct_ha_pair_choose(const struct uct_ha_pair_rail *rails, int num,
                       const char *groups, int *standby, char *error,
                       size_t error_size)
{
    int i;

    if ((num < 0) || (num > HA_RAILS_MAX)) {
        snprintf(error, error_size, "%d rails, at most %d are supported", num,
                 HA_RAILS_MAX);
        return -EINVAL;
    }
    if (uct_ha_pair_groups_given(groups)) {
        return choose_by_groups(rails, num, groups, standby, error, error_size);
    }
    for (i = 0; i < num; ++i) {
        standby[i] = best_standby(rails, num, i);
    }
    return 0;
}
