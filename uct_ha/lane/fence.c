/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/fence.h"

#include "base/now.h"
#include "lane/look.h"

#include <string.h>

/* A device that was told to flush has done so by then. */
#define FLUSH_NS 10000000ull

static void take_refusal(struct uct_ha_lane *lane, int status)
{
    if (++lane->fence_fails == UCT_HA_FENCE_TRIES && lane->road != NULL) {
        ucs_warn("ha_rc [HA-509]: %s does not stop queue pair 0x%x: %s; what it has executed cannot be proved",
                 ha_rail_name(lane->lanes->rail[lane->slot]), ha_rc_qpn(lane->rc), strerror(-status));
    }
}

static void fence_run(struct uct_ha_job *job)
{
    struct uct_ha_lane  *lane   = ucs_container_of(job, struct uct_ha_lane, job);
    struct uct_ha_lanes *lanes  = lane->lanes;
    int                  status = ha_rc_fence(lane->rc);

    pthread_mutex_lock(&lanes->wake.lock);
    lane->fencing  = 0;
    lane->fence_at = uct_ha_now();
    if (status == 0) {
        lane->fence_fails = 0;
    } else if (lane->fence_fails < UCT_HA_FENCE_TRIES) {
        take_refusal(lane, status);
    }
    if (lane->road == NULL) {
        lane->park_until = ucs_max(lane->park_until, lane->fence_at + FLUSH_NS);
    } else if (!lanes->leaving) { /* else nothing new is begun */
        lanes->stopped(lane);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
}

void uct_ha_fence_begin_locked(struct uct_ha_lane *lane)
{
    if (lane->fencing || lane->asking) {
        return;
    }
    if (!lane->fenced) {
        lane->fenced_at = uct_ha_now();
        uct_ha_look_stopping_locked(lane->lanes, 1);
    }
    __atomic_store_n(&lane->fenced, 1, __ATOMIC_RELAXED);
    lane->fencing   = 1;
    lane->job.owner = lane->lanes;
    lane->job.run   = fence_run;
    uct_ha_job_post(UCT_HA_JOB_FENCE, lane->lanes->rail_no[lane->slot], &lane->job);
}

static void forget(struct uct_ha_job *job)
{
    struct uct_ha_lane *lane = ucs_container_of(job, struct uct_ha_lane, job);

    lane->fencing = lane->asking = 0;
}

void uct_ha_fence_cancel(struct uct_ha_lanes *lanes)
{
    uct_ha_job_cancel(UCT_HA_JOB_FENCE, lanes, forget);
}
