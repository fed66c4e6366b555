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

/* Once at a time. */
static void post(struct uct_ha_recycle *recycle, struct uct_ha_ctl *ctl, int slot, void (*run)(struct uct_ha_job *job))
{
    if (!recycle->busy) {
        recycle->busy        = 1;
        recycle->ctl         = ctl;
        recycle->slot        = slot;
        recycle->super.owner = ctl->lanes;
        recycle->super.run   = run;
        uct_ha_job_post(UCT_HA_JOB_PORT, ctl->lanes->rail_no[slot], &recycle->super);
    }
}

void uct_ha_port_recycle_locked(struct uct_ha_ctl *ctl, int slot)
{
    struct uct_ha_recycle *recycle = &ctl->recycle[slot];

    if (ctl->ud[slot] != NULL && !ctl->lanes->left[slot]) {
        post(recycle, ctl, slot, recycle_run);
    }
}

/* Behind whatever brings it up again. Who closes the interface has it already when there is no handler any more. */
static void leave_run(struct uct_ha_job *job)
{
    struct uct_ha_recycle *leave = ucs_container_of(job, struct uct_ha_recycle, super);
    struct uct_ha_ctl     *ctl   = leave->ctl;
    struct ha_ud          *ud    = NULL;

    pthread_mutex_lock(&ctl->lanes->wake.lock);
    leave->busy = 0;
    if (ctl->ud_handled[leave->slot]) {
        ud                           = ctl->ud[leave->slot];
        ctl->ud[leave->slot]         = NULL;
        ctl->ud_handled[leave->slot] = 0;
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
    if (ud != NULL) {
        ucs_async_remove_handler(ha_ud_fd(ud), 1);
        ha_ud_destroy(ud);
    }
}

void uct_ha_port_leave_locked(struct uct_ha_ctl *ctl, int slot)
{
    if (ctl->ud[slot] != NULL) {
        post(&ctl->leave[slot], ctl, slot, leave_run);
    }
}

int uct_ha_port_works_locked(const struct uct_ha_ctl *ctl, int slot)
{
    return ctl->ud[slot] != NULL && !ctl->pairs->down[slot] && !ctl->recycle[slot].busy &&
           !ha_ud_is_dead(ctl->ud[slot]);
}
