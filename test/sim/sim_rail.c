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

int sim_is_slow(const struct sim_pair *p, int slot)
{
    return (sim_port_of(p, 0, slot)->slow || sim_port_of(p, 1, slot)->slow) &&
           !sim_chance(p->world, 4);
}

uint64_t sim_hurt_at(const struct sim_pair *p, int slot)
{
    uint64_t a = sim_port_of(p, 0, slot)->hurt_at, b = sim_port_of(p, 1, slot)->hurt_at;

    return a > b ? a : b;
}

void sim_hurt(struct sim_world *w, int host, int rail, enum sim_fault kind, uint64_t heal_at)
{
    static const char *const name[SIM_FAULT_LAST] = {
        "port down", "silent", "sends nothing", "hears nothing", "hears no acknowledgements",
        "loses control packets", "is slow"
    };
    struct sim_port *port = &w->port[host][rail];

    port->down      |= kind == SIM_FAULT_PORT;
    port->out_lost  |= kind == SIM_FAULT_SILENT || kind == SIM_FAULT_MUTE;
    port->in_lost   |= kind == SIM_FAULT_SILENT || kind == SIM_FAULT_DEAF;
    port->acks_lost |= kind == SIM_FAULT_ACKS;
    port->slow      |= kind == SIM_FAULT_SLOW;
    if (kind == SIM_FAULT_CONTROL)
        port->ctl_lost = 70;
    port->hurt_at = w->now;
    if (port->heal_at < heal_at)
        port->heal_at = heal_at;
    w->cover[SIM_COVER_PORT_DOWN]     += kind == SIM_FAULT_PORT;
    w->cover[SIM_COVER_ONE_WAY]       += kind == SIM_FAULT_MUTE || kind == SIM_FAULT_DEAF;
    w->cover[SIM_COVER_CONTROL_LOSSY] += kind == SIM_FAULT_CONTROL;
    w->cover[SIM_COVER_SLOW]          += kind == SIM_FAULT_SLOW;
    sim_trace_world(w, "FAULT: rail %d of host %d: %s", rail, host, name[kind]);
}

void sim_heal(struct sim_world *w, int host, int rail)
{
    uint64_t hurt_at = w->port[host][rail].hurt_at;

    memset(&w->port[host][rail], 0, sizeof(w->port[host][rail]));
    w->port[host][rail].hurt_at = hurt_at;
    sim_trace_world(w, "rail %d of host %d is well again", rail, host);
}
