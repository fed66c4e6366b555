/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/progress.h"

#include "data/pending.h"
#include "data/resume.h"
#include "data/tx.h"
#include "uct/control.h"
#include "uct/poll.h"

/* Connections that have been silent from one look to the next are told of. */
#define LOOK_EVERY 1024u /* calls; a power of two */

unsigned uct_ha_progress(uct_iface_h tl_iface)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    unsigned             count;

    __atomic_store_n(&iface->lanes.wake.polls, iface->lanes.wake.polls + 1, __ATOMIC_RELAXED);
    count = uct_ha_poll_awaited(iface);
    if (ucs_unlikely(__atomic_load_n(&iface->lanes.wake.pending, __ATOMIC_RELAXED))) {
        count += uct_ha_control(iface);
    }
    if (ucs_unlikely(iface->lanes.wake.polls % LOOK_EVERY == 0)) {
        uct_ha_tx_tails(&iface->flows, 0);
    }
    if (ucs_unlikely(!ucs_list_is_empty(&iface->flows.backlog))) {
        uct_ha_resume_backlog(&iface->flows);
    }
    if (ucs_unlikely(!ucs_list_is_empty(&iface->flows.pending))) {
        count += uct_ha_pending_dispatch(&iface->flows);
    }
    return count;
}
