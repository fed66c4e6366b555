/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The way to a peer's control port on each rail: its address handle. To make one may take
 * a second (the neighbour is asked for its hardware address), so a job thread does it.
 */

#include "ctl/path.h"

#include "base/job.h"
#include "base/now.h"
#include "ctl/fall.h"
#include "ctl/flush.h"
#include "ctl/port.h"
#include "ctl/standby.h"
#include "ctl/stall.h"
#include "ctl/tcp.h"
#include "pair/fact.h"
#include "pair/peer.h"
#include "pair/setup.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_NS  1000000000ull
#define RETRY_MAX 3u /* doubled so often: 8 s */
#define AH_FAILS  2  /* attempts in a row */

/* The second rail waits so long for first messages over the first one: in any case, and at
 * most. */
#define LATER_NS 100000000ull
#define LAST_NS  500000000ull

/* A peer without connections is kept so long after its last word, for what it may still
 * ask: did its good-bye arrive, is its connection gone here as well? */
#define GONE_NS 5000000000ull  /* it is lost, or has left */
#define IDLE_NS 60000000000ull /* it may come back */

static void let_go_run(struct uct_ha_job *job)
{
    struct uct_ha_way *way = ucs_container_of(job, struct uct_ha_way, super);

    ha_ud_ah_destroy(way->ah);
    free(way);
}

static void drop(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    uct_ha_busy_begin(&peer->busy, &peer->pairs->wakes);
    rail->addr_seq++; /* a job under way works for nothing */
    if (rail->way != NULL) {
        rail->way->super.run = let_go_run;
        uct_ha_job_post(UCT_HA_JOB_PORT, peer->pairs->lanes->rail_no[slot], &rail->way->super);
        rail->way = NULL;
    }
}

void uct_ha_path_anew(struct uct_ha_peer *peer, int slot)
{
    drop(peer, slot);
    peer->rail[slot].retry_at  = 0;
    peer->pairs->ctl->check_at = 0;
}

/* ---- finding it ------------------------------------------------------------------- */

/* Dead neighbours wait longer and longer, in a queue of their own. One that says a word on the rail
 * does not wait: uct_ha_path_heard(). */
static uint64_t pause_after(unsigned fails)
{
    return RETRY_NS << ucs_min(fails - 1, RETRY_MAX);
}

/* There is no way to it on this rail, which is not seen by pings, for none can be sent,
 * while the other one answers: no new lanes here until it answers as well. A standby that was
 * built before, by what the other rail carried, protects nobody then. */
static void leave_unresolved(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (rail->ah_fails < AH_FAILS || rail->ud_qpn == 0 || peer->pairs->lanes->slots != HA_SLOTS ||
        !uct_ha_peer_rail_answers(peer, !slot, uct_ha_now())) {
        return;
    }
    if (!rail->lives) {
        uct_ha_fall_standbys_locked(peer, slot);
    }
    if (!rail->bad) {
        rail->bad    = 1;
        rail->bad_at = 0; /* not a suspicion */
        uct_ha_fact_usable_locked(peer);
    }
    uct_ha_flush_locked(peer->pairs->ctl);
}

/* On the job thread: may take a second. The peer may be gone meanwhile, so it
 * is looked up again. */
static void resolve_run(struct uct_ha_job *job)
{
    struct uct_ha_way       *way = ucs_container_of(job, struct uct_ha_way, super);
    struct uct_ha_ctl       *ctl = way->ctl;
    struct uct_ha_peer      *peer;
    struct uct_ha_peer_rail *rail;
    int                      status, used = 0;

    status = ha_ud_ah_create(ctl->lanes->rail[way->slot], &way->addr, &way->ah);
    pthread_mutex_lock(&ctl->lanes->wake.lock);
    peer = uct_ha_peer_find(ctl->pairs, way->cookie);
    rail = peer == NULL ? NULL : &peer->rail[way->slot];
    if (rail != NULL && rail->ah_job == way->ah_job) { /* else it was overtaken */
        rail->ah_busy  = 0;
        rail->ah_fails = status == 0 ? 0 : rail->ah_fails + 1;
        rail->ah_error = -status;
        if (status == 0 && rail->addr_seq == way->addr_seq && rail->way == NULL) {
            rail->way = way;
            used      = 1;
            /* its life begins now, not when it was asked for: a look-up may outlast it */
            rail->fresh_at = uct_ha_now() + ctl->fresh_ns;
            uct_ha_flush_locked(ctl);
        } else if (status != 0) {
            ucs_debug("ha_rc: no path from %s to its peer yet: %s", ha_rail_name(ctl->lanes->rail[way->slot]),
                      strerror(-status));
            rail->retry_at = uct_ha_now() + pause_after(rail->ah_fails);
            leave_unresolved(peer, way->slot);
        }
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
    if (!used && status == 0) {
        let_go_run(job);
    } else if (!used) {
        free(way);
    }
}

/* To begin, one rail is enough; what goes out on both makes twice the work, on both
 * hosts, while first messages wait. Unless the first one is in doubt, or the peer uses
 * the second. */
static int can_wait(const struct uct_ha_peer *peer, int slot, uint64_t now)
{
    const struct uct_ha_ctl       *ctl   = peer->pairs->ctl;
    const struct uct_ha_peer_rail *first = &peer->rail[0];

    return slot != 0 && !peer->rail[slot].used && (first->way != NULL || first->ah_busy) && first->ah_fails == 0 &&
           first->peer_up && first->ud_qpn != 0 && uct_ha_port_works_locked(ctl, 0) && now < peer->born + LAST_NS &&
           (now < peer->born + LATER_NS || uct_ha_setup_is_busy(now));
}

/* Who answers does not wait for who does not. */
static enum uct_ha_job_kind queue_of(const struct uct_ha_peer_rail *rail)
{
    return rail->ah_fails == 0 ? UCT_HA_JOB_RESOLVE : UCT_HA_JOB_RETRY;
}

static int can_look_for(const struct uct_ha_peer *peer, int slot)
{
    const struct uct_ha_peer_rail *rail = &peer->rail[slot];

    return rail->known && rail->way == NULL && !peer->pairs->down[slot] && peer->pairs->ctl->ud[slot] != NULL;
}

static void look_for(struct uct_ha_peer *peer, int slot, enum uct_ha_job_kind queue, uint64_t now)
{
    struct uct_ha_ctl       *ctl  = peer->pairs->ctl;
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    struct uct_ha_way       *way  = calloc(1, sizeof(*way));

    if (way == NULL) {
        return; /* the next tick tries again */
    }
    way->super.owner = ctl->lanes;
    way->super.run   = resolve_run;
    way->ctl         = ctl;
    way->cookie      = peer->cookie;
    way->slot        = slot;
    way->addr_seq    = rail->addr_seq;
    way->ah_job      = ++rail->ah_job;
    way->addr        = rail->where.addr;
    rail->ah_busy    = 1;
    rail->retry_at   = now + RETRY_NS;
    uct_ha_job_post(queue, ctl->lanes->rail_no[slot], &way->super);
}

void uct_ha_path_find(struct uct_ha_peer *peer, uint64_t now)
{
    const struct uct_ha_peer_rail *rail;

    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        rail = &peer->rail[s];
        if (can_look_for(peer, s) && !rail->ah_busy && now >= rail->retry_at && !can_wait(peer, s, now)) {
            look_for(peer, s, queue_of(rail), now);
        }
    }
}

void uct_ha_path_heard(struct uct_ha_peer *peer, int slot, uint64_t now)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (rail->way != NULL) {
        return;
    }
    /* It stands in the queue of the dead, or would. But who is heard and never found does not hold up others. */
    if (rail->ah_fails > 0 && now >= rail->first_at && can_look_for(peer, slot)) {
        rail->first_at = now + pause_after(RETRY_MAX + 1);
        look_for(peer, slot, UCT_HA_JOB_RESOLVE, now);
    }
    rail->retry_at = ucs_min(rail->retry_at, now + RETRY_NS);
    uct_ha_path_find(peer, now);
}

/* ---- what is known of the peer's rails -------------------------------------------- */

void uct_ha_path_set_rail(struct uct_ha_peer *peer, int slot, const struct uct_ha_rail_where *where, uint32_t ud_qpn)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    ha_zone_t                zone;
    uint16_t                 pkey;

    if (slot >= peer->pairs->lanes->slots || where->addr.mtu == 0) {
        return; /* nothing is known of that rail yet: keep what we had */
    }
    if (rail->known && !uct_ha_where_is_same(&rail->where.addr, &where->addr)) {
        uct_ha_path_anew(peer, slot);
    }
    zone         = rail->where.zone;
    pkey         = rail->where.addr.pkey;
    rail->where  = *where;
    rail->ud_qpn = ud_qpn;
    if (where->zone == 0) { /* control packets have neither */
        rail->where.zone = zone;
    }
    if (where->addr.pkey == 0) {
        rail->where.addr.pkey = pkey;
    }
    uct_ha_peer_judge(peer, slot);
}

void uct_ha_path_set_up(struct uct_ha_peer *peer, int slot, int up)
{
    if (up && !peer->rail[slot].peer_up) {
        uct_ha_path_anew(peer, slot);
    }
    peer->rail[slot].peer_up = up != 0;
}

void uct_ha_path_moved(struct uct_ha_peer *peer, int slot)
{
    if (peer->rail[slot].where.addr.mtu != 0) {
        uct_ha_peer_judge(peer, slot);
        uct_ha_path_anew(peer, slot);
    }
}

void uct_ha_path_set_tcp(struct uct_ha_peer *peer, const uint8_t *ip, uint16_t port)
{
    if (port == peer->tcp_addr.port && memcmp(ip, peer->tcp_addr.ip, 4) == 0) {
        return;
    }
    if (peer->tcp_link != NULL) {
        uct_ha_tcp_link_destroy(peer->tcp_link);
        peer->tcp_link = NULL;
    }
    memcpy(peer->tcp_addr.ip, ip, sizeof(peer->tcp_addr.ip));
    peer->tcp_addr.port = port;
}

static unsigned usable_rails(const struct uct_ha_peer *peer)
{
    return (unsigned)uct_ha_peer_rail_usable(peer, 0) | (unsigned)uct_ha_peer_rail_usable(peer, 1) << 1;
}

void uct_ha_path_learn_locked(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    const struct ha_packet_rail *rail;
    struct uct_ha_rail_where     where;
    unsigned                     before = usable_rails(peer);

    peer->scarce = (header->caps & HA_CAP_SCARCE) != 0;
    uct_ha_path_set_tcp(peer, header->tcp_ip, header->tcp_port);
    for (int s = 0; s < HA_SLOTS; s++) {
        rail = &header->rails[s];
        memset(&where, 0, sizeof(where));
        memcpy(where.addr.gid, rail->gid, sizeof(rail->gid));
        where.addr.lid        = rail->lid;
        where.addr.mtu        = rail->mtu;
        where.addr.link_layer = rail->link_layer;
        where.addr.prefix_len = rail->prefix_len;
        where.place           = rail->place;
        if ((header->flags & HA_PACKET_ZONE(s)) && s < peer->pairs->lanes->slots &&
            peer->rail[s].where.zone == 0) { /* the sender knows both zones */
            where.zone = uct_ha_pairs_where(peer->pairs, s).zone;
        }
        uct_ha_path_set_rail(peer, s, &where, rail->ud_qpn);
        uct_ha_path_set_up(peer, s, rail->up);
    }
    if (usable_rails(peer) != before) {
        uct_ha_fact_usable_locked(peer);
    }
    uct_ha_standby_learn_locked(peer);
}

/* ---- peers that come and go ------------------------------------------------------- */

void uct_ha_path_revive(struct uct_ha_peer *peer, uint64_t heard)
{
    peer->lost    = 0;
    peer->asked   = 0;
    peer->last_rx = heard;
    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        struct uct_ha_peer_rail *rail = &peer->rail[s];

        rail->waiting = rail->bad = 0;
        rail->missed = rail->answered = 0;
        rail->beat.since              = 0;
        if (rail->known && !rail->ah_busy) {
            uct_ha_path_anew(peer, s);
        }
    }
}

/* Nothing leads to the peer any more. */
static void leave(struct uct_ha_peer *peer)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        drop(peer, s);
    }
    uct_ha_stall_end_locked(peer);
    if (peer->tcp_link != NULL) {
        uct_ha_tcp_link_destroy(peer->tcp_link);
    }
}

void uct_ha_path_destroy_peer(struct uct_ha_peer *peer)
{
    leave(peer);
    uct_ha_peer_destroy(peer);
}

/* Nobody talks about the rails of a peer that is gone: to look for them would take a
 * second each, again and again, which others wait for. */
static int is_of_interest(struct uct_ha_peer *peer, uint64_t now)
{
    return now < peer->last_rx + GONE_NS || (!peer->lost && !ucs_list_is_empty(&peer->conns));
}

void uct_ha_path_check(struct uct_ha_peer *peer, uint64_t now)
{
    uint64_t patience = peer->lost || peer->bye_rx ? GONE_NS : IDLE_NS;

    if (is_of_interest(peer, now)) {
        uct_ha_path_find(peer, now);
    }
    if (ucs_list_is_empty(&peer->conns) && now > peer->last_rx + patience && !peer->rail[0].ah_busy &&
        !peer->rail[1].ah_busy) {
        leave(peer);
        uct_ha_peer_forget(peer);
    }
}
