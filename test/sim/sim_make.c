/* SPDX-License-Identifier: BSD-3-Clause */

/* What a schedule begins with: hosts, rails, pairs, their users, and the plot. */

#include <string.h>

#include "sim.h"

/* A pair whose peer may vanish gives up soon; the others have time. */
#define SOON (200 * SIM_MS)
#define LATE (60 * SIM_S)

static void make_operations(struct sim_world *w, struct sim_side *side)
{
    static const uint8_t kinds[] = {HA_OP_SEND,  HA_OP_SEND, HA_OP_SEND, HA_OP_SEND,   HA_OP_WRITE,
                                    HA_OP_WRITE, HA_OP_READ, HA_OP_READ, HA_OP_ATOMIC, HA_OP_FETCH};

    int chatty = sim_chance(w, 15); /* nothing but what nobody waits for */

    side->num_ops = sim_below(w, w->ops + 1);
    for (uint32_t i = 0; i < side->num_ops; i++) {
        struct sim_op *op = &side->op[i];

        op->kind   = kinds[sim_below(w, chatty ? 6 : sizeof(kinds))];
        op->fence  = sim_chance(w, 20);
        op->wrong  = op->kind == HA_OP_WRITE && sim_chance(w, 4);
        op->quiet  = op->kind <= HA_OP_WRITE && (chatty || sim_chance(w, 60));
        op->length = op->kind >= HA_OP_ATOMIC ? 8 : sim_below(w, 5 * 1024);
        op->slot   = -1;
    }
    w->cover[SIM_COVER_OPERATIONS] += side->num_ops;
}

/* Of the process that runs on the host now; their order is that of nothing else. */
static uint64_t cookie_of(const struct sim_world *w, int host)
{
    uint64_t z = (w->seed + (uint64_t)host * 31 + w->incarnation[host] * 977ull) * 0x9e3779b97f4a7c15ull;

    return (z ^ (z >> 29)) | 1;
}

/* Will the plot strike it? */
static int is_in_danger(const struct sim_world *w, const struct sim_pair *p)
{
    if (w->plot == SIM_PLOT_CANCEL) {
        return p->number == w->victim;
    }
    return w->plot > SIM_PLOT_FLAPPING && p->before == NULL &&
           (p->side[0].host == w->victim || p->side[1].host == w->victim);
}

static uint64_t draw_failback(struct sim_world *w)
{
    return sim_chance(w, 50) ? 0 : SIM_MS / 2 + sim_below(w, 20 * (uint32_t)SIM_MS);
}

static void make_sides(struct sim_pair *p)
{
    struct sim_world     *w         = p->world;
    uint64_t              patience  = is_in_danger(w, p) ? SOON : LATE;
    int                   impatient = ((unsigned)w->seed + p->number) % 2;     /* but not with a peer that answers */
    unsigned              cold      = ((unsigned)w->seed / 2 + p->number) % 8; /* 0: both sides, 1: the first */
    struct ha_pair_config cfg       = {.connect_timeout = patience + patience / 2,
                                       .deadline        = impatient ? 50 * SIM_MS : patience,
                                       .linger          = patience, /* outages may be longer than the short deadline */
                                       .standby_delay   = 5 * SIM_MS,
                                       .cooldown        = sim_below(w, 3) * SIM_MS,
                                       .drain_timeout   = 50 * SIM_MS,
                                       .rtx_min         = SIM_MS,
                                       .rtx_max         = 16 * SIM_MS,
                                       .failback        = draw_failback(w)};
    struct ha_event       start = {.kind = HA_EV_START}, up = {.kind = HA_EV_RAIL, .value = 1};
    struct ha_event       hold = {.kind = HA_EV_HOLD};

    for (int x = 0; x < 2; x++) {
        struct sim_side *side = &p->side[x];

        ha_log_init(&side->log, side->log_ops[0], SIM_LOG_FIRST);
        ha_pair_init(&side->pair, &cfg, side->cookie > p->side[!x].cookie, p->slots);
        side->tx_slot = side->rx_slot = HA_NO_SLOT;
        side->slow_left               = sim_below(w, 3);
        side->cold                    = cold == 0 || (cold == 1 && x == 0);
        w->cover[SIM_COVER_COLD] += side->cold;
        make_operations(w, side);
        for (hold.slot = 0; side->cold && hold.slot < p->slots; hold.slot++) {
            hold.wait = sim_side_hold_of(p, x, hold.slot);
            sim_side_give(p, x, &hold);
        }
        sim_side_give(p, x, &start);
        for (up.slot = 0; up.slot < p->slots; up.slot++) {
            sim_side_give(p, x, &up);
        }
    }
}

/* What the devices of a side can prove by: most know packet numbers. */
static void make_proofs(struct sim_world *w, struct sim_side *side)
{
    static const uint8_t kinds[] = {HA_PROOF_PSN, HA_PROOF_COUNT, HA_PROOF_LEDGER};
    uint64_t             base    = (1 + sim_below(w, 3)) * SIM_MS;
    uint8_t              kind    = sim_chance(w, 60) ? HA_PROOF_PSN : kinds[sim_below(w, 3)];

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        side->proof[slot] = sim_chance(w, 90) ? kind : kinds[sim_below(w, 3)];
        side->counted |= side->proof[slot] == HA_PROOF_COUNT;
        ha_damp_init(&side->damp[slot], base, 10 * base);
    }
}

/* A pair whose hosts, rails and slots are known begins its life. */
static void make_pair(struct sim_pair *p)
{
    struct sim_world *w = p->world;

    for (int x = 0; x < 2; x++) {
        p->side[x].cookie = cookie_of(w, p->side[x].host);
        p->side[x].ep     = (uint32_t)(p->before != NULL ? p->before->number : p->number);
        make_proofs(w, &p->side[x]);
    }
    p->alarms_left = sim_below(w, 4);
    for (int e = 0; e < SIM_EPOCHS_MAX; e++) {
        p->lane_of[e].slot = -1;
    }
    w->live[w->num_live++] = (uint8_t)p->number;
    w->cover[SIM_COVER_PAIRS]++;
    make_sides(p);
}

static struct sim_pair *new_pair(struct sim_world *w)
{
    struct sim_pair *p = &w->pair[w->num_pairs];

    memset(p, 0, sizeof(*p));
    p->world  = w;
    p->number = w->num_pairs++;
    return p;
}

static void draw_pair(struct sim_world *w)
{
    struct sim_pair *p    = new_pair(w);
    int              a    = (int)sim_below(w, (uint32_t)w->num_hosts);
    int              rail = (int)sim_below(w, (uint32_t)w->num_rails);

    p->side[0].host = (uint8_t)a;
    p->side[1].host = (uint8_t)((a + 1 + (int)sim_below(w, (uint32_t)w->num_hosts - 1)) % w->num_hosts);
    p->rail[0]      = (uint8_t)rail;
    p->rail[1]      = (uint8_t)((rail + 1 + (int)sim_below(w, (uint32_t)w->num_rails - 1)) % w->num_rails);
    p->slots        = sim_chance(w, 8) ? 1 : HA_SLOTS;
    make_pair(p);
}

void sim_make_again(struct sim_world *w, struct sim_pair *before)
{
    struct sim_pair *p = new_pair(w);

    p->before = before;
    for (int x = 0; x < 2; x++) {
        p->side[x].host = before->side[x].host;
    }
    memcpy(p->rail, before->rail, sizeof(p->rail));
    p->slots = before->slots;
    w->cover[SIM_COVER_AFTER_RESTART]++;
    make_pair(p);
}

static enum sim_plot draw_plot(struct sim_world *w)
{
    uint32_t n = sim_below(w, 100);

    return n < 62   ? SIM_PLOT_FAULTS
           : n < 78 ? SIM_PLOT_FLAPPING
           : n < 86 ? SIM_PLOT_CUT_OFF
           : n < 90 ? SIM_PLOT_KILL
           : n < 96 ? SIM_PLOT_RESTART
                    : SIM_PLOT_CANCEL;
}

static int draw_num_pairs(struct sim_world *w)
{
    uint32_t n = sim_below(w, 100);

    return n < 76   ? 1
           : n < 92 ? 2 + (int)sim_below(w, 2)
           : n < 99 ? 4 + (int)sim_below(w, 5)
                    : 9 + (int)sim_below(w, 8);
}

static void make_plot(struct sim_world *w)
{
    static const uint8_t losses[] = {0, 5, 20, 45};

    w->plot          = draw_plot(w);
    w->loss          = losses[sim_below(w, sizeof(losses))];
    w->delay         = sim_chance(w, 15) ? (uint8_t)(1 + sim_below(w, 8)) : 0;
    w->lazy          = sim_chance(w, 60);
    w->silence       = sim_time(w, 0, 12 * SIM_MS);
    w->faults_left   = w->plot == SIM_PLOT_FLAPPING ? 4 + sim_below(w, 12) : sim_below(w, 4);
    w->next_fault_at = sim_time(w, 0, 6 * SIM_MS);
    w->doom_at       = w->plot > SIM_PLOT_FLAPPING ? sim_time(w, 0, 15 * SIM_MS) : SIM_NEVER;
    w->rebirth_at    = SIM_NEVER;
    w->heal_at       = SIM_NEVER;
    w->end_at        = 20 * SIM_S;
    w->ambush        = sim_chance(w, 40) ? (enum sim_ambush)sim_below(w, SIM_AMBUSH_LAST) : SIM_AMBUSH_NONE;
    w->ambushes_left = w->ambush == SIM_AMBUSH_NONE ? 0 : 1 + sim_below(w, 3);
}

static int has_single_rail(const struct sim_world *w)
{
    for (int i = 0; i < w->num_pairs; i++) {
        if (w->pair[i].slots == 1) {
            return 1;
        }
    }
    return 0;
}

void sim_make_world(struct sim_world *w)
{
    int pairs = draw_num_pairs(w);

    make_plot(w);
    w->num_hosts = pairs == 1 ? 2 : 2 + (int)sim_below(w, SIM_HOSTS_MAX - 1);
    w->num_rails = pairs == 1 ? 2 : 2 + (int)sim_below(w, SIM_RAILS_MAX - 1);
    w->ops       = pairs < 4 ? w->ops : (w->ops + 1) / 2;
    w->victim    = w->plot == SIM_PLOT_CANCEL ? 0 : (int)sim_below(w, (uint32_t)w->num_hosts);
    for (int i = 0; i < pairs; i++) {
        draw_pair(w);
    }
    w->leave_one_dead = w->plot <= SIM_PLOT_FLAPPING && sim_chance(w, 30) && !has_single_rail(w);
    w->cover[SIM_COVER_MANY_PAIRS] += pairs >= 9;
    w->cover[SIM_COVER_MANY_RAILS] += w->num_rails >= 3;
}
