/* SPDX-License-Identifier: BSD-3-Clause */

/* One schedule: draws what happens next, bad luck included, until both sides
 * have finished or something is wrong. */

#include <stdio.h>
#include <string.h>

#include "sim.h"

#define STEPS_MAX 400000u

/* splitmix64 */
uint64_t sim_random(struct sim_world *w)
{
    uint64_t z = (w->random += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t random_time(struct sim_world *w, uint64_t from, uint64_t to)
{
    return from + sim_random(w) % (to - from);
}

/* ---- what may happen ---- */

enum owner { NATURE, CONTROL, PROGRESS };

static int no_slot_timer(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_side_timer(w, x);
}

static int no_slot_send(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_side_send(w, x);
}

static int no_slot_receive(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_wire_receive(w, x);
}

static int no_slot_lost(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_side_lost(w, x);
}

static int run_control(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_side_pair_run(w, x, HA_CTX_ASYNC);
}

static int run_progress(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_side_pair_run(w, x, HA_CTX_PROGRESS);
}

static int no_slot_submit(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return (!w->lazy || sim_chance(w, 10)) && sim_work_submit(w, x);
}

static int no_slot_post(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_work_post(w, x);
}

static int no_slot_close(struct sim_world *w, int x, int slot)
{
    (void)slot;
    return sim_work_close(w, x);
}

static int rare_alarm(struct sim_world *w, int x, int slot)
{
    return sim_chance(w, 4) && sim_side_alarm(w, x, slot);
}

/* The program computes: control context only. */
static int compute(struct sim_world *w, int x, int slot)
{
    (void)slot;
    if (!sim_chance(w, 3))
        return 0;
    w->side[x].busy_until = w->now + random_time(w, SIM_US, 20 * SIM_MS);
    return 1;
}

static const struct {
    enum owner owner;
    unsigned   weight;
    int (*happens)(struct sim_world *w, int x, int slot);
} things[] = {
    { NATURE,   6, sim_data_wire },           { NATURE,   6, sim_data_execute },
    { NATURE,   5, sim_data_ack },            { NATURE,   3, sim_data_complete_receive },
    { NATURE,   1, sim_data_give_up },        { NATURE,   1, sim_data_settle },
    { CONTROL,  2, sim_side_settled },        { CONTROL,  2, sim_side_connected },
    { CONTROL,  2, sim_side_port },           { CONTROL,  1, sim_side_suspect },
    { CONTROL,  1, rare_alarm },              { CONTROL,  2, no_slot_timer },
    { CONTROL,  4, no_slot_send },            { CONTROL,  6, no_slot_receive },
    { CONTROL,  4, run_control },             { CONTROL,  1, no_slot_lost },
    { PROGRESS, 4, run_progress },            { PROGRESS, 2, no_slot_submit },
    { PROGRESS, 5, no_slot_post },            { PROGRESS, 4, sim_work_poll_send },
    { PROGRESS, 1, sim_work_poll_error },     { PROGRESS, 4, sim_work_poll_receive },
    { PROGRESS, 4, sim_work_deliver },        { PROGRESS, 2, sim_work_created },
    { PROGRESS, 2, sim_work_drained },        { PROGRESS, 2, sim_work_resolved },
    { PROGRESS, 2, sim_work_check_close },    { PROGRESS, 1, no_slot_close },
    { PROGRESS, 1, compute },
};

#define THINGS ((unsigned)(sizeof(things) / sizeof(things[0])))

static int happen(struct sim_world *w, unsigned thing, int x, int slot)
{
    const struct sim_side *side = &w->side[x];

    if (things[thing].owner != NATURE && side->dead)
        return 0;
    if (things[thing].owner != NATURE && side->gone && things[thing].happens != no_slot_receive)
        return 0;
    if (things[thing].owner == PROGRESS && w->now < side->busy_until)
        return 0;
    return things[thing].happens(w, x, slot);
}

static unsigned draw_thing(struct sim_world *w)
{
    static unsigned total;
    unsigned n;

    if (total == 0)
        for (unsigned i = 0; i < THINGS; i++)
            total += things[i].weight;
    n = sim_below(w, total);
    for (unsigned i = 0;; i++) {
        if (n < things[i].weight)
            return i;
        n -= things[i].weight;
    }
}

/* Something happens if anything can. */
static int draw(struct sim_world *w)
{
    unsigned first;

    for (int tries = 0; tries < 10; tries++)
        if (happen(w, draw_thing(w), (int)sim_below(w, 2), (int)sim_below(w, HA_SLOTS)))
            return 1;
    first = sim_below(w, THINGS);
    for (unsigned i = 0; i < THINGS; i++)
        for (int n = 0; n < 2 * HA_SLOTS; n++)
            if (happen(w, (first + i) % THINGS, n & 1, n >> 1))
                return 1;
    return 0;
}

/* ---- faults ---- */

static void hurt(struct sim_world *w, int slot, unsigned kind, int x)
{
    struct sim_rail *rail = &w->rail[slot];

    switch (kind) {
    case 0:
        w->side[x].port_down[slot] = 1;
        break;
    case 1:
        w->side[0].port_down[slot] = w->side[1].port_down[slot] = 1;
        break;
    case 2:
        rail->data_lost[0] = rail->data_lost[1] = 1;
        break;
    case 3:
        rail->data_lost[x] = 1;
        w->cover[SIM_COVER_ONE_WAY]++;
        break;
    default:
        rail->acks_lost[x] = 1;
        break;
    }
    w->cover[SIM_COVER_PORT_DOWN] += kind < 2;
    rail->hurt_at = w->now;
    sim_trace(w, "FAULT: rail %d, %s, side %d", slot,
              kind == 0 ? "port down" : kind == 1 ? "both ports down" : kind == 2 ? "silent" :
              kind == 3 ? "silent from" : "no acknowledgements to", x);
}

static void heal(struct sim_world *w, int slot)
{
    uint64_t hurt_at = w->rail[slot].hurt_at;

    memset(&w->rail[slot], 0, sizeof(w->rail[slot]));
    w->rail[slot].hurt_at = hurt_at;
    for (int x = 0; x < 2; x++)
        w->side[x].port_down[slot] = 0;
    sim_trace(w, "rail %d is well again", slot);
}

static void fault(struct sim_world *w)
{
    int slot = (int)sim_below(w, w->slots);

    w->faults_left--;
    if (w->plot == SIM_PLOT_FLAPPING) {
        slot             = (int)(w->faults_left % w->slots);
        w->next_fault_at = w->now + random_time(w, SIM_MS, 80 * SIM_MS);
    } else {
        w->next_fault_at = w->now + random_time(w, 0, 8 * SIM_MS);
    }
    hurt(w, slot, sim_below(w, 5), (int)sim_below(w, 2));
    w->rail[slot].heal_at = w->now + random_time(w, SIM_MS / 4, 50 * SIM_MS);
    w->cover[SIM_COVER_BOTH_CUT] += w->rail[0].heal_at && w->rail[1].heal_at;
    if (w->faults_left == 0 && w->leave_one_dead) {
        w->rail[slot].heal_at = UINT64_MAX; /* never */
        if (w->rail[!slot].heal_at == UINT64_MAX)
            w->rail[!slot].heal_at = w->now;
    }
}

static void doom(struct sim_world *w)
{
    w->doomed = 1;
    if (w->plot == SIM_PLOT_KILL) {
        w->side[sim_below(w, 2)].dead = 1;
        w->cover[SIM_COVER_PEER_KILLED]++;
        sim_trace(w, "FAULT: one side is killed");
        return;
    }
    if (w->plot == SIM_PLOT_CANCEL) {
        sim_side_cancel(w, (int)sim_below(w, 2));
        return;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        hurt(w, slot, sim_below(w, 3), (int)sim_below(w, 2));
        w->rail[slot].heal_at = UINT64_MAX;
    }
}

/* Fate strikes by the clock. */
static void strike(struct sim_world *w)
{
    if (w->faults_left > 0 && w->now >= w->next_fault_at)
        fault(w);
    if (!w->doomed && w->now >= w->doom_at)
        doom(w);
    for (int slot = 0; slot < HA_SLOTS; slot++)
        if (w->rail[slot].heal_at != 0 && w->now >= w->rail[slot].heal_at)
            heal(w, slot);
}

/* ---- a schedule ---- */

static void make_operations(struct sim_world *w, struct sim_side *side, uint32_t ops)
{
    static const uint8_t kinds[] = { HA_OP_SEND, HA_OP_SEND, HA_OP_SEND, HA_OP_SEND, HA_OP_WRITE,
                                     HA_OP_WRITE, HA_OP_READ, HA_OP_READ, HA_OP_ATOMIC, HA_OP_FETCH };

    side->num_ops = sim_below(w, ops + 1);
    for (uint32_t i = 0; i < side->num_ops; i++) {
        struct sim_op *op = &side->op[i];

        op->kind   = kinds[sim_below(w, sizeof(kinds))];
        op->fence  = sim_chance(w, 20);
        op->wrong  = op->kind == HA_OP_WRITE && sim_chance(w, 4);
        op->length = op->kind >= HA_OP_ATOMIC ? 8 : sim_below(w, 5 * 1024);
        op->slot   = -1;
    }
}

static void make_sides(struct sim_world *w, uint32_t ops)
{
    struct ha_pair_config cfg = {
        .connect_timeout = w->plot >= SIM_PLOT_BOTH_CUT ? 300 * SIM_MS : 60 * SIM_S,
        .deadline        = w->plot >= SIM_PLOT_BOTH_CUT ? 200 * SIM_MS : 60 * SIM_S,
        .standby_delay   = 5 * SIM_MS, .cooldown = sim_below(w, 3) * SIM_MS,
        .drain_timeout   = 50 * SIM_MS, .rtx_min = SIM_MS, .rtx_max = 16 * SIM_MS
    };
    struct ha_event start = { .kind = HA_EV_START }, up = { .kind = HA_EV_RAIL, .value = 1 };

    for (int x = 0; x < 2; x++) {
        ha_log_init(&w->side[x].log, w->side[x].log_ops, SIM_LOG_SIZE);
        ha_pair_init(&w->side[x].pair, &cfg, x == 0, w->slots);
        w->side[x].tx_slot = w->side[x].rx_slot = HA_NO_SLOT;
        make_operations(w, &w->side[x], ops);
        sim_side_give(w, x, &start);
        for (up.slot = 0; up.slot < w->slots; up.slot++)
            sim_side_give(w, x, &up);
    }
}

static void make_plot(struct sim_world *w)
{
    static const uint8_t losses[] = { 0, 5, 20, 45 };
    uint32_t n = sim_below(w, 100);

    w->plot = n < 70 ? SIM_PLOT_FAULTS : n < 85 ? SIM_PLOT_FLAPPING :
              n < 92 ? SIM_PLOT_BOTH_CUT : n < 96 ? SIM_PLOT_KILL : SIM_PLOT_CANCEL;
    w->slots         = sim_chance(w, 8) ? 1 : HA_SLOTS;
    w->loss          = losses[sim_below(w, sizeof(losses))];
    w->lazy          = sim_chance(w, 60);
    w->alarms_left   = sim_below(w, 4);
    w->faults_left   = w->plot == SIM_PLOT_FLAPPING ? 8 : sim_below(w, 4);
    w->next_fault_at = random_time(w, 0, 6 * SIM_MS);
    w->doom_at       = w->plot >= SIM_PLOT_BOTH_CUT ? random_time(w, 0, 15 * SIM_MS) : UINT64_MAX;
    w->end_at        = 20 * SIM_S;
    w->leave_one_dead = sim_chance(w, 30) && w->plot < SIM_PLOT_BOTH_CUT && w->slots > 1;
    for (int e = 0; e < SIM_EPOCHS_MAX; e++)
        w->lane_of[e].slot = -1;
}

/* Nothing can happen now: go on to when something may. */
static void idle(struct sim_world *w)
{
    uint64_t next = w->now + SIM_MS;

    for (int x = 0; x < 2; x++) {
        uint64_t timer = ha_pair_next_timer(&w->side[x].pair);

        if (timer > w->now && timer < next && !w->side[x].gone)
            next = timer;
    }
    w->now = next;
}

int sim_run(struct sim_world *w, uint64_t seed, uint32_t ops, int tracing, uint64_t *cover)
{
    memset(w, 0, sizeof(*w));
    w->seed = w->random = seed;
    w->tracing          = tracing;
    w->cover            = cover;
    w->now              = SIM_MS;
    make_plot(w);
    make_sides(w, ops);
    while (w->violation[0] == '\0' && w->now < w->end_at && w->steps < STEPS_MAX) {
        if (sim_oracle_idle(w))
            break;
        strike(w);
        if (draw(w))
            w->now += sim_below(w, 40 * (uint32_t)SIM_US);
        else
            idle(w);
        w->steps++;
        sim_oracle_step(w);
    }
    if (w->violation[0] == '\0')
        sim_oracle_finish(w);
    return w->violation[0] == '\0' ? 0 : -1;
}
