/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One MPI process which prints what the component did, one "name=value" per
 * line: the environment it left behind and every hook_ha_* MPI_T variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static void environment_print(const char *name)
{
    const char *value = getenv(name);

    printf("%s=%s\n", name, value ? value : "(unset)");
}

static void pvar_print(MPI_T_pvar_session session, int index, const char *name)
{
    MPI_T_pvar_handle  handle;
    unsigned long long value = 0;
    int                count;

    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS ||
        MPI_T_pvar_read(session, handle, &value) != MPI_SUCCESS) {
        printf("%s=error\n", name);
        return;
    }
    printf("%s=%llu\n", name, value);
    MPI_T_pvar_handle_free(session, &handle);
}

static void pvars_print(void)
{
    MPI_T_pvar_session session;
    int                i, n = 0;

    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&n);
    for (i = 0; i < n; i++) {
        char         name[256], help[256];
        int          name_length = sizeof(name), help_length = sizeof(help);
        int          verbosity, var_class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum   enumeration;

        if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &var_class, &type, &enumeration, help, &help_length,
                                &bind, &readonly, &continuous, &atomic) == MPI_SUCCESS &&
            strncmp(name, "hook_ha_", 8) == 0) {
            pvar_print(session, i, name);
        }
    }
    MPI_T_pvar_session_free(&session);
}

int main(int argc, char **argv)
{
    int provided;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    environment_print("UCX_TLS");
    environment_print("UCX_HA_RC_REQUIRE");
    environment_print("OMPI_MCA_pml");
    environment_print("OMPI_MCA_osc");
    environment_print("OMPI_MCA_opal_common_ucx_tls");
    environment_print("OMPI_MCA_opal_common_ucx_devices");
    pvars_print();
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
