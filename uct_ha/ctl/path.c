/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The way to a peer's control port on each rail: its address handle. To make one may take
 * a second (the neighbour is asked for its hardware address), so a job thread does it.
 */

#include "ctl/ctl.h"
#include "uct/iface.h"
#include "base/job.h"
#include "pair/peer.h"
#include "pair/setup.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_NS 1000000000ull
#define AH_FAILS 2 /* attempts in a row */

/* The second rail waits so long for first messages over the first one: in any case, and at
 * most. */
#define LATER_NS 100000000ull
#define LAST_NS  500000000ull

void uct_ha_peer_drop_ah(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    rail->addr_seq++; /* a job under way works for nothing */
    if (rail->ah != NULL) {
        ha_ud_ah_destroy(rail->ah);
        rail->ah = NULL;
    }
}

void uct_ha_peer_resolve_anew(struct uct_ha_peer *peer, int slot)
{
    uct_ha_peer_drop_ah(peer, slot);
    peer->rail[slot].retry_at  = 0;
    peer->iface->ctl.check_at = 0;
}

struct resolve_job {
    struct uct_ha_job    super;
    struct uct_ha_iface *iface;
    struct ha_rail      *rail;
    uint64_t             cookie;
    int                  slot;
    uint32_t             addr_seq;
    struct ha_rail_addr  addr;
};

/* There is no way to it on this rail, which is not seen by pings, for none can be sent,
 * while the other one answers: no new lanes here until it answers as well. */
static void leave_unresolved(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (rail->ah_fails >= AH_FAILS && !rail->bad && rail->ud_qpn != 0 &&
        peer->iface->slots == HA_SLOTS && uct_ha_peer_rail_answers(peer, !slot, uct_ha_now())) {
        rail->bad    = 1;
        rail->bad_at = 0; /* not a suspicion */
        uct_ha_ctl_usable_locked(peer);
        uct_ha_ctl_flush_locked(peer->iface);
    }
}

/* On the job thread: may take a second. The peer may be gone meanwhile, so it
 * is looked up again. */
static void resolve_run(struct uct_ha_job *super)
{
    struct resolve_job      *job = ucs_container_of(super, struct resolve_job, super);
    struct uct_ha_ctl       *ctl = &job->iface->ctl;
    struct ha_ud_ah         *ah  = NULL;
    struct uct_ha_peer      *peer;
    struct uct_ha_peer_rail *rail;
    int                      status;

    status = ha_ud_ah_create(job->rail, &job->addr, &ah);
    pthread_mutex_lock(&ctl->lock);
    peer = uct_ha_peer_find(job->iface, job->cookie);
    if (peer != NULL) {
        rail          = &peer->rail[job->slot];
        rail->ah_busy = 0;
        rail->ah_fails = status == 0 ? 0 : rail->ah_fails + 1;
        if (status == 0 && rail->addr_seq == job->addr_seq && rail->ah == NULL) {
            rail->ah = ah;
            ah       = NULL;
            /* its life begins now, not when it was asked for: a look-up may outlast it */
            rail->fresh_at = uct_ha_now() + ctl->fresh_ns;
            uct_ha_ctl_flush_locked(job->iface);
        } else if (status != 0) {
            ucs_debug("ha_rc: no path from %s to its peer yet: %s",
                      ha_rail_name(job->rail), strerror(-status));
            leave_unresolved(peer, job->slot);
        }
    }
    pthread_mutex_unlock(&ctl->lock);
    if (ah != NULL) {
        ha_ud_ah_destroy(ah);
    }
    free(job);
}

/* To begin, one rail is enough; what goes out on both makes twice the work, on both
 * hosts, while first messages wait. Unless the first one is in doubt, or the peer uses
 * the second. */
static int can_wait(const struct uct_ha_peer *peer, int slot, uint64_t now)
{
    const struct uct_ha_ctl       *ctl   = &peer->iface->ctl;
    const struct uct_ha_peer_rail *first = &peer->rail[0];

    return slot != 0 && !peer->rail[slot].used &&
           (first->ah != NULL || first->ah_busy) && first->ah_fails == 0 && first->peer_up &&
           first->ud_qpn != 0 && ctl->ud[0] != NULL && !ctl->down[0] && !ha_ud_is_dead(ctl->ud[0]) &&
           now < peer->born + LAST_NS && (now < peer->born + LATER_NS || uct_ha_setup_is_busy(now));
}

void uct_ha_peer_resolve(struct uct_ha_peer *peer, uint64_t now)
{
    struct uct_ha_iface     *iface = peer->iface;
    struct uct_ha_peer_rail *rail;
    struct resolve_job      *job;

    for (int s = 0; s < iface->slots; s++) {
        rail = &peer->rail[s];
        if (!rail->known || rail->ah != NULL || rail->ah_busy || iface->ctl.down[s] ||
            iface->ctl.ud[s] == NULL || now < rail->retry_at || can_wait(peer, s, now)) {
            continue;
        }
        job = calloc(1, sizeof(*job));
        if (job == NULL) {
            continue; /* the next tick tries again */
        }
        job->super.owner = iface;
        job->super.run   = resolve_run;
        job->iface       = iface;
        job->rail        = iface->rail[s];
        job->cookie      = peer->cookie;
        job->slot        = s;
        job->addr_seq    = rail->addr_seq;
        job->addr        = rail->where.addr;
        rail->ah_busy    = 1;
        rail->retry_at   = now + RETRY_NS;
        uct_ha_job_post(UCT_HA_JOB_RESOLVE, iface->rail_no[s], &job->super);
    }
}
