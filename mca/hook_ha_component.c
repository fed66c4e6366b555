/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI opens hook components first of all, before it looks at pml
 * parameters and before anything calls ucp_init(). That makes "open" the one
 * place where a transport can still be added to UCX and where Open MPI can be
 * told to use UCX, without the user preloading or naming anything.
 */
#include "hook_ha.h"

#include <mpi.h>

#include "ompi/constants.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "opal/util/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open MPI's own, in 4.1, 5.0 and 6.0 alike. Declared here, because its headers of these include PMIx's and others that
 * Debian's libopenmpi-dev 5.0 does not bring. The second is a struct that begins so; nothing behind is looked at. */
int                         ompi_mpi_abort(MPI_Comm comm, int code);
extern mca_base_component_t mca_pml_base_selected_component;

/* Open MPI 6 (6.0.0rc2) gives a process that is alone on its host only the address for the network, and takes it for
 * itself as well. We connect nobody with himself, and "self" is not in that address; without tcp MPI_Init ends there.
 */
#if OMPI_MAJOR_VERSION >= 6
#define DEFAULT_TLS "ha_rc,sm,self,tcp"
#else
#define DEFAULT_TLS "ha_rc,sm,self"
#endif

struct mca_hook_ha_params mca_hook_ha_params = {
    .enable      = true,
    .library     = "",
    .tls         = DEFAULT_TLS,
    .report_wait = 60,
};
int mca_hook_ha_output = -1;

static bool is_active;  /* the library is loaded and defaults are set */
static char unmet[512]; /* why this process has no ha_rc, "" = it has */

/* Open MPI finds it by name; the build hides everything else. */
extern ompi_hook_base_component_t mca_hook_ha_component __attribute__((visibility("default")));

static int  hook_ha_register(void);
static int  hook_ha_open(void);
static int  hook_ha_close(void);
static void hook_ha_init_bottom(int argc, char **argv, int requested, int *provided);
static void hook_ha_finalize_top(void);

ompi_hook_base_component_t mca_hook_ha_component = {
    .hookm_version =
        {
            OMPI_HOOK_BASE_VERSION_1_0_0,
            .mca_component_name = "ha",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component            = hook_ha_open,
            .mca_close_component           = hook_ha_close,
            .mca_register_component_params = hook_ha_register,
        },
    .hookm_data             = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .hookm_mpi_init_bottom  = hook_ha_init_bottom,
    .hookm_mpi_finalize_top = hook_ha_finalize_top,
};
#ifdef MCA_BASE_COMPONENT_INIT /* Open MPI 6 looks the component up through this */
MCA_BASE_COMPONENT_INIT(ompi, hook, ha)
#endif

static void param_register(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_info_lvl_t level,
                           void *storage)
{
    (void)mca_base_component_var_register(&mca_hook_ha_component.hookm_version, name, help, type, NULL, 0, 0, level,
                                          MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static int hook_ha_register(void)
{
    struct mca_hook_ha_params *p = &mca_hook_ha_params;

    param_register("enable", "Load the UCX transport ha_rc and make it the default", MCA_BASE_VAR_TYPE_BOOL,
                   OPAL_INFO_LVL_2, &p->enable);
    param_register("require",
                   "End a job that would run without ha_rc, instead of letting it run unprotected; UCX_HA_RC_REQUIRE "
                   "becomes y",
                   MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_2, &p->require);
    param_register("tls", "UCX_TLS for jobs that do not set it themselves", MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_3,
                   &p->tls);
    param_register("library",
                   "libuct_ha to load, a path or a name for the dynamic loader; empty: the "
                   "installed one",
                   MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_4, &p->library);
    param_register("verbose",
                   "0: only when ha_rc was asked for and cannot be had; 1: what was decided, and "
                   "totals at finalize; 2: every default set",
                   MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_3, &p->verbose);
    param_register("report",
                   "At finalize, 1: rank 0 says for the whole job what failed over, the longest pause, which rails are "
                   "down and which endpoints have no standby; 2: each process says its own before that",
                   MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_3, &p->report);
    param_register("report_wait", "Seconds that the report waits for processes that come to finalize later, or never",
                   MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &p->report_wait);
    mca_hook_ha_pvar_register(&mca_hook_ha_component.hookm_version);
    return OMPI_SUCCESS;
}

/* All processes of a host have the same to tell: the first of them does, so that a job of
 * thousands is not drowned in it. By what the launcher says, as nothing of Open MPI's own
 * is up when we open; and later may be too late, the job may end for this very reason. */
static bool is_first_of_host(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
    size_t                   i;

    for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *rank = getenv(variables[i]);

        if (rank) {
            return strcmp(rank, "0") == 0;
        }
    }
    return true;
}

/* Verbosity from which on it is said that the job has no ha_rc; where it is required, its end is said instead. */
static int unmet_level(bool is_asked_for)
{
    return is_asked_for && is_first_of_host() && !mca_hook_ha_params.require ? 0 : 1;
}

/* Success whatever happens: without us the job runs as it would have run. */
static int hook_ha_open(void)
{
    const struct mca_hook_ha_params *p            = &mca_hook_ha_params;
    const char                      *reason       = NULL;
    bool                             is_asked_for = mca_hook_ha_choice_is_explicit();
    bool                             is_told;

    mca_hook_ha_output = opal_output_open(NULL);
    opal_output_set_verbosity(mca_hook_ha_output, p->verbose);
    if (!p->enable) {
        opal_output_verbose(1, mca_hook_ha_output, "hook/ha: off (hook_ha_enable=0)");
        return OMPI_SUCCESS;
    }
    if (p->require) {
        (void)setenv("UCX_HA_RC_REQUIRE", "y", 0);
    }
    if (!mca_hook_ha_choice_allows(&reason)) {
        (void)snprintf(unmet, sizeof(unmet), "%s", reason);
        opal_output_verbose(unmet_level(is_asked_for), mca_hook_ha_output,
                            is_asked_for ? "hook/ha: ha_rc was asked for, but %s: the job goes on "
                                           "without it; drop one of the two settings, or say "
                                           "--mca hook_ha_enable 0"
                                         : "hook/ha: nothing to do: %s",
                            reason);
        return OMPI_SUCCESS;
    }
    if (!mca_hook_ha_library_load(&reason, &is_told)) {
        (void)snprintf(unmet, sizeof(unmet), "%s", reason);
        opal_output_verbose(unmet_level(is_asked_for && !is_told), mca_hook_ha_output,
                            "hook/ha: ha_rc is not available, the job goes on without it: %s", reason);
        return OMPI_SUCCESS;
    }
    is_active = true;
    mca_hook_ha_choice_apply_defaults();
    opal_output_verbose(1, mca_hook_ha_output, "hook/ha: loaded %s", mca_hook_ha_library_path());
    return OMPI_SUCCESS;
}

static int hook_ha_close(void)
{
    if (mca_hook_ha_output >= 0) {
        opal_output_close(mca_hook_ha_output);
        mca_hook_ha_output = -1;
    }
    return OMPI_SUCCESS;
}

static const char *env_or_default(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "all";
}

/* The user said that no job is better than one without protection. Through Open MPI's own door, so that the launcher
 * ends all of it; by the first moment at which that works. */
static void end_if_required(void)
{
    if (mca_hook_ha_params.require && unmet[0] != '\0') {
        if (is_first_of_host()) {
            opal_output(0,
                        "hook/ha: hook_ha_require=1, and this process has no ha_rc: %s. The job ends; without "
                        "hook_ha_require it goes on unprotected",
                        unmet);
        } else {
            (void)sleep(2); /* the first one says it for all, and ends us with it */
        }
        (void)ompi_mpi_abort(MPI_COMM_WORLD, 1);
    }
}

/* ob1 stays a fallback, so a host whose ports are all down still runs; but then
 * nobody should believe that the job is protected. */
static void hook_ha_init_bottom(int argc, char **argv, int requested, int *provided)
{
    const char         *pml = mca_pml_base_selected_component.mca_component_name;
    struct uct_ha_stats s;

    (void)argc, (void)argv, (void)requested, (void)provided;
    if (!is_active) {
        end_if_required();
        return;
    }
    if (strcmp(pml, "ucx") != 0) {
        (void)snprintf(unmet, sizeof(unmet), "Open MPI took pml/%s, not pml/ucx", pml);
        opal_output_verbose(unmet_level(true), mca_hook_ha_output,
                            "hook/ha: Open MPI took pml/%s, not pml/ucx: no traffic of this process "
                            "uses ha_rc. Is a rail's port ACTIVE (ibv_devinfo)? Details: --mca "
                            "opal_common_ucx_verbose 10",
                            pml);
    } else if (mca_hook_ha_library_stats(&s) && s.rails_up + s.rails_down == 0) {
        (void)snprintf(unmet, sizeof(unmet), "UCX uses no device of it");
        opal_output_verbose(unmet_level(mca_hook_ha_choice_is_explicit()), mca_hook_ha_output,
                            "hook/ha: UCX uses no device of ha_rc (UCX_TLS=%s, UCX_NET_DEVICES=%s): "
                            "the job goes on without it. Is a rail's port ACTIVE (ibv_devinfo)? "
                            "Details: UCX_LOG_LEVEL=diag",
                            env_or_default("UCX_TLS"), env_or_default("UCX_NET_DEVICES"));
    }
    end_if_required();
}

static void hook_ha_finalize_top(void)
{
    struct uct_ha_stats s;

    if (mca_hook_ha_params.enable && mca_hook_ha_params.report > 0) {
        mca_hook_ha_report(unmet);
    }
    if (!is_active || !mca_hook_ha_library_stats(&s)) {
        return;
    }
    opal_output_verbose(1, mca_hook_ha_output,
                        "hook/ha: failovers %" PRIu64 ", replayed %" PRIu64 ", retired %" PRIu64
                        ", false alarms %" PRIu64 ", endpoint errors %" PRIu64 ", time in failover %.3f ms",
                        s.failovers, s.replayed, s.retired, s.false_alarms, s.ep_errors,
                        (double)s.outage_ns_total / 1e6);
}
