/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/flush.h"

#include "ctl/send.h"
#include "ctl/timer.h"

void uct_ha_flush_locked(struct uct_ha_ctl *ctl)
{
    uct_ha_send_due_locked(ctl);
    uct_ha_timer_set_locked(ctl);
    uct_ha_wake_user(&ctl->lanes->wake);
}
