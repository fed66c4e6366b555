/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_RAIL_STATE_H_
#define HTE_RAIL_STATE_H_

/*
 * Health and speed of one rail. Pure: times are arguments, in nanoseconds of one clock.
 *
 *         `errors` errors within `window`, and another rail is up
 *     UP ────────────────────────────────────────────────────────▶ PAUSED for `pause`
 *      ▲                                                               │
 *      └───────────── time is over ────────────────────────────────────┘
 *
 * Each further pause is twice as long, up to `pause_max`; after as long without an error as the last pause lasted,
 * and at least one success, the next one is short again.
 */

#include <stdbool.h>
#include <stdint.h>

struct hte_rail_rule {
    uint32_t errors; /* >= 1, <= HTE_RAIL_ERRORS_MAX */
    uint64_t window, pause, pause_max;
};

#define HTE_RAIL_ERRORS_MAX 32

struct hte_rail_health {
    uint64_t when[HTE_RAIL_ERRORS_MAX]; /* of the latest errors, a ring */
    uint32_t next, count;               /* of the ring */
    uint64_t paused_until;              /* 0: never was */
    uint64_t last_pause;                /* its length; 0: the next is the first */
};

/* An error. Returns whether a pause begins: never without an alternative. */
bool hte_rail_error(struct hte_rail_health *health, const struct hte_rail_rule *rule, uint64_t now,
                    bool has_alternative);
/* A success: in calm the length of the pauses is forgotten. Errors count as long as they are in the window: a rail
 * that fails every other time is no good. */
void hte_rail_success(struct hte_rail_health *health, uint64_t now);

static inline bool hte_rail_is_paused(const struct hte_rail_health *health, uint64_t now)
{
    return now < health->paused_until;
}

/* Bandwidth as a moving average: each window of at least 1 ms in which something was under way weighs 1/8. */
struct hte_rate {
    uint64_t begin; /* of the window; 0: none is open */
    uint64_t bytes; /* completed in it */
    uint64_t per_second;
};

/* bytes completed; `inflight_before` > 0: including them. */
void hte_rate_add(struct hte_rate *rate, uint64_t bytes, uint64_t now);
/* The first bytes were posted after nothing was under way. */
void hte_rate_begin(struct hte_rate *rate, uint64_t now);

/* Time until `bytes` more would be through, in nanoseconds; with no rate known as if 1 GB/s. */
uint64_t hte_rate_predict(const struct hte_rate *rate, uint64_t inflight, uint64_t bytes);

#endif
