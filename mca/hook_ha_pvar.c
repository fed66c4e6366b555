/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One MPI_T performance variable per field of struct uct_ha_stats, read from the
 * library each time. Class SIZE for totals and LEVEL for the present state: a
 * variable of class COUNTER would be read relative to when the tool's handle was
 * started, and a tool that comes late would see no failover.
 */
#include "hook_ha.h"

#include <mpi.h>

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"

#include <stddef.h>
#include <stdint.h>

struct total {
    const char *name;
    const char *help;
    int         var_class;
    size_t      offset;
};

#define TOTAL(_field, _class, _help)                                                        \
    {                                                                                       \
#_field, _help, MCA_BASE_PVAR_CLASS_##_class, offsetof(struct uct_ha_stats, _field) \
    }

static const struct total totals[] = {
    TOTAL(failovers, SIZE, "Endpoint pairs moved to another rail"),
    TOTAL(replayed, SIZE, "Operations posted again after a failover"),
    TOTAL(retired, SIZE, "Operations the peer proved executed, not sent again"),
    TOTAL(false_alarms, SIZE, "Lanes fenced on suspicion whose rail was well"),
    TOTAL(ep_errors, SIZE, "Endpoints that ended with an error"),
    TOTAL(outage_ns_total, SIZE, "Time in failover, all failovers together (ns)"),
    TOTAL(outage_ns_last, LEVEL, "Time in the latest failover (ns)"),
    TOTAL(rails_up, LEVEL, "Rails open in this process whose port is active"),
    TOTAL(rails_down, LEVEL, "Rails open in this process whose port is not active"),
    TOTAL(ctl_tx, SIZE, "Control packets sent"),
    TOTAL(ctl_rx, SIZE, "Control packets accepted"),
    TOTAL(ctl_dropped, SIZE, "Control packets dropped: stray, stale, short or forged"),
    TOTAL(heartbeats_missed, SIZE, "Heartbeats without an answer in time"),
    TOTAL(pairs, LEVEL, "Endpoint pairs that can send"),
    TOTAL(standbys, LEVEL, "Endpoint pairs with a second lane ready on both sides"),
    TOTAL(connecting, LEVEL, "Connections being set up from here"),
    TOTAL(accepting, LEVEL, "Connections being set up by peers"),
    TOTAL(connects, SIZE, "Connections set up from here"),
    TOTAL(accepts, SIZE, "Connections set up by peers"),
    TOTAL(connect_failures, SIZE, "Connections from here that failed before they could send"),
    TOTAL(accept_failures, SIZE, "Connections of peers that failed before they could send"),
    TOTAL(connect_ns_total, SIZE, "Time of all connections set up from here (ns)"),
    TOTAL(connect_ns_max, LEVEL, "Longest set-up from here (ns)"),
    TOTAL(accept_ns_total, SIZE, "Time of all connections set up by peers (ns)"),
    TOTAL(accept_ns_max, LEVEL, "Longest set-up by a peer (ns)"),
    TOTAL(in_doubt, SIZE, "Operations ended with an error because nobody can tell what became of them"),
};

static int total_read(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    const struct total *total = pvar->ctx;
    struct uct_ha_stats stats;

    (void)object;
    (void)mca_hook_ha_library_stats(&stats); /* all zero while not loaded */
    *(unsigned long long *)value = *(const uint64_t *)((const char *)&stats + total->offset);
    return OMPI_SUCCESS;
}

void mca_hook_ha_pvar_register(const mca_base_component_t *component)
{
    size_t i;

    for (i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        (void)mca_base_component_pvar_register(component, totals[i].name, totals[i].help, OPAL_INFO_LVL_4,
                                               totals[i].var_class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                               MPI_T_BIND_NO_OBJECT,
                                               MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, total_read,
                                               NULL, NULL, (void *)(uintptr_t)&totals[i]);
    }
}
