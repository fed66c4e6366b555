/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What goes wrong. Faults come by the clock, or lie in ambush for a moment
 * that luck would rarely hit: a standby dies while the pair moves to it. A
 * fault strikes one host's port, or a rail of all hosts: whoever is on it.
 */

#include <string.h>

#include "sim.h"

#define ALL_HOSTS (-1)

/* ---- one fault ----------------------------------------------------------------- */

static void hurt(struct sim_world *w, int host, int rail, enum sim_fault kind, uint64_t heal_at)
{
    for (int h = 0; h < w->num_hosts; h++) {
        if (host == ALL_HOSTS || host == h) {
            sim_hurt(w, h, rail, kind, heal_at);
        }
    }
    if (heal_at < w->heal_at) {
        w->heal_at = heal_at;
    }
}

static int is_struck(const struct sim_pair *p, int slot, int host, int rail)
{
    return p->rail[slot] == rail && (host == ALL_HOSTS || p->side[0].host == host || p->side[1].host == host);
}

/* How many pairs lose the lane they work on, how many have nothing to do with it. */
static void cover_fault(struct sim_world *w, int host, int rail)
{
    int at_work = 0, unharmed = 0;

    for (int i = 0; i < w->num_live; i++) {
        const struct sim_pair *p    = &w->pair[w->live[i]];
        int                    slot = p->side[0].tx_slot;

        at_work += slot != HA_NO_SLOT && is_struck(p, slot, host, rail);
        unharmed += !is_struck(p, 0, host, rail) && !is_struck(p, 1, host, rail);
    }
    w->cover[SIM_COVER_SHARED_FAULT] += at_work >= 2;
    w->cover[SIM_COVER_UNHARMED] += at_work >= 1 && unharmed >= 1;
}

static uint64_t wound_of(const struct sim_pair *p, int slot)
{
    uint64_t a = sim_port_of(p, 0, slot)->heal_at, b = sim_port_of(p, 1, slot)->heal_at;

    return a > b ? a : b;
}

static int host_of(struct sim_world *w, const struct sim_pair *p)
{
    return sim_chance(w, 25) ? ALL_HOSTS : p->side[sim_below(w, 2)].host;
}

/* ---- by the clock ---------------------------------------------------------------- */

static void fault(struct sim_world *w)
{
    const struct sim_pair *p    = &w->pair[w->live[sim_below(w, (uint32_t)w->num_live)]];
    int                    slot = (int)sim_below(w, p->slots), host = host_of(w, p);
    uint64_t               heal_at = w->now + sim_time(w, SIM_MS / 4, 50 * SIM_MS);
    uint64_t               pause   = sim_time(w, 0, 8 * SIM_MS);

    w->faults_left--;
    if (w->plot == SIM_PLOT_FLAPPING) {
        slot  = (int)(w->faults_left % p->slots);
        pause = sim_time(w, SIM_MS, 80 * SIM_MS);
    }
    w->next_fault_at = w->now + pause;
    if (w->faults_left == 0 && w->leave_one_dead) {
        heal_at = SIM_NEVER;
    }
    cover_fault(w, host, p->rail[slot]);
    hurt(w, host, p->rail[slot], (enum sim_fault)sim_below(w, SIM_FAULT_LAST), heal_at);
    w->cover[SIM_COVER_BOTH_CUT] += p->slots == 2 && wound_of(p, 0) && wound_of(p, 1);
}

static void heal(struct sim_world *w)
{
    w->heal_at = SIM_NEVER;
    for (int h = 0; h < w->num_hosts; h++) {
        for (int r = 0; r < w->num_rails; r++) {
            struct sim_port *port = &w->port[h][r];

            if (port->heal_at != 0 && w->now >= port->heal_at) {
                sim_heal(w, h, r);
            } else if (port->heal_at != 0 && port->heal_at < w->heal_at) {
                w->heal_at = port->heal_at;
            }
        }
    }
}

/* ---- the end of somebody ------------------------------------------------------------ */

/* Pairs of the victim; they may fail from now on. */
static struct sim_pair *next_victim(struct sim_world *w, int *i)
{
    while (*i < w->num_live) {
        struct sim_pair *p = &w->pair[w->live[(*i)++]];

        if (p->before == NULL && (p->side[0].host == w->victim || p->side[1].host == w->victim)) {
            return p;
        }
    }
    return NULL;
}

static void kill_host(struct sim_world *w)
{
    struct sim_pair *p;
    int              i = 0;

    while ((p = next_victim(w, &i)) != NULL) {
        p->doomed                                  = 1;
        p->side[p->side[1].host == w->victim].dead = 1;
    }
    w->cover[SIM_COVER_PEER_KILLED]++;
    sim_trace_world(w, "FAULT: the process on host %d is killed", w->victim);
    if (w->plot == SIM_PLOT_RESTART) {
        w->rebirth_at = w->now + sim_time(w, 0, 60 * SIM_MS);
    }
}

/* The next process has the old ports, and connects anew with the old peers. */
static void rebirth(struct sim_world *w)
{
    int n = w->num_live;

    w->rebirth_at = SIM_NEVER;
    w->incarnation[w->victim]++;
    w->cover[SIM_COVER_RESTARTED]++;
    sim_trace_world(w, "host %d begins a new process", w->victim);
    for (int i = 0; i < n; i++) {
        struct sim_pair *p = &w->pair[w->live[i]];

        if (!p->doomed || p->before != NULL) {
            continue;
        }
        sim_make_again(w, p);
    }
}

/* All rails of the host, for ever. */
static void cut_off(struct sim_world *w)
{
    struct sim_pair *p;
    int              i = 0;

    while ((p = next_victim(w, &i)) != NULL) {
        p->doomed = 1;
    }
    for (int r = 0; r < w->num_rails; r++) {
        hurt(w, w->victim, r, sim_chance(w, 50) ? SIM_FAULT_PORT : SIM_FAULT_SILENT, SIM_NEVER);
    }
    w->cover[SIM_COVER_CUT_OFF]++;
}

static void doom(struct sim_world *w)
{
    w->struck = 1;
    switch (w->plot) {
    case SIM_PLOT_KILL:
    case SIM_PLOT_RESTART:
        kill_host(w);
        break;
    case SIM_PLOT_CUT_OFF:
        cut_off(w);
        break;
    default:
        w->pair[w->victim].doomed = 1;
        sim_user_cancel(&w->pair[w->victim], (int)sim_below(w, 2));
        break;
    }
}

void sim_fate_strike(struct sim_world *w)
{
    if (w->faults_left > 0 && w->now >= w->next_fault_at) {
        fault(w);
    }
    if (!w->struck && w->now >= w->doom_at) {
        doom(w);
    }
    if (w->now >= w->rebirth_at) {
        rebirth(w);
    }
    if (w->now >= w->heal_at) {
        heal(w);
    }
}

/* ---- in ambush ------------------------------------------------------------------------ */

static int is_moving(const struct ha_pair *pair, int from)
{
    const struct ha_lane *lane = &pair->lane[from];

    return lane->act != 0 && (lane->q == HA_QP_ERRING || lane->st == HA_LANE_FENCED || lane->st == HA_LANE_RESOLVED);
}

/* Is this the moment? The slot that would hurt most, or HA_NO_SLOT. */
static int moment(const struct sim_world *w, const struct sim_pair *p, int x)
{
    const struct sim_side *side = &p->side[x];

    for (int slot = 0; slot < p->slots; slot++) {
        switch (w->ambush) {
        case SIM_AMBUSH_CONNECT:
            if (side->qp[slot].job) {
                return slot;
            }
            break;
        case SIM_AMBUSH_FAILOVER:
            if (is_moving(&side->pair, !slot) && side->pair.lane[slot].st == HA_LANE_READY) {
                return slot;
            }
            break;
        case SIM_AMBUSH_FAILBACK:
            if (slot == 0 && is_moving(&side->pair, 1) && side->pair.lane[1].cause == HA_CAUSE_FAILBACK) {
                return slot;
            }
            break;
        case SIM_AMBUSH_FLUSH:
            if (side->flushing && side->tx_slot == slot) {
                return slot;
            }
            break;
        case SIM_AMBUSH_CLOSE:
            if (side->closed && side->tx_slot == slot) {
                return slot;
            }
            break;
        default:
            break;
        }
    }
    return HA_NO_SLOT;
}

void sim_fate_ambush(struct sim_world *w, struct sim_pair *p)
{
    static const enum sim_cover cover[SIM_AMBUSH_LAST] = {
        [SIM_AMBUSH_CONNECT] = SIM_COVER_AMBUSH_CONNECT,   [SIM_AMBUSH_FAILOVER] = SIM_COVER_STANDBY_DIED_MOVING,
        [SIM_AMBUSH_FLUSH] = SIM_COVER_AMBUSH_FLUSH,       [SIM_AMBUSH_CLOSE] = SIM_COVER_AMBUSH_CLOSE,
        [SIM_AMBUSH_FAILBACK] = SIM_COVER_AMBUSH_FAILBACK,
    };
    int x, slot;

    if (w->ambushes_left == 0 || !sim_chance(w, 20)) {
        return;
    }
    x    = (int)sim_below(w, 2);
    slot = p->side[x].gone || p->side[x].dead ? HA_NO_SLOT : moment(w, p, x);
    if (slot == HA_NO_SLOT) {
        return;
    }
    w->ambushes_left--;
    w->cover[cover[w->ambush]]++;
    sim_trace(p, "AMBUSH on rail %d", p->rail[slot]);
    hurt(w, host_of(w, p), p->rail[slot], (enum sim_fault)sim_below(w, SIM_FAULTS_DEADLY),
         w->now + sim_time(w, SIM_MS / 4, 50 * SIM_MS));
}
