/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/look.h"

#include "base/job.h"
#include "base/now.h"
#include "pair/conn.h"
#include "pair/peer.h"

#include <stdlib.h>

#define LANES  4 /* at most, per look */
#define RECENT 4 /* heartbeats between two looks that are compared, at most */

struct look_job {
    struct uct_ha_job    super;
    struct uct_ha_pairs *pairs;
    uint64_t             cookie;
    int                  slot;
    unsigned             count;
    struct uct_ha_lane  *lane[LANES]; /* busy: not destroyed before the job is done */
};

/* Has it moved since the look before? */
static int compare(struct uct_ha_lane *lane, uint32_t psn, uint64_t heartbeat, uint64_t now)
{
    int moved = psn != lane->look_psn && now < lane->look_at + RECENT * heartbeat;

    lane->look_psn = psn;
    lane->look_at  = now;
    return moved;
}

static void look_run(struct uct_ha_job *super)
{
    struct look_job     *job   = ucs_container_of(super, struct look_job, super);
    struct uct_ha_pairs *pairs = job->pairs;
    struct uct_ha_peer  *peer;
    uint32_t             psn[LANES];
    int                  status[LANES], flows = 0;

    for (unsigned i = 0; i < job->count; i++) {
        status[i] = ha_rc_expected_psn(job->lane[i]->rc, &psn[i]);
    }
    pthread_mutex_lock(&pairs->lanes->wake.lock);
    for (unsigned i = 0; i < job->count; i++) {
        job->lane[i]->busy = 0;
        flows |= status[i] == 0 && compare(job->lane[i], psn[i], pairs->heartbeat, uct_ha_now());
    }
    peer = uct_ha_peer_find(pairs, job->cookie);
    if (peer != NULL) {
        peer->rail[job->slot].looking = 0;
        peer->rail[job->slot].flows   = (uint8_t)flows;
    }
    pthread_mutex_unlock(&pairs->lanes->wake.lock);
    free(job);
}

void uct_ha_look_begin_locked(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    struct look_job         *job  = rail->looking ? NULL : calloc(1, sizeof(*job));
    struct uct_ha_conn      *conn;
    struct uct_ha_lane      *lane;

    if (job == NULL) {
        return;
    }
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        lane = conn->road->lane[slot];
        if (job->count < LANES && lane != NULL && !uct_ha_lane_is_fenced(lane) && !lane->busy && lane->connected &&
            conn->pair.lane[slot].act == conn->pair.epoch) {
            lane->busy              = 1;
            job->lane[job->count++] = lane;
        }
    }
    if (job->count == 0) {
        free(job);
        return;
    }
    rail->looking    = 1;
    job->super.owner = peer->pairs->lanes;
    job->super.run   = look_run;
    job->pairs       = peer->pairs;
    job->cookie      = peer->cookie;
    job->slot        = slot;
    uct_ha_job_post(UCT_HA_JOB_LOOK, peer->pairs->lanes->rail_no[slot], &job->super);
}
