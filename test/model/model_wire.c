/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control packets are snapshots of the core. They stay on the way after they
 * were heard, so that they come again, until newer ones push them out: lost.
 */

#include <string.h>

#include "model.h"

int model_side_would_resend(const struct model_side *side)
{
    static const struct ha_event event = {.kind = HA_EV_TIMER};
    struct ha_action             actions[HA_ACTIONS_MAX];
    struct ha_pair               pair = side->pair;
    int                          n    = 0;

    if (!side->gone && pair.dirty) {
        n = ha_pair_step(&pair, &event, pair.rtx_at, actions);
    }
    for (int i = 0; i < n; i++) {
        if (actions[i].kind == HA_ACT_SEND) {
            return 1;
        }
    }
    return 0;
}

/* A side that has forgotten the pair says no more than that. */
static void snapshot(const struct model_side *side, struct ha_record *record)
{
    if (!side->gone) {
        ha_pair_snapshot(&side->pair, record);
    } else {
        memset(record, 0, sizeof(*record));
        record->flags = record->seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            record->lane[slot].st = HA_LANE_CLOSED;
        }
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (record->lane[slot].cause != HA_CAUSE_NONE) {
            record->lane[slot].cause = HA_CAUSE_FLUSH; /* which one decides nothing */
        }
        if (!model_options.no_echo && !side->gone) {
            continue;
        }
        record->lane[slot].seen_gen = 0;
        record->lane[slot].seen_st  = HA_LANE_CLOSED;
    }
    if (model_options.no_echo) {
        record->seen_epoch = record->seen_flags = 0;
    }
}

/* The present snapshot takes place `n` on the way; what was there is lost. */
int model_side_send(struct model_world *w, int x, int slot, int n)
{
    struct model_side *side = &w->side[x];
    struct ha_record   record;

    (void)slot;
    if (n >= model_options.channel || n > w->net_used[!x]) {
        return 0;
    }
    if (!side->send_wanted && !model_side_would_resend(side)) {
        return 0;
    }
    side->send_wanted = 0;
    snapshot(side, &record);
    for (int i = 0; i < w->net_used[!x]; i++) {
        if (memcmp(&w->net[!x][i], &record, sizeof(record)) == 0) {
            w->net_heard[!x] &= (uint8_t) ~(1u << i);
            return 1;
        }
    }
    w->net[!x][n] = record;
    w->net_heard[!x] &= (uint8_t) ~(1u << n);
    if (n == w->net_used[!x]) {
        w->net_used[!x]++;
    }
    model_tell("sends: epoch %u  0.%u %s  1.%u %s  flags %x", record.epoch, record.lane[0].gen,
               ha_lane_status_name(record.lane[0].st), record.lane[1].gen, ha_lane_status_name(record.lane[1].st),
               record.flags);
    return 1;
}

/* The latest packet does not arrive, and nothing newer is under way. */
int model_side_lose(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    (void)n;
    if (!w->side[x].send_wanted) {
        return 0;
    }
    w->side[x].send_wanted = 0;
    return 1;
}

static int hear(struct model_world *w, int x, int n)
{
    struct ha_record record = w->net[x][n];
    struct ha_event  event  = {.kind = HA_EV_RECORD, .record = &record};

    if (w->side[x].gone) {
        w->side[x].send_wanted = 1;
        return 1;
    }
    model_tell("hears: epoch %u  0.%u %s  1.%u %s  flags %x", record.epoch, record.lane[0].gen,
               ha_lane_status_name(record.lane[0].st), record.lane[1].gen, ha_lane_status_name(record.lane[1].st),
               record.flags);
    if (!model_options.unchecked && ha_packet_record_check(&w->side[x].pair, &record) != 0) {
        model_violation(w, "a genuine control packet is refused");
        return 1;
    }
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_receive(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    if (n >= w->net_used[x] || (w->net_heard[x] >> n & 1)) {
        return 0;
    }
    w->net_heard[x] |= (uint8_t)((model_options.luck & 1u) << n);
    return hear(w, x, n);
}

int model_side_receive_again(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    return n < w->net_used[x] && (w->net_heard[x] >> n & 1) && hear(w, x, n);
}
