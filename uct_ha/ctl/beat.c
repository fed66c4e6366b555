/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/beat.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/bad.h"
#include "ctl/fall.h"
#include "ctl/look.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "ctl/stall.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#include <string.h>

#define LEAST_PROBES   8u  /* a heartbeat, in a process: two peers of two interfaces are asked each time */
#define ASKED_ALL      16u /* urgent ones, of whichever host */
#define WITNESSES      2u  /* ... of each, beyond that */
#define STEADY_ANSWERS 2

static unsigned shares; /* interfaces with peers; they share the budget of the process */

/* A better sign of life than a ping, which may be lost. Reads what progress owns: a torn picture costs a round. */
static uint32_t data_flows(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct uct_ha_lane *lane;
    uint32_t            sign;
    uint32_t            flows = 0;

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        lane = conn->road->lane[slot];
        if (lane == NULL || lane->fenced) {
            continue;
        }
        sign = uct_ha_lane_received(lane);
        if (ha_pair_tx_slot(&conn->pair) == slot) {
            sign += __atomic_load_n(&conn->tx->log.head, __ATOMIC_RELAXED);
        }
        flows += sign - lane->sign;
        lane->sign = sign;
    }
    return flows;
}

static void take_signs(struct uct_ha_peer *peer)
{
    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        peer->rail[s].moved = data_flows(peer, s);
        peer->rail[s].lives = peer->rail[s].moved != 0;
        if (peer->rail[s].lives) {
            peer->rail[s].missed = 0;
        }
    }
    uct_ha_bad_sample_locked(peer);
}

/* Is work under way there, and no sign of life? */
static int is_urgent(const struct uct_ha_peer *peer)
{
    const struct uct_ha_conn *conn;
    int                       slot;

    if (peer->busy.awake == 0) {
        return 0;
    }
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        slot = ha_pair_tx_slot(&conn->pair);
        if (slot == HA_NO_SLOT
                ? conn->pair.epoch > 0
                : !peer->rail[slot].lives && uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx)) {
            return 1;
        }
    }
    return 0;
}

static int is_in_doubt(const struct uct_ha_peer *peer)
{
    return peer->rail[0].waiting || peer->rail[1].waiting || peer->rail[0].bad || peer->rail[1].bad;
}

/* Pings are missing: look in time for the answers to be compared when it would be suspected. */
static void look_after(struct uct_ha_peer *peer, int slot, unsigned limit)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (rail->missed + 1 >= limit && rail->flows) {
        rail->missed = limit - 1;
    }
    rail->flows = 0;
    if (rail->missed + 2 >= limit) {
        uct_ha_look_begin_locked(peer, slot);
    }
}

static int can_ask(const struct uct_ha_peer *peer, int slot)
{
    const struct uct_ha_peer_rail *rail = &peer->rail[slot];

    return rail->known && rail->way != NULL && rail->ud_qpn != 0 && !peer->pairs->down[slot];
}

/* Ask by one rail. Returns 1 if it was put off, because the way is looked for anew. */
static int ask(struct uct_ha_peer *peer, int slot, uint64_t now)
{
    struct uct_ha_ctl       *ctl  = peer->pairs->ctl;
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (!can_ask(peer, slot)) {
        rail->waiting = 0;
        return 0;
    }
    if (!rail->lives && rail->waiting && !rail->counted) {
        rail->counted = 1;
        rail->missed++;
        rail->answered = 0;
        UCT_HA_STATS_ADD(heartbeats_missed, 1);
        look_after(peer, slot, ctl->pairs->config->heartbeat_misses);
    }
    if (rail->lives || rail->heard == rail->nonce || rail->fresh_at == 0) {
        rail->fresh_at = now + ctl->fresh_ns;
    } else if (now >= rail->fresh_at && !rail->renewed) {
        /* Perhaps our idea of the way is old. Not twice in a row: turns may be far apart. */
        rail->fresh_at = now + ctl->fresh_ns;
        rail->renewed  = 1;
        uct_ha_path_anew(peer, slot);
        return 1;
    }
    rail->renewed = 0;
    uct_ha_send_ping_locked(peer, slot);
    return 0;
}

/* Silent for DEAD_PEER. Among thousands the last question may be long ago: so one more, which has its time. */
static int is_dead(struct uct_ha_peer *peer, int asked_now, uint64_t now)
{
    if (peer->asked < UCT_HA_QUESTIONS || now - peer->asked_at <= peer->pairs->dead_peer ||
        uct_ha_stall_may_wait_locked(peer, now)) {
        return 0;
    }
    if (peer->last_call == 0) {
        peer->last_call = asked_now ? now : 0;
        return 0;
    }
    return now - peer->last_call >= ucs_min(2 * peer->pairs->heartbeat, peer->pairs->dead_peer / 10);
}

/* Ask a peer by all its rails; sets *suspect to a rail that is silent while the
 * other answers (else HA_NO_SLOT) and returns 1 when the peer is silent on all. */
static int heartbeat(struct uct_ha_peer *peer, uint64_t now, int *suspect)
{
    struct uct_ha_ctl *ctl     = peer->pairs->ctl;
    int                put_off = 0;

    if (peer->asked == 0 || peer->last_rx > peer->asked_at) {
        peer->asked_at  = now;
        peer->last_call = 0;
        peer->asked     = 0;
    }
    *suspect = HA_NO_SLOT;
    for (int s = 0; s < ctl->lanes->slots; s++) {
        put_off += ask(peer, s, now);
    }
    peer->asked += put_off < ctl->lanes->slots;
    if (!uct_ha_send_probes(peer)) {
        uct_ha_send_ping_locked(peer, HA_CARRIER_TCP); /* is it alive at all */
    }
    uct_ha_stall_look_locked(peer, now);
    /* Only a rail that is silent while the other one keeps answering is suspect:
     * with both silent it is the peer that is slow, stopped or dead, and one
     * that wakes up may answer on one rail a moment before the other. */
    for (int s = 0; s < ctl->lanes->slots && ctl->lanes->slots == HA_SLOTS; s++) {
        if (peer->rail[s].missed >= ctl->pairs->config->heartbeat_misses &&
            peer->rail[1 - s].answered >= STEADY_ANSWERS &&
            ha_beat_is_silent(&peer->rail[s].beat, &peer->rail[1 - s].beat, now)) {
            *suspect = s;
        }
    }
    return is_dead(peer, put_off < ctl->lanes->slots, now);
}

void uct_ha_beat_lose_peer_locked(struct uct_ha_peer *peer)
{
    peer->lost = 1;
    uct_ha_stall_end_locked(peer);
    uct_ha_fact_peer_lost_locked(peer, HA_FAIL_PEER_DEAD);
}

/* ---- the round ------------------------------------------------------------------ */

struct round {
    struct uct_ha_ctl *ctl;
    uint64_t           now;
    unsigned           urgent, asked, held;
    uint64_t           silent[HA_SLOTS]; /* somebody was found to be silent by this rail since then, the latest such */
};

static struct uct_ha_host *host_of(const struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_host *hosts = peer->pairs->ctl->host, *host;
    uint64_t            key[2];

    memcpy(key, peer->rail[slot].where.addr.gid, sizeof(key));
    key[0] ^= key[1] << 1 ^ (uint64_t)peer->rail[slot].where.addr.lid << 32;
    key[0] = (key[0] * 0x9e3779b97f4a7c15ull + (unsigned)slot * 0xbf58476d1ce4e5b9ull) | 1u;
    for (unsigned i = 0; i < 8; i++) {
        host = &hosts[((key[0] >> 32) + i) % UCT_HA_HOSTS];
        if (host->key == key[0] || host->key == 0) {
            host->key = key[0];
            return host;
        }
    }
    return &hosts[(key[0] >> 32) % UCT_HA_HOSTS];
}

void uct_ha_beat_answered_locked(struct uct_ha_peer *peer, int slot, uint64_t now)
{
    ha_beat_answer(&peer->rail[slot].beat, &peer->rail[!slot].beat, peer->pairs->heartbeat, now);
    peer->pairs->ctl->rail_rx[slot] = now;
    host_of(peer, slot)->rx         = now;
}

/* What this interface may send of what the process may. */
static uint64_t rate_of(struct uct_ha_ctl *ctl)
{
    uint64_t rate  = ctl->pairs->config->probes;
    uint64_t least = LEAST_PROBES * HA_PROBE_ONE / ctl->pairs->heartbeat;
    uint8_t  takes = !ucs_list_is_empty(&ctl->pairs->peers);

    if (takes != ctl->probes) {
        __atomic_fetch_add(&shares, takes ? 1 : -1, __ATOMIC_RELAXED);
        ctl->probes = takes;
    }
    return ucs_max(ucs_max(rate, least) / ucs_max(__atomic_load_n(&shares, __ATOMIC_RELAXED), 1), 1);
}

void uct_ha_beat_close(struct uct_ha_ctl *ctl)
{
    if (ctl->probes) {
        __atomic_fetch_sub(&shares, 1, __ATOMIC_RELAXED);
        ctl->probes = 0;
    }
}

/* It holds for others, see judge_held(). */
static void remember(struct round *round, const struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_host *host  = host_of(peer, slot);
    uint64_t            since = peer->rail[slot].beat.since;

    host->since         = host->found == round->ctl->round ? ucs_max(host->since, since) : since;
    host->found         = round->ctl->round;
    round->silent[slot] = ucs_max(round->silent[slot], since);
}

static void visit(struct round *round, struct uct_ha_peer *peer)
{
    int suspect;

    peer->round = round->ctl->round;
    uct_ha_busy_begin(&peer->busy, &peer->pairs->wakes); /* until it has answered */
    if (heartbeat(peer, round->now, &suspect)) {
        uct_ha_beat_lose_peer_locked(peer);
    } else if (suspect != HA_NO_SLOT && !peer->rail[suspect].bad) {
        remember(round, peer, suspect);
        uct_ha_fall_peer_locked(peer, suspect);
    }
    uct_ha_bad_judge_locked(peer);
}

static int is_there(struct uct_ha_peer *peer)
{
    return !peer->bye_rx && !peer->lost && !ucs_list_is_empty(&peer->conns);
}

/* Returns 0 when the budget has not enough for it. */
static int try_visit(struct round *round, struct uct_ha_peer *peer, enum ha_probe_class kind)
{
    unsigned rails = (unsigned)(can_ask(peer, 0) + can_ask(peer, 1));

    rails = ucs_max(rails, 1u);
    if (!ha_probe_take(&round->ctl->probe, kind, rails)) {
        UCT_HA_STATS_ADD(probes_held, rails);
        return 0;
    }
    if (kind == HA_PROBE_URGENT) {
        UCT_HA_STATS_ADD(probes_urgent, rails);
    } else if (kind == HA_PROBE_DOUBT) {
        UCT_HA_STATS_ADD(probes_doubt, rails);
    } else {
        UCT_HA_STATS_ADD(probes_turn, rails);
    }
    visit(round, peer);
    return 1;
}

/* Many are silent at once: some of each host are enough, for what is found of them holds for the others. */
static int has_witnesses(struct round *round, const struct uct_ha_peer *peer)
{
    struct uct_ha_host *host = host_of(peer, 0);

    if (host->round != round->ctl->round) {
        host->round = round->ctl->round;
        host->asked = 0;
    }
    return ++host->asked > WITNESSES && round->asked >= ASKED_ALL;
}

/* Questions are begun that can be brought to their end: with as many more rounds of all that are under way. */
static int can_end(const struct round *round)
{
    const struct uct_ha_ctl *ctl = round->ctl;

    return round->asked == 0 || ctl->probe.urgent >= (uint64_t)(round->asked + 1) * HA_SLOTS *
                                                         (ctl->pairs->config->heartbeat_misses + 1) * HA_PROBE_ONE;
}

static void ask_urgent(struct round *round, struct uct_ha_peer *peer)
{
    peer->held = (uint8_t)(has_witnesses(round, peer) || (!is_in_doubt(peer) && !can_end(round)) ||
                           !try_visit(round, peer, HA_PROBE_URGENT));
    round->held += peer->held;
    round->asked += !peer->held;
}

/* First those that did not answer the latest question, so that it comes to an end; then the others, and who was
 * asked is the last next time. */
static void ask_busy(struct round *round)
{
    struct uct_ha_pairs *pairs = round->ctl->pairs;
    struct uct_ha_peer  *peer, *next;

    ucs_list_for_each_safe (peer, next, &pairs->wakes.busy, busy.link) {
        take_signs(peer);
        peer->held = (uint8_t)(is_there(peer) && is_urgent(peer));
        round->urgent += peer->held;
        if (peer->held && is_in_doubt(peer)) {
            ask_urgent(round, peer);
        }
    }
    for (unsigned kind = HA_PROBE_URGENT; kind <= HA_PROBE_DOUBT; kind++) {
        ucs_list_for_each_safe (peer, next, &pairs->wakes.busy, busy.link) {
            if (peer->round == round->ctl->round || !is_there(peer) ||
                (kind == HA_PROBE_URGENT ? !peer->held : !is_in_doubt(peer))) {
                continue;
            }
            if (kind == HA_PROBE_URGENT) {
                ask_urgent(round, peer);
            } else if (!try_visit(round, peer, HA_PROBE_DOUBT)) {
                break;
            }
            if (peer->round == round->ctl->round) {
                uct_ha_busy_end(&peer->busy);
                uct_ha_busy_begin(&peer->busy, &pairs->wakes);
            }
        }
    }
}

/* Peers whose work stands still, and for whom there was no probe: what was found of another process of their host
 * holds for them if nobody was heard there since, and what was found of anybody, if nobody was heard by our rail. */
static void judge_held(struct round *round)
{
    struct uct_ha_ctl        *ctl = round->ctl;
    struct uct_ha_peer       *peer, *next;
    const struct uct_ha_host *host;

    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->rail_rx[s] < round->silent[s]) {
            uct_ha_fall_begin_locked(ctl, s, HA_CAUSE_HEARTBEAT);
        }
    }
    ucs_list_for_each_safe (peer, next, &ctl->pairs->wakes.busy, busy.link) {
        for (int s = 0; peer->held && s < HA_SLOTS; s++) {
            host = host_of(peer, s);
            if (host->found == ctl->round && host->rx < host->since && !peer->rail[s].bad && !peer->rail[s].lives) {
                uct_ha_fall_peer_locked(peer, s);
            }
        }
    }
}

/* Everybody in turn. Returns whether all had theirs in this round. */
static int ask_in_turn(struct round *round)
{
    struct uct_ha_ctl   *ctl   = round->ctl;
    struct uct_ha_pairs *pairs = ctl->pairs;
    struct uct_ha_peer  *peer;
    unsigned             count = pairs->by_cookie.count;

    if (ctl->turn_at == 0) {
        ctl->turn_at = round->now;
    }
    for (unsigned i = 0; i < count; i++) {
        peer = ucs_list_head(&pairs->turns, struct uct_ha_peer, turn_link);
        if (is_there(peer) && peer->round != ctl->round) {
            if (!peer->busy.busy) {
                take_signs(peer);
            }
            if (!try_visit(round, peer, HA_PROBE_TURN)) {
                return 0;
            }
        }
        ucs_list_del(&peer->turn_link);
        ucs_list_add_tail(&pairs->turns, &peer->turn_link);
        if (ctl->turn_left-- == 0) { /* once around */
            pairs->turn_ns = ucs_max(pairs->heartbeat, round->now - ctl->turn_at);
            ctl->turn_at   = round->now;
            ctl->turn_left = count;
        }
    }
    pairs->turn_ns = pairs->heartbeat;
    ctl->turn_at   = round->now;
    ctl->turn_left = count;
    return 1;
}

uint64_t uct_ha_beat_round_locked(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct round round = {.ctl = ctl, .now = now};
    uint32_t     polls = __atomic_load_n(&ctl->lanes->wake.polls, __ATOMIC_RELAXED);
    int          all;

    uct_ha_stall_forgive_locked(ctl, now);
    ctl->round_at = now;
    ctl->round++;
    ha_probe_earn(&ctl->probe, rate_of(ctl), now);
    ctl->polled = polls != ctl->polls;
    ctl->polls  = polls;
    uct_ha_awake_collect(&ctl->pairs->wakes);
    ask_busy(&round);
    if (round.held > 0 && (round.silent[0] | round.silent[1]) != 0) {
        judge_held(&round);
    }
    all = ask_in_turn(&round);
    /* Who is asked only once work stands still is asked later: so twice as often then. */
    return round.urgent > 0 && !all ? ctl->pairs->heartbeat / 2 : ctl->pairs->heartbeat;
}

/* ---- without heartbeats ------------------------------------------------------- */

int uct_ha_beat_ask_locked(struct uct_ha_peer *peer, uint64_t now)
{
    if (peer->asked == 0 || peer->last_rx > peer->asked_at) {
        peer->asked_at = now;
        peer->asked    = 0;
    } else if (peer->asked >= UCT_HA_QUESTIONS && now - peer->asked_at > peer->pairs->dead_peer &&
               !uct_ha_stall_may_wait_locked(peer, now)) {
        return 1;
    }
    peer->asked++;
    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        if (peer->rail[s].way != NULL && !peer->pairs->down[s]) {
            uct_ha_send_ping_locked(peer, s);
        }
    }
    if (!uct_ha_send_probes(peer)) {
        uct_ha_send_ping_locked(peer, HA_CARRIER_TCP);
    }
    uct_ha_stall_look_locked(peer, now);
    return 0;
}
