/* SPDX-License-Identifier: BSD-3-Clause */

/* What works between two hosts on a rail, and what does not. */

#include <string.h>

#include "sim.h"

const struct sim_port *sim_port_of(const struct sim_pair *p, int x, int slot)
{
    return &p->world->port[p->side[x].host][p->rail[slot]];
}

/* From side `from` to the other one. */
int sim_path_works(const struct sim_pair *p, int from, int slot)
{
    const struct sim_port *out = sim_port_of(p, from, slot), *in = sim_port_of(p, !from, slot);

    return !out->down && !in->down && !out->out_lost && !in->in_lost;
}

int sim_is_told_down(const struct sim_pair *p, int x, int slot)
{
    const struct sim_port *port = sim_port_of(p, x, slot);

    return port->down || port->fatal;
}

/* All that the card had is gone; what is made anew when it is back is well. */
static void lose_queue_pairs(struct sim_world *w, int host, int rail)
{
    for (int i = 0; i < w->num_live; i++) {
        struct sim_pair *p = &w->pair[w->live[i]];

        for (int n = 0; n < 2 * p->slots; n++) {
            struct sim_qp *qp = &p->side[n & 1].qp[n >> 1];

            if (p->side[n & 1].host != host || p->rail[n >> 1] != rail || qp->state == SIM_QP_NONE ||
                qp->state == SIM_QP_ERR) {
                continue;
            }
            qp->gone = 1;
            w->cover[SIM_COVER_CARD]++;
        }
    }
}

int sim_is_slow(const struct sim_pair *p, int slot)
{
    return (sim_port_of(p, 0, slot)->slow || sim_port_of(p, 1, slot)->slow) && !sim_chance(p->world, 4);
}

uint64_t sim_hurt_at(const struct sim_pair *p, int slot)
{
    uint64_t a = sim_port_of(p, 0, slot)->hurt_at, b = sim_port_of(p, 1, slot)->hurt_at;

    return a > b ? a : b;
}

void sim_hurt(struct sim_world *w, int host, int rail, enum sim_fault kind, uint64_t heal_at)
{
    static const char *const name[SIM_FAULT_LAST] = {"port down",
                                                     "silent",
                                                     "sends nothing",
                                                     "hears nothing",
                                                     "card dead",
                                                     "card undead",
                                                     "hears no acknowledgements",
                                                     "loses control packets",
                                                     "is slow"};
    struct sim_port         *port                 = &w->port[host][rail];

    port->down |= kind == SIM_FAULT_PORT || kind == SIM_FAULT_CARD;
    port->fatal |= kind == SIM_FAULT_CARD || kind == SIM_FAULT_UNDEAD;
    port->out_lost |= kind == SIM_FAULT_SILENT || kind == SIM_FAULT_MUTE;
    port->in_lost |= kind == SIM_FAULT_SILENT || kind == SIM_FAULT_DEAF;
    port->acks_lost |= kind == SIM_FAULT_ACKS;
    port->slow |= kind == SIM_FAULT_SLOW;
    if (kind == SIM_FAULT_CONTROL) {
        port->ctl_lost = 70;
    }
    port->hurt_at = w->now;
    if (port->heal_at < heal_at) {
        port->heal_at = heal_at;
    }
    w->cover[SIM_COVER_PORT_DOWN] += kind == SIM_FAULT_PORT;
    w->cover[SIM_COVER_ONE_WAY] += kind == SIM_FAULT_MUTE || kind == SIM_FAULT_DEAF;
    w->cover[SIM_COVER_CONTROL_LOSSY] += kind == SIM_FAULT_CONTROL;
    w->cover[SIM_COVER_SLOW] += kind == SIM_FAULT_SLOW;
    if (kind == SIM_FAULT_CARD || kind == SIM_FAULT_UNDEAD) {
        lose_queue_pairs(w, host, rail);
    }
    sim_trace_world(w, "FAULT: rail %d of host %d: %s", rail, host, name[kind]);
}

void sim_heal(struct sim_world *w, int host, int rail)
{
    uint64_t hurt_at = w->port[host][rail].hurt_at;

    memset(&w->port[host][rail], 0, sizeof(w->port[host][rail]));
    w->port[host][rail].hurt_at = hurt_at;
    sim_trace_world(w, "rail %d of host %d is well again", rail, host);
}
