/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/port.h"

static void recycle_run(struct uct_ha_job *job)
{
    struct uct_ha_recycle *recycle = ucs_container_of(job, struct uct_ha_recycle, super);
    struct uct_ha_ctl     *ctl     = recycle->ctl;
    int                    status  = ha_ud_recycle(ctl->ud[recycle->slot]);

    pthread_mutex_lock(&ctl->lanes->wake.lock);
    recycle->busy = 0;
    if (status == 0) {
        (void)ha_ud_arm(ctl->ud[recycle->slot]);
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
}

void uct_ha_port_recycle_locked(struct uct_ha_ctl *ctl, int slot)
{
    struct uct_ha_recycle *recycle = &ctl->recycle[slot];

    if (ctl->ud[slot] == NULL || recycle->busy) {
        return;
    }
    recycle->busy        = 1;
    recycle->ctl         = ctl;
    recycle->slot        = slot;
    recycle->super.owner = ctl->lanes;
    recycle->super.run   = recycle_run;
    uct_ha_job_post(UCT_HA_JOB_PORT, ctl->lanes->rail_no[slot], &recycle->super);
}

int uct_ha_port_works_locked(const struct uct_ha_ctl *ctl, int slot)
{
    return ctl->ud[slot] != NULL && !ctl->pairs->down[slot] && !ctl->recycle[slot].busy &&
           !ha_ud_is_dead(ctl->ud[slot]);
}
