/* SPDX-License-Identifier: BSD-3-Clause */

/* The ways between rails: what a sender fixes once, and what may change behind its back.
 * And what the product has made of the rails. */

#include "fake_priv.h"

#include <string.h>

struct fake_path fake_path(const struct ha_rail *from, const uint8_t *dgid)
{
    const struct ha_rail *to  = fake_rail_of_gid(dgid);
    struct fake_path      way = {.sgid_index = from->gid_index, .dmac = to == NULL ? 0 : to->mac};

    memcpy(way.sgid, from->gid, sizeof(way.sgid));
    memcpy(way.dgid, dgid, sizeof(way.dgid));
    return way;
}

int fake_path_leads(const struct ha_rail *from, const struct ha_rail *to, const struct fake_path *way)
{
    return fake_reachable(from, to) && memcmp(way->sgid, from->gid, sizeof(way->sgid)) == 0 &&
           memcmp(way->dgid, to->gid, sizeof(way->dgid)) == 0 && way->dmac == to->mac;
}

void fake_readdress(int index, unsigned host)
{
    struct ha_rail *rail = &fake.rail[index];

    pthread_mutex_lock(&fake.lock);
    rail->gid[15] = (uint8_t)host;
    rail->gid_index++;
    fake_push_event(rail, HA_RAIL_EVENT_ADDR_CHANGE);
    pthread_mutex_unlock(&fake.lock);
}

void fake_move_gid(int index)
{
    fake_readdress(index, fake.rail[index].gid[15]);
}

void fake_change_mac(int index)
{
    pthread_mutex_lock(&fake.lock);
    fake.rail[index].mac++;
    pthread_mutex_unlock(&fake.lock);
}

static void rename_port(struct ha_rail *rail, const uint8_t gid[16], uint8_t link_layer, uint8_t prefix_len)
{
    pthread_mutex_lock(&fake.lock);
    memcpy(rail->gid, gid, sizeof(rail->gid));
    memcpy(rail->addr.gid, gid, sizeof(rail->addr.gid));
    rail->addr.link_layer = link_layer;
    rail->addr.prefix_len = prefix_len;
    rail->addr.lid        = link_layer == HA_LINK_IB ? (uint16_t)(100 + rail->index) : 0;
    pthread_mutex_unlock(&fake.lock);
}

void fake_ipv6(int index)
{
    struct ha_rail *rail    = &fake.rail[index];
    const uint8_t   gid[16] = {0xfd, [7] = (uint8_t)rail->net, [15] = (uint8_t)rail->host};

    rename_port(rail, gid, HA_LINK_ETHERNET, 64);
}

void fake_infiniband(int index)
{
    struct ha_rail *rail    = &fake.rail[index];
    const uint8_t   gid[16] = {0xfe, 0x80, [8] = 2, [14] = (uint8_t)rail->net, [15] = (uint8_t)rail->host};

    rename_port(rail, gid, HA_LINK_IB, 0);
}

void fake_gid(int index, uint8_t gid[16])
{
    pthread_mutex_lock(&fake.lock);
    memcpy(gid, fake.rail[index].gid, 16);
    pthread_mutex_unlock(&fake.lock);
}

void fake_partition(int index, uint16_t pkey)
{
    pthread_mutex_lock(&fake.lock);
    fake.rail[index].addr.pkey = pkey;
    pthread_mutex_unlock(&fake.lock);
}

struct ha_rail_limits *fake_limits(int rail)
{
    return &fake.rail[rail].limits;
}

struct fake_objects fake_objects(void)
{
    struct fake_objects objects = {0};

    pthread_mutex_lock(&fake.lock);
    objects.all = fake.live;
    objects.ahs = fake.ahs;
    for (struct ha_rc *rc = fake.rcs; rc != NULL; rc = rc->next) {
        objects.rcs++;
    }
    for (struct ha_mr *mr = fake.mrs; mr != NULL; mr = mr->next) {
        objects.mrs++;
    }
    for (struct ha_ud *ud = fake.uds; ud != NULL; ud = ud->next) {
        objects.uds++;
    }
    pthread_mutex_unlock(&fake.lock);
    return objects;
}

size_t fake_cq_bytes(void)
{
    size_t bytes;

    pthread_mutex_lock(&fake.lock);
    bytes = fake.cq_bytes;
    pthread_mutex_unlock(&fake.lock);
    return bytes;
}

void fake_next_ud(int rail, uint32_t qpn)
{
    fake.rail[rail].next_ud = qpn;
}

uint32_t fake_last_ud(int rail)
{
    return fake.rail[rail].last_ud;
}
