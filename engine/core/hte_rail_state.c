/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_rail_state.h"

#include <stddef.h>

#define NS_PER_SECOND  1000000000ull
#define RATE_WINDOW_NS 1000000ull
#define UNKNOWN_RATE   1000000000ull

static uint32_t errors_within(const struct hte_rail_health *health, uint64_t now, uint64_t window)
{
    uint32_t i, count = 0;

    for (i = 0; i < health->count; ++i) {
        count += now - health->when[i] <= window;
    }
    return count;
}

static uint64_t next_pause(const struct hte_rail_health *health, const struct hte_rail_rule *rule)
{
    uint64_t pause = health->last_pause == 0 ? rule->pause : 2 * health->last_pause;

    return pause > rule->pause_max ? rule->pause_max : pause;
}

bool hte_rail_error(struct hte_rail_health *health, const struct hte_rail_rule *rule, uint64_t now,
                    bool has_alternative)
{
    health->when[health->next] = now;
    health->next               = (health->next + 1) % HTE_RAIL_ERRORS_MAX;
    if (health->count < HTE_RAIL_ERRORS_MAX) {
        ++health->count;
    }
    if (!has_alternative || hte_rail_is_paused(health, now) ||
        errors_within(health, now, rule->window) < rule->errors) {
        return false;
    }
    health->last_pause   = next_pause(health, rule);
    health->paused_until = now + health->last_pause;
    health->count        = 0;
    health->next         = 0;
    return true;
}

void hte_rail_success(struct hte_rail_health *health, uint64_t now)
{
    uint64_t newest = 0;
    uint32_t i;

    for (i = 0; i < health->count; ++i) {
        newest = health->when[i] > newest ? health->when[i] : newest;
    }
    if (newest < health->paused_until) {
        newest = health->paused_until;
    }
    if (now > newest && now - newest >= health->last_pause) {
        health->last_pause = 0;
    }
}

void hte_rate_begin(struct hte_rate *rate, uint64_t now)
{
    rate->begin = now;
    rate->bytes = 0;
}

void hte_rate_add(struct hte_rate *rate, uint64_t bytes, uint64_t now)
{
    uint64_t sample;

    rate->bytes += bytes;
    if (now < rate->begin + RATE_WINDOW_NS) {
        return;
    }
    sample           = (uint64_t)((double)rate->bytes * NS_PER_SECOND / (double)(now - rate->begin));
    rate->per_second = rate->per_second == 0 ? sample : rate->per_second - rate->per_second / 8 + sample / 8;
    hte_rate_begin(rate, now);
}

uint64_t hte_rate_predict(const struct hte_rate *rate, uint64_t inflight, uint64_t bytes)
{
    uint64_t per_second = rate->per_second == 0 ? UNKNOWN_RATE : rate->per_second;

    return (uint64_t)((double)(inflight + bytes) * NS_PER_SECOND / (double)per_second);
}
