/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Defaults without overwriting. Who set a value decides whether it stands:
 *
 *   command line, environment, the user's own files    always stands
 *   system parameter file, a positive list (pml = ob1)  stands: an administrator chose
 *   system parameter file, a negative list (pml = ^ucx) yields: it is what the
 *       distribution ships because its UCX knows no device, and now it knows one
 */
#include "hook_ha.h"

#include "opal/constants.h"
#include "opal/util/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_PARAM_FILE "openmpi-mca-params.conf"
#define TRANSPORT         "ha_rc"

static char reason_text[256];

/* "^a,b" lists what is forbidden, "a,b" what is allowed. */
static bool list_has(const char *list, const char *name)
{
    size_t length = strlen(name);

    list += strspn(list, "^");
    while (*list != '\0') {
        size_t token = strcspn(list, ",");

        if (token == length && strncmp(list, name, length) == 0) {
            return true;
        }
        list += token;
        list += strspn(list, ",");
    }
    return false;
}

static bool list_allows(const char *list, const char *name)
{
    return list_has(list, name) != (list[0] == '^');
}

static bool is_system_file(const char *path)
{
    const char *base = path ? strrchr(path, '/') : NULL;

    return base && strcmp(base + 1, SYSTEM_PARAM_FILE) == 0;
}

/*
 * The framework registers its selection parameter only later. Registering it
 * now, under the same name and type, is the way to see its value with all of
 * Open MPI's own rules on precedence applied; afterwards it is given back.
 * Returns a copy of a value that stands, NULL when there is none.
 */
static char *framework_choice(const char *framework)
{
    static char          *storage;
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const char           *file   = NULL;
    char                 *choice = NULL;
    int                   index;

    storage = NULL;
    index   = mca_base_var_register("ompi", framework, NULL, NULL, "", MCA_BASE_VAR_TYPE_STRING, NULL, 0,
                                    MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ, &storage);
    if (index < 0) {
        return NULL;
    }
    (void)mca_base_var_get_value(index, NULL, &source, &file);
    if (storage && storage[0] != '\0' && source != MCA_BASE_VAR_SOURCE_DEFAULT &&
        !(source == MCA_BASE_VAR_SOURCE_FILE && is_system_file(file) && storage[0] == '^')) {
        choice = strdup(storage);
    }
    (void)mca_base_var_deregister(index);
    return choice;
}

static bool forbid(const char **reason, const char *setting, const char *value)
{
    (void)snprintf(reason_text, sizeof(reason_text), "%s=%s excludes %s", setting, value,
                   strcmp(setting, "UCX_TLS") == 0 ? TRANSPORT : "ucx");
    *reason = reason_text;
    return false;
}

bool mca_hook_ha_choice_allows(const char **reason)
{
    const char *tls     = getenv("UCX_TLS");
    char       *pml     = framework_choice("pml");
    bool        allowed = true;

    if (pml && !list_allows(pml, "ucx")) {
        allowed = forbid(reason, "pml", pml);
    } else if (tls && !list_has(tls, "all") && !list_allows(tls, TRANSPORT)) {
        allowed = forbid(reason, "UCX_TLS", tls);
    }
    free(pml);
    return allowed;
}

/* hook_ha_enable=1 written down somewhere, not just our default. */
static bool is_enabled_by_name(void)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    int                   index  = mca_base_var_find("ompi", "hook", "ha", "enable");

    return mca_hook_ha_params.enable && index >= 0 &&
           mca_base_var_get_value(index, NULL, &source, NULL) == OPAL_SUCCESS && source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

bool mca_hook_ha_choice_is_explicit(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls && tls[0] != '^' && list_has(tls, TRANSPORT)) || mca_hook_ha_params.library[0] != '\0' ||
           is_enabled_by_name();
}

static void default_set(const char *name, const char *value)
{
    if (getenv(name)) {
        opal_output_verbose(2, mca_hook_ha_output, "hook/ha: kept %s=%s", name, getenv(name));
    } else if (setenv(name, value, 0) == 0) {
        opal_output_verbose(2, mca_hook_ha_output, "hook/ha: set %s=%s", name, value);
    }
}

static void framework_default_set(const char *framework, const char *value)
{
    char *choice = framework_choice(framework);
    char  name[64];

    (void)snprintf(name, sizeof(name), "OMPI_MCA_%s", framework);
    if (choice) {
        opal_output_verbose(2, mca_hook_ha_output, "hook/ha: kept %s=%s", framework, choice);
    } else {
        default_set(name, value);
    }
    free(choice);
}

/* opal_common_ucx_NAME has the synonyms pml_ucx_NAME and osc_ucx_NAME. */
static void common_ucx_default_set(const char *name, const char *value)
{
    static const char *const prefixes[] = {"OMPI_MCA_pml_ucx_", "OMPI_MCA_osc_ucx_"};
    char                     variable[64];
    size_t                   i;

    for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        (void)snprintf(variable, sizeof(variable), "%s%s", prefixes[i], name);
        if (getenv(variable)) {
            return;
        }
    }
    (void)snprintf(variable, sizeof(variable), "OMPI_MCA_opal_common_ucx_%s", name);
    default_set(variable, value);
}

void mca_hook_ha_choice_apply_defaults(void)
{
    default_set("UCX_TLS", mca_hook_ha_params.tls);

    /* A negative list, as Open MPI's own default would be: ucx wins by priority,
     * and where UCX ends up with no device ob1 still starts the job. A positive
     * list of two components does not work in 4.1. */
    framework_default_set("pml", "^cm");

    /* Not rdma: it wins over ucx and runs over BTLs, past ha_rc. But sm: it alone
     * offers MPI_Win_allocate_shared. */
    framework_default_set("osc", "ucx,sm");

    /* pml/ucx accepts itself only over transports and devices it knows. Keep its
     * own list, so that UCX's InfiniBand transports count as before. */
    common_ucx_default_set("tls", "rc_verbs,ud_verbs,rc_mlx5,dc_mlx5,ud_mlx5,cuda_ipc,rocm_ipc," TRANSPORT);
    common_ucx_default_set("devices", "any");
}
