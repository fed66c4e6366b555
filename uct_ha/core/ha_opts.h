/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_OPTS_H_
#define HA_OPTS_H_

/*
 * Connect options: what each side of a connection wants and can, and what the two
 * make of it. They travel in the header of every control packet, are the same for
 * all connections of an instance and do not change while it lives.
 *
 *   own ──┐
 *         ├─ ha_opts_check ──▶ refused: field, value, limit
 *   peer ─┘         └────────▶ ha_opts_agree ──▶ ibv_modify_qp, per lane
 *
 * Pure; any thread. Both sides come to the same: what one calls rd_init of a lane is
 * rd_resp of the other, everything else is equal, unless both have wishes for `sl` or
 * `traffic_class` that differ: then each keeps its own.
 */

#include <stddef.h>
#include <stdint.h>

#include "ha_state.h"

#define HA_OPTS_SEG_MIN   1024u
#define HA_OPTS_SEG_MAX   (1u << 20)
#define HA_OPTS_QUEUE_MAX 16384u /* far below 2^16, modulo which credits are counted */

struct ha_opts_rail {
    uint8_t rd_init;       /* READs and atomics that it wants to have under way at once */
    uint8_t rd_resp;       /* ... that its device can answer at once */
    uint8_t sl;            /* 0 to 15; 0 = no wish */
    uint8_t traffic_class; /* 0 = no wish */
};                         /* 4 bytes on the wire; all 0 = no such rail */

struct ha_opts {
    uint32_t            seg_size;     /* bytes: the largest message it sends, and has buffers for */
    uint16_t            rx_queue_len; /* messages per connection that it takes ahead, at most */
    uint8_t             timeout;      /* exponent: 4.096 us * 2^timeout */
    uint8_t             retry_count;
    uint8_t             rnr_retry;     /* 7 = for ever */
    uint8_t             min_rnr_timer; /* index into the verbs table, never 0 = the longest delay */
    struct ha_opts_rail rail[HA_SLOTS];
};

/* For one lane. */
struct ha_lane_opts {
    uint8_t timeout, retry_count, rnr_retry, min_rnr_timer, rd_init, rd_resp, sl, traffic_class;
};

/* Can one work with what the peer says? `credits`: its first window. `slots`: rails
 * that both have. 0, or -EPROTO with a sentence that names field, value and limit. */
int ha_opts_check(const struct ha_opts *own, const struct ha_opts *peer, unsigned credits, int slots, char *error,
                  size_t size);

/*
 * For the lane of `slot`; `peer` has passed the check.
 *  rd_init, rd_resp  the lower of what one side asks and the other can answer
 *  timeout, retries  of silence: the lower of both. Failover waits for the end of
 *                    these, and each RTO was fitted to its own; 0 retries, which some
 *                    devices take for a time of their own, only if both want that
 *  rnr_retry, timer  of a receiver that is not ready: the higher of both. That is flow
 *                    control, and the more patient side knows why
 *  sl, traffic_class the only wish, or the own one: data and acknowledgements should
 *                    travel in one class
 */
void ha_opts_agree(const struct ha_opts *own, const struct ha_opts *peer, int slot, struct ha_lane_opts *lane);

/* Wishes for service level or traffic class that contradict each other. */
int ha_opts_classes_differ(const struct ha_opts *own, const struct ha_opts *peer, int slot);

/* "timeout 16, retries 6, ..." Returns buf. */
const char *ha_lane_opts_text(const struct ha_lane_opts *lane, char *buf, size_t size);

#endif
