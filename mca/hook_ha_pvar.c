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

#include "uct_ha/uct_ha_counters.h"

#include <stddef.h>
#include <stdint.h>

struct total {
    const char *name;
    const char *help;
    int         var_class;
    size_t      offset;
};

#define OF_CLASS(_field, _class, _help) \
    {#_field, _help, MCA_BASE_PVAR_CLASS_##_class, offsetof(struct uct_ha_stats, _field)},
#define OF_TOTAL(_field, _help)                     OF_CLASS(_field, SIZE, _help)
#define OF_LEVEL(_field, _help)                     OF_CLASS(_field, LEVEL, _help)
#define OF_TOTAL_NS(_field, _help)                  OF_CLASS(_field, SIZE, _help " (ns)")
#define OF_LEVEL_NS(_field, _help)                  OF_CLASS(_field, LEVEL, _help " (ns)")
#define OF_HIST(_field, _help)                      /* many numbers */
#define OF_TABLE(_field, _kind, _len, _name, _help) OF_##_kind(_field, _help)

static const struct total totals[] = {UCT_HA_COUNTERS(OF_TABLE)};

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
