/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MCA_HOOK_HA_H_
#define MCA_HOOK_HA_H_

/*
 * The parts of the Open MPI component "hook/ha":
 *
 *   hook_ha_component.c   component table, MCA parameters, open and finalize
 *   hook_ha_choice.c      what the user already chose, and defaults around it
 *   hook_ha_library.c     libuct_ha.so: load, prove it is usable, read totals
 *   hook_ha_pvar.c        MPI_T performance variables
 *   hook_ha_report.c      what the job went through, said at its end
 *
 * One instance per process; MPI_Init runs all of it in one thread, MPI_T may
 * read the totals from any thread later.
 */

#include "ompi_config.h"

#include <stdbool.h>

#include "opal/mca/base/base.h"
#include "uct_ha/uct_ha.h"

/* MCA parameters; owned by Open MPI's variable system. */
struct mca_hook_ha_params {
    bool  enable;
    bool  require;     /* a job that would run without ha_rc ends */
    char *library;     /* file or soname; empty: installed library, then the soname */
    char *tls;         /* default for UCX_TLS */
    int   report;      /* 0 none, 1 of the job, 2 and of each process */
    int   report_wait; /* seconds that a process waits for the others' part of it */
    int   verbose;     /* 0 silent unless the user asked for ha_rc and cannot have it */
};

extern struct mca_hook_ha_params mca_hook_ha_params;
extern int                       mca_hook_ha_output;

/* --- hook_ha_choice.c --- */

/* May the job use ha_rc as far as its own settings go? When not, *reason tells
 * which setting forbids it (static text and the value, valid until next call). */
bool mca_hook_ha_choice_allows(const char **reason);

/* Did the user name ha_rc himself, so that silence about a failure would hide
 * that his wish was not met? */
bool mca_hook_ha_choice_is_explicit(void);

/* Set every default that neither user nor administrator has set. */
void mca_hook_ha_choice_apply_defaults(void);

/* --- hook_ha_library.c --- */

/* Load the transport. True when UCX now knows a component "ha" with at least
 * one device; otherwise *reason says why not, and *is_told whether the library has
 * said so itself. Never unloads: UCX keeps pointers into the library from then on. */
bool mca_hook_ha_library_load(const char **reason, bool *is_told);

/* True when the loaded library exports its totals. Zeroes *stats otherwise. */
bool mca_hook_ha_library_stats(struct uct_ha_stats *stats);

/* Rail `index` as uct_ha_rail_stats_get() has it; -EINVAL when there is no such call, too. */
int mca_hook_ha_library_rail(unsigned index, struct uct_ha_rail_stats *rail);

/* File name the loader resolved, or NULL. */
const char *mca_hook_ha_library_path(void);

/* --- hook_ha_pvar.c --- */
void mca_hook_ha_pvar_register(const mca_base_component_t *component);

/* --- hook_ha_report.c --- */

/* Says it, by all processes of the job: while MPI is all there. `unmet` tells why
 * this process has no ha_rc; "" = it has. */
void mca_hook_ha_report(const char *unmet);

#endif
