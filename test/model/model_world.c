/* SPDX-License-Identifier: BSD-3-Clause */

/* Where a world starts, where it should get to, and the table of everything
 * that may happen in between. */

#include <stdio.h>
#include <string.h>

#include "model.h"

struct model_options model_options = {.ops = {"SW", "S"}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES};

/* ---- operations ---- */

unsigned model_num_ops(int x)
{
    return (unsigned)strlen(model_options.ops[x]);
}

uint8_t model_ops_of_kind(int x, char kind)
{
    uint8_t mask = 0;

    for (unsigned i = 0; model_options.ops[x][i] != '\0'; i++) {
        if (model_kind(x, i) == kind) {
            mask |= (uint8_t)(1u << i);
        }
    }
    return mask;
}

int model_has_quiet(int x)
{
    for (unsigned i = 0; model_options.ops[x][i] != '\0'; i++) {
        if (model_is_quiet(x, i)) {
            return 1;
        }
    }
    return 0;
}

unsigned model_packets(int x, unsigned op)
{
    return model_kind(x, op) == 'W' ? 2 : 1;
}

/* Close to the wrap. The same for every generation: in the product it is drawn,
 * but nothing may rest on that. */
uint32_t model_psn(int slot)
{
    return HA_PSN_MASK - 1 - (uint32_t)slot;
}

uint16_t model_mtu(int slot)
{
    (void)slot;
    return 1024;
}

/* ---- what may happen ---- */

const struct model_thing model_things[] = {
    {"post", 2, 2, 1, MODEL_DATA, model_data_post},
    {"tail", 2, 1, 1, MODEL_DATA, model_data_tail},
    {"execute", 2, 2, 1, MODEL_DATA, model_data_execute},
    {"late packet executes", 2, 2, 1, MODEL_LUCK, model_data_execute_late},
    {"acknowledge", 2, 2, 1, MODEL_DATA, model_data_ack},
    {"late acknowledgement", 2, 2, 1, MODEL_LUCK, model_data_ack_late},
    {"poll sends", 2, 2, 4, MODEL_DATA, model_data_poll_send},
    {"message becomes visible", 2, 2, 1, MODEL_DATA, model_data_show_receive},
    {"fence settles", 2, 2, 1, 0, model_side_settle},
    {"no proof: the count is declared", 2, 2, 1, 0, model_card_declare},
    {"the drain marker is given up", 2, 2, 1, 0, model_card_give_up},
    {"control context runs", 2, 1, 1, 0, model_side_run_async},
    {"progress runs", 2, 1, 1, 0, model_side_run_progress},
    {"connect job ends", 2, 2, 2, 0, model_side_connected},
    {"resolution is told", 2, 2, 1, 0, model_side_resolved},
    {"send control packet", 2, 1, 2, 0, model_side_send},
    {"receive control packet", 2, 1, 2, 0, model_side_receive},
    {"control packet comes again", 2, 1, 2, MODEL_LUCK, model_side_receive_again},
    {"control packet is lost", 2, 1, 1, MODEL_LUCK, model_side_lose},
    {"detect", 2, 2, 1, 0, model_side_detect},
    {"work goes back to rail 0", 1, 1, 1, 0, model_side_fail_back},
    {"port comes up", 2, 2, 1, 0, model_side_port_up},
    {"user lets go", 2, 1, 1, 0, model_side_close},
    {"RAIL IS CUT", 1, 2, 1, MODEL_LUCK, model_data_cut},
    {"RAIL IS CUT, and that noticed", 2, 2, 1, MODEL_LUCK, model_side_cut_noticed},
    {"A CARD IS GONE", 2, 2, 2, MODEL_LUCK, model_card_dies},
    {"FALSE ALARM", 2, 2, 1, MODEL_LUCK, model_side_alarm},
    {"FALSE SUSPICION", 2, 2, 1, MODEL_LUCK, model_side_suspect},
    {"DEADLINE PASSES", 2, 1, 1, MODEL_LUCK, model_side_deadline},
    {"USER CANCELS", 2, 1, 1, MODEL_LUCK, model_side_cancel},
};

const unsigned model_num_things = sizeof(model_things) / sizeof(model_things[0]);

static unsigned thing_of(model_label label)
{
    return label >> 4;
}

model_label model_next_label(model_label label)
{
    unsigned thing = thing_of(label), i;

    if (label == MODEL_NO_LABEL) {
        return 0;
    }
    i = (label & 15u) + 1;
    for (;; i = 0, thing++) {
        if (thing == model_num_things) {
            return MODEL_NO_LABEL;
        }
        for (; i < 16; i++) {
            if ((i & 1) < model_things[thing].sides && (i >> 1 & 1) < model_things[thing].slots &&
                (i >> 2) < model_things[thing].variants) {
                return (model_label)(thing << 4 | i);
            }
        }
    }
}

/* May be left out in this run: what never happens costs time only. */
static int never_happens(unsigned thing)
{
    int (*happen)(struct model_world * w, int x, int slot, int n) = model_things[thing].happen;

    return (happen == model_data_poll_send && !model_options.late_sends) ||
           (happen == model_data_tail && !model_has_quiet(0) && !model_has_quiet(1)) ||
           (happen == model_data_show_receive && !model_options.late_recvs) ||
           ((happen == model_side_connected || happen == model_side_resolved) && !model_options.split) ||
           ((happen == model_data_execute_late || happen == model_data_ack_late) && model_options.no_late) ||
           (happen == model_side_receive_again && !model_options.luck) ||
           (happen == model_data_cut && model_options.reduced) ||
           (happen == model_side_cut_noticed && !model_options.reduced) ||
           (happen == model_side_fail_back && !model_options.failback) ||
           (happen == model_side_port_up && !model_options.ports) ||
           ((happen == model_card_declare || happen == model_card_give_up || happen == model_card_dies) &&
            !model_options.cards) ||
           (happen == model_side_close && !model_options.closing);
}

int model_happen(struct model_world *w, model_label label)
{
    const struct model_thing *thing = &model_things[thing_of(label)];
    int                       x = label & 1, slot = label >> 1 & 1, n = label >> 2 & 3;

    if (never_happens(thing_of(label))) {
        return 0;
    }
    if (w->side[x].gone && thing->happen != model_side_send && thing->happen != model_side_receive &&
        thing->happen != model_side_receive_again && thing->happen != model_side_lose &&
        thing->happen != model_data_cut) {
        return 0;
    }
    return thing->happen(w, x, slot, n);
}

int model_is_data(model_label label)
{
    return (model_things[thing_of(label)].flags & MODEL_DATA) != 0;
}

int model_is_luck(model_label label)
{
    return (model_things[thing_of(label)].flags & MODEL_LUCK) != 0;
}

const char *model_label_text(model_label label, char *buf, unsigned size)
{
    const struct model_thing *thing = &model_things[thing_of(label)];
    unsigned                  at    = 0;

    if (thing->sides == 2) {
        at = (unsigned)snprintf(buf, size, "side %u: ", label & 1u);
    }
    at += (unsigned)snprintf(buf + at, size - at, "%s", thing->name);
    if (thing->slots == 2) {
        snprintf(buf + at, size - at, " %u", label >> 1 & 1u);
    }
    return buf;
}

void model_copy(struct model_world *to, const struct model_world *from)
{
    *to = *from;
    for (int x = 0; x < 2; x++) {
        to->side[x].log.ops = to->side[x].log_ops;
    }
}

/* ---- the start ---- */

static int do_thing(struct model_world *w, int (*happen)(struct model_world *, int, int, int), int x, int slot)
{
    struct model_world copy;
    uint8_t            before[MODEL_BYTES_MAX], after[MODEL_BYTES_MAX];

    model_copy(&copy, w);
    if (!happen(&copy, x, slot, 0)) {
        return 0;
    }
    model_pack(w, before);
    model_pack(&copy, after);
    model_copy(w, &copy);
    return memcmp(before, after, sizeof(before)) != 0;
}

/* Let the two sides finish what they have to do, without posting and without
 * bad luck. The first packets that say FENCED are kept in `kept`. */
static void come_to_rest(struct model_world *w, struct ha_record *kept)
{
    static int (*const steps[])(struct model_world *, int, int, int) = {
        model_side_settle,       model_side_connected, model_side_run_async, model_side_resolved,
        model_side_run_progress, model_side_send,      model_side_receive};
    int more, rounds = 0;

    do {
        more = 0;
        if (rounds++ == 1000) {
            model_violation(w, "L1 the core never comes to rest");
        }
        for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            for (int n = 0; n < 4; n++) {
                more |= do_thing(w, steps[i], n & 1, n >> 1);
            }
        }
        for (int x = 0; x < 2 && kept != 0; x++) {
            if (kept[x].epoch == 0 && w->net_used[x] && w->net[x][0].lane[0].st == HA_LANE_FENCED) {
                kept[x] = w->net[x][0];
            }
        }
    } while (more && w->violation == 0);
}

static void lose_lane(struct model_world *w, int x, int slot, struct ha_record *kept)
{
    w->alarms = 1;
    do_thing(w, model_side_alarm, x, slot);
    come_to_rest(w, kept);
}

static void rail_up(struct model_world *w, int slot)
{
    struct ha_event event = {.kind = HA_EV_RAIL, .slot = slot, .value = 1};

    for (int x = 0; x < 2; x++) {
        model_side_give(w, x, &event);
        model_side_follow(w, x);
    }
}

static void start_sides(struct model_world *w)
{
    static const struct ha_event event                  = {.kind = HA_EV_START};
    uint8_t                      blank[MODEL_BYTES_MAX] = {0};

    model_unpack(w, blank);
    for (int x = 0; x < 2; x++) {
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            w->side[x].pair.lane[slot].st = w->side[x].pair.view[slot].st = w->side[x].pair.view[slot].seen_st =
                HA_LANE_CLOSED;
        }
        for (unsigned i = 0; i < model_num_ops(x) && model_kind(x, i) != 'T'; i++) {
            ha_log_append(&w->side[x].log, (enum ha_op_kind)w->side[x].log_ops[i].kind, w->side[x].log_ops[i].flags,
                          w->side[x].log_ops[i].length);
        }
        model_side_give(w, x, &event);
    }
}

void model_start(struct model_world *w)
{
    struct ha_record kept[2];
    int              telling = model_telling;

    memset(kept, 0, sizeof(kept));
    model_telling = model_eager = 0;
    start_sides(w);
    rail_up(w, 0);
    if (model_options.start != MODEL_START_NOTHING) {
        come_to_rest(w, 0);
    }
    rail_up(w, 1);
    if (model_options.start >= MODEL_START_TWO_LANES) {
        come_to_rest(w, 0);
    }
    if (model_options.start >= MODEL_START_MOVED) {
        lose_lane(w, 0, 0, kept);
    }
    if (model_options.start == MODEL_START_LATE) {
        lose_lane(w, 1, 1, 0);
        for (int x = 0; x < 2; x++) {
            w->net[x][1]   = kept[x];
            w->net_used[x] = 2;
            w->net_heard[x] |= (uint8_t)(model_options.luck ? 2 : 0);
        }
    }
    w->cuts       = model_options.cuts;
    w->alarms     = model_options.alarms;
    w->suspicions = model_options.suspicions;
    w->giveups    = model_options.giveups;
    w->cards      = model_options.cards;
    model_telling = telling;
    model_eager   = model_options.reduced;
    for (int x = 0; x < 2; x++) {
        model_side_follow(w, x);
    }
}

/* ---- the goal ---- */

/* All that somebody asked for. */
int model_has_ended(const struct model_world *w, int x)
{
    return (w->side[x].ended | model_ops_of_kind(x, 'T')) == (1u << model_num_ops(x)) - 1;
}

/* Ready for the next failover: one lane in use, and a standby. */
static int is_ready(const struct model_world *w, int x)
{
    const struct model_side *side = &w->side[x];

    return side->tx_slot != HA_NO_SLOT &&
           (ha_pair_standby(&side->pair) != HA_NO_SLOT || model_options.for_ever || model_options.single);
}

int model_goal(const struct model_world *w)
{
    int failed = w->side[0].failed != 0;

    if (model_options.closing) {
        return w->side[0].gone && w->side[1].gone;
    }
    if ((w->side[1].failed != 0) != failed) {
        return 0;
    }
    for (int x = 0; x < 2; x++) {
        if (!model_has_ended(w, x)) {
            return 0;
        }
        if (!failed && ((model_receivers(x) & ~w->side[x].delivered & ~w->side[x].doubt) != 0 || !is_ready(w, x))) {
            return 0;
        }
    }
    return 1;
}
