/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/stall.h"

#include "base/messages.h"
#include "base/stats.h"
#include "core/ha_state.h"
#include "ctl/send.h"
#include "ctl/tcp.h"
#include "pair/peer.h"
#include "pair/report.h"

#define CALLS_MAX     64u /* each takes a descriptor, which the program may need */
#define TELL_AGAIN_NS 10000000000ull

/* Many peers may be on a host that has come to a stand: the first line says it. */
static void tell(struct uct_ha_peer *peer, uint64_t now)
{
    uint64_t       *told  = &peer->pairs->ctl->stall_told;
    ucs_log_level_t level = *told != 0 && now - *told < TELL_AGAIN_NS ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_WARN;
    char            text[UCT_HA_ADDR_TEXT_MAX];

    *told = level == UCS_LOG_LEVEL_WARN ? now : *told;
    ucs_log(
        level,
        "ha_rc [HA-%u]: peer %016lx at %s has been silent for %.1f s, but its host answers for it: it is stopped, or "
        "gets no processor. It is waited for until it was silent for %.0f s",
        UCT_HA_MSG_STALLED, (unsigned long)peer->cookie, uct_ha_addr_text(&peer->rail[0].where.addr, text),
        (double)(now - peer->asked_at) / 1e9, HA_PATIENCE * (double)peer->pairs->dead_peer / 1e9);
}

static void set_stalled(struct uct_ha_stall *stall, int stalled)
{
    UCT_HA_STATS_ADD(stalled, stalled - stall->stalled);
    stall->stalled = (uint8_t)stalled;
}

static void call(struct uct_ha_peer *peer, uint64_t now)
{
    struct uct_ha_stall *stall = &peer->stall;

    uct_ha_send_call_locked(peer);
    if (stall->called_at == 0 && peer->tcp_link == NULL) {
        return; /* there is no way to */
    }
    peer->pairs->ctl->calls += stall->called_at == 0;
    stall->called_at = now;
}

void uct_ha_stall_look_locked(struct uct_ha_peer *peer, uint64_t now)
{
    struct uct_ha_stall *stall = &peer->stall;
    uint64_t             limit = peer->pairs->dead_peer;
    int                  was   = stall->stalled;

    if (peer->asked < UCT_HA_QUESTIONS || now - peer->asked_at < limit / 4 ||
        (stall->called_at != 0 ? now - stall->called_at < limit / 8 : peer->pairs->ctl->calls >= CALLS_MAX)) {
        return;
    }
    set_stalled(stall, stall->called_at != 0 && stall->answered_at < stall->called_at && peer->tcp_link != NULL &&
                           uct_ha_tcp_is_acknowledged(peer->tcp_link));
    if (stall->stalled && !was) {
        tell(peer, now);
    }
    call(peer, now);
}

int uct_ha_stall_may_wait_locked(const struct uct_ha_peer *peer, uint64_t now)
{
    return peer->stall.stalled && now - peer->asked_at <= HA_PATIENCE * peer->pairs->dead_peer;
}

void uct_ha_stall_answered_locked(struct uct_ha_peer *peer, uint64_t now)
{
    peer->stall.answered_at = now;
    set_stalled(&peer->stall, 0);
}

void uct_ha_stall_end_locked(struct uct_ha_peer *peer)
{
    if (peer->stall.called_at == 0) {
        return;
    }
    peer->stall.called_at = 0;
    set_stalled(&peer->stall, 0);
    peer->pairs->ctl->calls--;
    if (peer->tcp_link != NULL && uct_ha_send_probes(peer)) { /* else its control packets go by it */
        uct_ha_tcp_link_destroy(peer->tcp_link);
        peer->tcp_link = NULL;
    }
}

void uct_ha_stall_forgive_locked(struct uct_ha_ctl *ctl, uint64_t now)
{
    uint64_t            pause = now - ctl->round_at;
    struct uct_ha_peer *peer;

    if (pause <= 4 * ctl->pairs->heartbeat) {
        return;
    }
    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        peer->last_rx  = ucs_min(peer->last_rx + pause, now);
        peer->asked_at = ucs_min(peer->asked_at + pause, now);
        if (pause > ctl->pairs->dead_peer / 2) {
            peer->retells = UCT_HA_RETELLS;
        }
        for (int s = 0; s < HA_SLOTS; s++) {
            if (peer->rail[s].last_rx != 0) {
                peer->rail[s].last_rx = ucs_min(peer->rail[s].last_rx + pause, now);
            }
            peer->rail[s].waiting    = 0;
            peer->rail[s].missed     = 0;
            peer->rail[s].beat.since = 0;
            if (pause > ctl->fresh_ns) {
                peer->rail[s].fresh_at = 0; /* short pauses may be many: those do not count */
            }
        }
    }
    ctl->round_at = now;
}
