/* SPDX-License-Identifier: BSD-3-Clause */

/* One schedule: draws what happens next, bad luck included, until all have
 * finished or something is wrong. */

#include <stddef.h>

#include "sim.h"

#define STEPS_MAX 400000u /* of one pair */

/* splitmix64 */
uint64_t sim_random(struct sim_world *w)
{
    uint64_t z = (w->random += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* ---- what may happen ---- */

enum owner { NATURE, CONTROL, PROGRESS };

static int run_control(struct sim_pair *p, int x, int slot)
{
    (void)slot;
    return sim_side_pair_run(p, x, HA_CTX_ASYNC);
}

static int run_progress(struct sim_pair *p, int x, int slot)
{
    (void)slot;
    return sim_side_pair_run(p, x, HA_CTX_PROGRESS);
}

/* The program computes: control context only. */
static int compute(struct sim_pair *p, int x, int slot)
{
    (void)slot;
    if (!sim_chance(p->world, 3)) {
        return 0;
    }
    p->side[x].busy_until = p->world->now + sim_time(p->world, SIM_US, 20 * SIM_MS);
    return 1;
}

static const struct {
    enum owner owner;
    unsigned   weight;
    int        slots; /* 1: whatever the slot */
    int (*happens)(struct sim_pair *p, int x, int slot);
} things[] = {
    {NATURE, 6, 2, sim_data_wire},          {NATURE, 6, 2, sim_data_execute},
    {NATURE, 5, 2, sim_data_ack},           {NATURE, 3, 2, sim_data_complete_receive},
    {NATURE, 1, 2, sim_data_give_up},       {NATURE, 1, 2, sim_data_settle},
    {CONTROL, 2, 2, sim_side_settled},      {CONTROL, 2, 2, sim_side_connected},
    {CONTROL, 2, 2, sim_side_port},         {CONTROL, 1, 2, sim_side_suspect},
    {CONTROL, 1, 2, sim_side_alarm},        {CONTROL, 2, 1, sim_side_timer},
    {CONTROL, 4, 1, sim_side_send},         {NATURE, 6, 1, sim_wire_receive},
    {CONTROL, 4, 1, run_control},           {CONTROL, 1, 1, sim_side_lost},
    {CONTROL, 2, 2, sim_side_hold},         {PROGRESS, 4, 1, run_progress},
    {PROGRESS, 2, 1, sim_user_submit},      {PROGRESS, 5, 1, sim_work_post},
    {PROGRESS, 1, 1, sim_work_tail},        {PROGRESS, 4, 2, sim_work_poll_send},
    {PROGRESS, 1, 2, sim_work_poll_error},  {PROGRESS, 4, 2, sim_work_poll_receive},
    {PROGRESS, 4, 2, sim_work_deliver},     {PROGRESS, 2, 2, sim_work_created},
    {PROGRESS, 2, 2, sim_work_drained},     {PROGRESS, 2, 2, sim_work_resolved},
    {PROGRESS, 2, 2, sim_work_check_close}, {PROGRESS, 1, 1, sim_user_flush},
    {PROGRESS, 1, 1, sim_user_close},       {PROGRESS, 1, 1, compute},
};

#define THINGS ((unsigned)(sizeof(things) / sizeof(things[0])))

static int happen(struct sim_pair *p, unsigned thing, int x, int slot)
{
    const struct sim_side *side = &p->side[x];

    if (things[thing].owner != NATURE && (side->dead || side->gone)) {
        return 0;
    }
    if (things[thing].owner == PROGRESS && p->world->now < side->busy_until) {
        return 0;
    }
    return things[thing].happens(p, x, slot);
}

/* Each thing as often as it weighs. */
static unsigned draw_thing(struct sim_world *w)
{
    static uint8_t  lots[256]; /* each thing as often as it weighs */
    static uint32_t total;

    if (total == 0) {
        for (unsigned i = 0; i < THINGS; i++) {
            for (unsigned n = 0; n < things[i].weight; n++) {
                lots[total++] = (uint8_t)i;
            }
        }
    }
    return lots[sim_below(w, total)];
}

static struct sim_pair *draw_pair(struct sim_world *w)
{
    return &w->pair[w->live[w->num_live == 1 ? 0 : sim_below(w, (uint32_t)w->num_live)]];
}

/* Whatever can happen at a pair, looked for from `first` on. */
static int search(struct sim_pair *p, unsigned first)
{
    unsigned rests = 0;

    for (int n = 0; n < 2 * HA_SLOTS; n++) {
        rests |= (unsigned)sim_data_rests(p, n & 1, n >> 1) << n;
    }
    for (unsigned i = 0; i < THINGS; i++) {
        unsigned thing = first + i < THINGS ? first + i : first + i - THINGS;

        for (int n = 0; n < 2 * things[thing].slots; n++) {
            if (!(things[thing].slots == 2 && (rests >> n & 1)) && happen(p, thing, n & 1, n >> 1)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Something happens if anything can; the pair where it did. */
static struct sim_pair *draw(struct sim_world *w)
{
    struct sim_pair *p;
    unsigned         first;

    for (int tries = 0; tries < 4; tries++) {
        p = draw_pair(w);
        if (happen(p, draw_thing(w), (int)sim_below(w, 2), (int)sim_below(w, HA_SLOTS))) {
            return p;
        }
    }
    first = (unsigned)sim_random(w) >> 1;
    for (int i = 0; i < w->num_live; i++) {
        p = &w->pair[w->live[(first + (unsigned)i) % (unsigned)w->num_live]];
        if (search(p, first % THINGS)) {
            return p;
        }
    }
    return NULL;
}

/* ---- a schedule ---- */

static void sooner(uint64_t *next, uint64_t now, uint64_t time)
{
    if (time > now && time < *next) {
        *next = time;
    }
}

/* Nothing can happen now: go on to when something may. */
static void idle(struct sim_world *w)
{
    uint64_t next = w->now + 3 * SIM_MS;

    if (w->faults_left > 0) {
        sooner(&next, w->now, w->next_fault_at);
    }
    sooner(&next, w->now, w->doom_at);
    sooner(&next, w->now, w->rebirth_at);
    sooner(&next, w->now, w->heal_at);
    for (int i = 0; i < w->num_live; i++) {
        const struct sim_pair *p = &w->pair[w->live[i]];

        for (int x = 0; x < 2; x++) {
            if (!p->side[x].gone && !p->side[x].dead) {
                sooner(&next, w->now, ha_pair_next_timer(&p->side[x].pair));
            }
            sooner(&next, w->now, p->side[x].busy_until);
        }
        for (uint32_t n = 0; n < p->net_used; n++) {
            sooner(&next, w->now, p->net[n].at);
        }
    }
    w->now = next;
}

/* What has ended is looked at once more and left alone. */
static void retire(struct sim_world *w)
{
    for (int i = 0; i < w->num_live; i++) {
        struct sim_pair *p = &w->pair[w->live[i]];

        if (sim_oracle_idle(p)) {
            sim_oracle_finish(p);
            w->live[i--] = w->live[--w->num_live];
        }
    }
}

static void step(struct sim_world *w)
{
    struct sim_pair *p;

    sim_fate_strike(w);
    p = draw(w);
    if (p != NULL) {
        w->now += sim_below(w, 40 * (uint32_t)SIM_US) / (uint32_t)w->num_live;
        sim_oracle_step(p);
        sim_fate_ambush(w, p);
    } else {
        idle(w);
    }
    w->steps++;
    if (p == NULL || sim_oracle_idle(p)) {
        retire(w);
    }
}

static void begin(struct sim_world *w, uint64_t seed, uint32_t ops, int tracing, uint64_t *cover)
{
    for (int h = 0; h < SIM_HOSTS_MAX; h++) {
        w->incarnation[h] = 0;
        for (int r = 0; r < SIM_RAILS_MAX; r++) {
            w->port[h][r] = (struct sim_port){0};
        }
    }
    w->seed = w->random = seed;
    w->tracing          = tracing;
    w->cover            = cover;
    w->now              = SIM_MS;
    w->steps            = 0;
    w->ops              = ops;
    w->num_pairs = w->num_live = 0;
    w->struck                  = 0;
    w->violation[0]            = '\0';
    sim_make_world(w);
}

int sim_run(struct sim_world *w, uint64_t seed, uint32_t ops, int tracing, uint64_t *cover)
{
    begin(w, seed, ops, tracing, cover);
    while (w->violation[0] == '\0' && w->num_live > 0 && w->now < w->end_at &&
           w->steps < STEPS_MAX * (uint32_t)w->num_pairs) {
        step(w);
    }
    for (int i = 0; i < w->num_live && w->violation[0] == '\0'; i++) {
        sim_oracle_finish(&w->pair[w->live[i]]);
    }
    w->cover[SIM_COVER_STEPS] += w->steps;
    return w->violation[0] == '\0' ? 0 : -1;
}
