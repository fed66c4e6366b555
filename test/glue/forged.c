/* SPDX-License-Identifier: BSD-3-Clause */
#include "forged.h"

#include "ctl/msg.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <string.h>

struct uct_ha_iface *forged_iface(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

struct uct_ha_peer *forged_peer(int s)
{
    return uct_ha_peer_find(&forged_iface(s)->pairs, forged_iface(!s)->pairs.cookie);
}

struct uct_ha_conn *forged_conn(int s)
{
    return ucs_list_head(&forged_iface(s)->pairs.conns, struct uct_ha_conn, list);
}

void forged_quiet(void)
{
    uint64_t sent;

    do {
        sent = stats().ctl_tx;
        pump_ms(150); /* more than twice the longest time between repetitions */
    } while (stats().ctl_tx != sent);
}

void forged_open(uint64_t seed)
{
    world_open(seed, "HEARTBEAT=0");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    wait_standbys(2);
    flush_all();
    forged_quiet();
}

void forged_make(struct forged *forged)
{
    struct uct_ha_iface *from = forged_iface(1);
    struct uct_ha_conn  *conn = forged_conn(1);

    memset(forged, 0, sizeof(*forged));
    pthread_mutex_lock(&from->lanes.wake.lock);
    forged->header.type       = HA_PACKET_STATE;
    forged->header.carrier    = HA_CARRIER_TCP;
    forged->header.count      = 1;
    forged->header.credits    = 32;
    forged->header.src_cookie = from->pairs.cookie;
    forged->header.dst_cookie = forged_iface(0)->pairs.cookie;
    forged->header.opts       = from->pairs.opts;
    forged->header.number     = ++forged_peer(1)->told;
    for (int s = 0; s < HA_SLOTS; s++) {
        forged->header.rails[s].up         = 1;
        forged->header.rails[s].place      = (uint8_t)s;
        forged->header.rails[s].link_layer = HA_LINK_ETHERNET;
    }
    forged->record.src_ep = conn->id;
    forged->record.dst_ep = conn->peer_id;
    forged->record.sn     = conn->sn;
    forged->record.tag    = conn->tag;
    forged->record.slots  = conn->pair.slots;
    ha_pair_snapshot(&conn->pair, &forged->record.state);
    pthread_mutex_unlock(&from->lanes.wake.lock);
}

void forged_seal_by(struct forged *forged, const struct ha_secret *secret)
{
    struct ha_secret key = ha_seal_key(secret, forged->header.src_cookie, forged->header.dst_cookie);

    forged->length = ha_packet_encode_header(forged->bytes, &forged->header);
    if (forged->header.count > 0) {
        forged->length = ha_packet_encode_record(forged->bytes, forged->length, &forged->record);
    }
    forged->length = ha_seal_add(&key, forged->bytes, forged->length);
}

void forged_seal(struct forged *forged)
{
    forged_seal_by(forged, &forged_iface((forged->header.flags & HA_PACKET_OWN) != 0)->pairs.secret);
}

int forged_bring(const struct forged *forged)
{
    struct uct_ha_iface *iface = forged_iface(0);
    int                  ours;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    ours = uct_ha_msg_tcp(&iface->ctl, forged->bytes, forged->length);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return ours;
}

int forged_bring_by(const struct forged *f, int carrier)
{
    struct uct_ha_stats before = stats();

    if (carrier == HA_CARRIER_TCP) {
        return forged_bring(f);
    }
    fake_ud_bring(forged_iface(0)->ctl.ud[carrier], f->bytes, f->length);
    pump_until(stats().ctl_rx + stats().ctl_dropped > before.ctl_rx + before.ctl_dropped);
    return stats().ctl_rx != before.ctl_rx;
}

void forged_expect(const struct forged *forged, enum reason reason, const char *what)
{
    struct uct_ha_stats before = stats(), after;
    uint32_t            epoch  = forged_conn(0)->pair.epoch;
    int                 ours   = forged_bring(forged);

    after = stats();
    if (after.ctl_malformed - before.ctl_malformed != (reason == MALFORMED) ||
        after.ctl_stray - before.ctl_stray != (reason == STRAY) ||
        after.ctl_forged - before.ctl_forged != (reason == FORGED) ||
        after.ctl_unfit - before.ctl_unfit != (reason == UNFIT) ||
        after.ctl_stale - before.ctl_stale != (reason == STALE) ||
        after.ctl_dropped - before.ctl_dropped != (reason != NOTHING)) {
        fail_msg("%s is not counted as it should", what);
    }
    if (ours && (reason == MALFORMED || reason == STRAY || reason == FORGED)) {
        fail_msg("%s proves to come from a peer", what);
    }
    assert_int_equal(forged_conn(0)->pair.epoch, epoch);
    assert_false(ha_pair_failed(&forged_conn(0)->pair));
    assert_false(forged_peer(0)->bye_rx);
}

void forged_lose_peer(uint64_t cookie)
{
    struct uct_ha_peer *peer = NULL;

    side_close(1);
    do {
        pump();
        pthread_mutex_lock(&forged_iface(0)->lanes.wake.lock);
        peer = uct_ha_peer_find(&forged_iface(0)->pairs, cookie);
        if (peer != NULL && ucs_list_is_empty(&peer->conns)) {
            peer->last_rx = 1; /* long ago */
        }
        pthread_mutex_unlock(&forged_iface(0)->lanes.wake.lock);
    } while (peer != NULL);
}
