/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_opts.h"

#include <errno.h>
#include <stdio.h>

static uint8_t lower(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static uint8_t higher(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* ---- what cannot be ---------------------------------------------------------------- */

struct field {
    const char *name;
    unsigned    value, min, max;
};

static int check_fields(const struct field *fields, size_t num, const char *where, char *error, size_t size)
{
    for (size_t i = 0; i < num; i++) {
        const struct field *field = &fields[i];

        if (field->value < field->min || field->value > field->max) {
            snprintf(error, size, "%s=%u%s is out of range, it must be %u to %u", field->name, field->value, where,
                     field->min, field->max);
            return -EPROTO;
        }
    }
    return 0;
}

#define NUM(_array) (sizeof(_array) / sizeof((_array)[0]))

static int check_rail(const struct ha_opts_rail *rail, int slot, char *error, size_t size)
{
    const struct field fields[] = {
        {"rd_init", rail->rd_init, 1, 255},
        {"rd_resp", rail->rd_resp, 1, 255}, /* GET and atomics would wait for ever */
        {"sl", rail->sl, 0, 15},
    };

    return check_fields(fields, NUM(fields), slot == 0 ? " of rail 0" : " of rail 1", error, size);
}

static int check_queues(const struct ha_opts *own, const struct ha_opts *peer, unsigned credits, char *error,
                        size_t size)
{
    const struct field fields[] = {
        {"seg_size", peer->seg_size, HA_OPTS_SEG_MIN, HA_OPTS_SEG_MAX},
        {"rx_queue_len", peer->rx_queue_len, 1, HA_OPTS_QUEUE_MAX},
        {"credits", credits, 1, peer->rx_queue_len},
    };

    if (check_fields(fields, NUM(fields), "", error, size) != 0) {
        return -EPROTO;
    }
    if (peer->seg_size != own->seg_size) {
        snprintf(error, size,
                 "seg_size=%u, but ours is %u: the longer messages find no buffer that "
                 "takes them; give the same UCX_HA_RC_SEG_SIZE to all processes",
                 (unsigned)peer->seg_size, (unsigned)own->seg_size);
        return -EPROTO;
    }
    return 0;
}

int ha_opts_check(const struct ha_opts *own, const struct ha_opts *peer, unsigned credits, int slots, char *error,
                  size_t size)
{
    const struct field fields[] = {
        {"timeout", peer->timeout, 1, 31}, /* 0 = the hardware waits for ever */
        {"retry_count", peer->retry_count, 0, 7},
        {"rnr_retry", peer->rnr_retry, 0, 7},
        {"min_rnr_timer", peer->min_rnr_timer, 1, 31},
    };

    if (check_queues(own, peer, credits, error, size) != 0 || check_fields(fields, NUM(fields), "", error, size) != 0) {
        return -EPROTO;
    }
    for (int slot = 0; slot < slots; slot++) {
        if (check_rail(&peer->rail[slot], slot, error, size) != 0) {
            return -EPROTO;
        }
    }
    return 0;
}

/* ---- what becomes of it ---------------------------------------------------------------- */

void ha_opts_agree(const struct ha_opts *own, const struct ha_opts *peer, int slot, struct ha_lane_opts *lane)
{
    const struct ha_opts_rail *mine = &own->rail[slot], *its = &peer->rail[slot];

    lane->timeout       = lower(own->timeout, peer->timeout);
    lane->retry_count   = lower(own->retry_count, peer->retry_count);
    lane->rnr_retry     = higher(own->rnr_retry, peer->rnr_retry);
    lane->min_rnr_timer = higher(own->min_rnr_timer, peer->min_rnr_timer);
    lane->rd_init       = lower(mine->rd_init, its->rd_resp);
    lane->rd_resp       = lower(mine->rd_resp, its->rd_init);
    lane->sl            = mine->sl != 0 ? mine->sl : its->sl;
    lane->traffic_class = mine->traffic_class != 0 ? mine->traffic_class : its->traffic_class;
    if (lane->retry_count == 0 && own->retry_count != peer->retry_count) {
        lane->retry_count = 1;
    }
}

static int contradict(uint8_t a, uint8_t b)
{
    return a != 0 && b != 0 && a != b;
}

int ha_opts_classes_differ(const struct ha_opts *own, const struct ha_opts *peer, int slot)
{
    const struct ha_opts_rail *mine = &own->rail[slot], *its = &peer->rail[slot];

    return contradict(mine->sl, its->sl) || contradict(mine->traffic_class, its->traffic_class);
}

const char *ha_lane_opts_text(const struct ha_lane_opts *lane, char *buf, size_t size)
{
    snprintf(buf, size,
             "timeout %u, retries %u, RNR retries %u, RNR timer %u, reads and atomics %u "
             "out %u in, SL %u, traffic class %u",
             lane->timeout, lane->retry_count, lane->rnr_retry, lane->min_rnr_timer, lane->rd_init, lane->rd_resp,
             lane->sl, lane->traffic_class);
    return buf;
}
