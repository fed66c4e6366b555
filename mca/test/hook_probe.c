/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One MPI process which prints what the component did, one "name=value" per
 * line: the environment it left behind and every hook_ha_* MPI_T variable.
 *
 *   hook_probe FOLDER    Messages go around the ring of ranks before that, each of them looked at, until FOLDER has a
 *                        file "stop". What is printed then goes to FOLDER/HOST:PID.values.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <unistd.h>

#define LONGEST (1 << 17)

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

/* One round; sizes from the smallest to beyond what is sent at once. Number of wrong bytes. */
static int exchange(int round, int rank, int size)
{
    static uint8_t out[LONGEST], in[LONGEST];
    int            length = 1 << round % 18, from = (rank + size - 1) % size, wrong = 0;

    memset(out, (round + rank) % 251, (size_t)length);
    memset(in, 255, (size_t)length);
    MPI_Sendrecv(out, length, MPI_BYTE, (rank + 1) % size, 1, in, length, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < length; i++) {
        wrong += in[i] != (round + from) % 251;
    }
    return wrong;
}

static void exchange_until_stopped(const char *folder)
{
    char path[4096], host[256] = "";
    int  rank, size, stop = 0, wrong = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    (void)snprintf(path, sizeof(path), "%s/stop", folder);
    for (int round = 0; !stop; round++) {
        wrong += exchange(round, rank, size);
        stop = access(path, F_OK) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (round == 100 && rank == 0) {
            fprintf(stderr, "begun\n");
        }
    }
    gethostname(host, sizeof(host) - 1);
    (void)snprintf(path, sizeof(path), "%s/%s:%d.values", folder, host, (int)getpid());
    if (!freopen(path, "w", stdout)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("rank=%d\nwrong=%d\n", rank, wrong);
}

int main(int argc, char **argv)
{
    int provided;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (argc > 1) {
        exchange_until_stopped(argv[1]);
    }
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
