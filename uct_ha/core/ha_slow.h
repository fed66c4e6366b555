/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_SLOW_H_
#define HA_SLOW_H_

/*
 * Is a rail that answers many times slower than it used to? Its norm is a moving
 * average of the round trips of its probes (weight 1/16). A round trip of
 * `factor` norms or more, and of HA_SLOW_FLOOR_NS and `floor` at least, is slow; it raises the
 * norm only by 1/1024, so that a rail which is slow for many minutes has a new norm
 * in the end. HA_SLOW_PROBES slow ones in a row make the rail slow, as
 * many normal ones in a row make it normal again.
 *
 * A host that is busy answers slowly on all its rails: only a rail that is slow
 * while the other one is not is to be left.
 *
 * A zeroed struct is ready. Pure; times in nanoseconds.
 */

#include <stdint.h>

#define HA_SLOW_WARM_UP  16u /* probes before the norm is one */
#define HA_SLOW_PROBES   5u
#define HA_SLOW_FLOOR_NS 500000u /* less is nobody's trouble */

struct ha_slow {
    uint64_t norm;
    unsigned seen;   /* probes, up to HA_SLOW_WARM_UP */
    unsigned streak; /* probes in a row that speak against `is_slow` */
    uint8_t  is_slow;
    uint8_t  last; /* the latest probe was slow */
};

static inline void ha_slow_probe(struct ha_slow *slow, double factor, uint64_t floor, uint64_t rtt)
{
    int is_slow = slow->seen == HA_SLOW_WARM_UP && rtt >= HA_SLOW_FLOOR_NS && rtt >= floor &&
                  (double)rtt >= factor * (double)slow->norm;

    if (slow->seen < HA_SLOW_WARM_UP) {
        slow->seen++;
        slow->norm = slow->norm - slow->norm / slow->seen + rtt / slow->seen;
    } else if (is_slow) {
        slow->norm += slow->norm / 1024 + 1;
    } else {
        slow->norm = slow->norm - slow->norm / 16 + rtt / 16;
    }
    slow->last   = (uint8_t)is_slow;
    slow->streak = is_slow == slow->is_slow ? 0 : slow->streak + 1;
    if (slow->streak == HA_SLOW_PROBES) {
        slow->streak  = 0;
        slow->is_slow = (uint8_t)is_slow;
    }
}

/* Nobody has asked for a while: the norm is what it was, and whether the rail is slow is to be found out anew. */
static inline void ha_slow_forget(struct ha_slow *slow)
{
    slow->streak  = 0;
    slow->is_slow = 0;
    slow->last    = 0;
}

/* The rail is slow, and that is the rail's doing. */
static inline int ha_slow_is_worse(const struct ha_slow *slow, const struct ha_slow *other)
{
    return slow->is_slow && other->seen == HA_SLOW_WARM_UP && !other->is_slow && !other->last;
}

#endif
