/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_mpi.h"

#include "bench_series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE           4096
#define POLLS_PER_TICK 16 /* reading the clock costs more than a poll */
#define TAG_TOTALS     7

static const char *const ha_names[BENCH_HA_TOTALS] = {
    "failovers", "replayed", "retired", "false_alarms", "ep_errors", "outage_ns_total",
};

void bench_start(struct bench_mpi *bench, enum bench_program program, int argc, char **argv)
{
    char message[256] = "";
    int  size         = 0;
    bool good;

    bench->program = program == BENCH_BW ? "ha_bw" : "ha_lat";
    (void)MPI_Init(&argc, &argv);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bench_check(bench, MPI_Comm_rank(MPI_COMM_WORLD, &bench->rank), "MPI_Comm_rank");
    bench_check(bench, MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");

    good = bench_options_parse(program, argc, argv, &bench->options, message, sizeof(message));
    if (good && bench->options.help) {
        if (bench->rank == 0) {
            bench_options_usage(program, stdout);
        }
        (void)MPI_Finalize();
        exit(0);
    }
    if (good && size != 2) {
        good = false;
        (void)snprintf(message, sizeof(message), "started with %d process%s, needs 2: mpirun -np 2 %s", size,
                       size == 1 ? "" : "es", bench->program);
    }
    if (!good) {
        if (bench->rank == 0) {
            (void)fprintf(stderr, "%s: %s\n", bench->program, message);
        }
        (void)MPI_Finalize();
        exit(2);
    }
}

void bench_fail(const struct bench_mpi *bench, const char *format, ...)
{
    char    text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s: rank %d: %s\n", bench->program, bench->rank, text);
    (void)fflush(stderr);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void bench_check(const struct bench_mpi *bench, int rc, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length                     = 0;

    if (rc != MPI_SUCCESS) {
        (void)MPI_Error_string(rc, text, &length);
        bench_fail(bench, "%s: %s", call, text);
    }
}

void bench_wait(const struct bench_mpi *bench, MPI_Request *request, MPI_Status *status, bench_tick_fn tick,
                void *context)
{
    int64_t  limit_ns = (int64_t)(bench->options.stall * 1e9);
    int64_t  start_ns = 0, now_ns;
    int      done     = 0;
    unsigned polls    = 0;

    status = status ? status : MPI_STATUS_IGNORE;
    if (!tick && limit_ns == 0) {
        bench_check(bench, MPI_Wait(request, status), "MPI_Wait");
        return;
    }
    for (;;) {
        bench_check(bench, MPI_Test(request, &done, status), "MPI_Test");
        if (done) {
            return;
        }
        if (++polls % POLLS_PER_TICK != 0) {
            continue;
        }
        now_ns   = bench_clock_ns();
        start_ns = start_ns ? start_ns : now_ns;
        if (tick) {
            tick(context, now_ns);
        }
        if (limit_ns && now_ns - start_ns > limit_ns) {
            bench_fail(bench, "no progress for %g s (--stall)", bench->options.stall);
        }
    }
}

void *bench_alloc(const struct bench_mpi *bench, size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, PAGE, size) != 0) {
        bench_fail(bench, "cannot allocate %zu bytes; use a smaller --window or --size", size);
    }
    memset(memory, 0, size);
    return memory;
}

static bool pvar_read(MPI_T_pvar_session session, const char *name, uint64_t *value)
{
    MPI_T_pvar_handle  handle;
    unsigned long long number = 0;
    int                index, count = 0;
    bool               good;

    /* The class is not part of our contract with the component: try both. */
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_SIZE, &index) != MPI_SUCCESS &&
        MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, &index) != MPI_SUCCESS) {
        return false;
    }
    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS) {
        return false;
    }
    good = count == 1 && MPI_T_pvar_read(session, handle, &number) == MPI_SUCCESS;
    (void)MPI_T_pvar_handle_free(session, &handle);
    *value = number;
    return good;
}

bool bench_ha_totals(uint64_t totals[BENCH_HA_TOTALS])
{
    MPI_T_pvar_session session;
    int                provided, i;
    bool               present = true;

    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) {
        return false;
    }
    if (MPI_T_pvar_session_create(&session) != MPI_SUCCESS) {
        (void)MPI_T_finalize();
        return false;
    }
    for (i = 0; i < BENCH_HA_TOTALS && present; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "hook_ha_%s", ha_names[i]);
        present = pvar_read(session, name, &totals[i]);
    }
    (void)MPI_T_pvar_session_free(&session);
    (void)MPI_T_finalize();
    return present;
}

void bench_ha_gather(const struct bench_mpi *bench, uint64_t *totals, bool *present)
{
    uint64_t mine[BENCH_HA_TOTALS + 1] = {0};

    mine[BENCH_HA_TOTALS] = bench_ha_totals(mine);
    if (bench->rank == 1) {
        bench_check(bench, MPI_Send(mine, BENCH_HA_TOTALS + 1, MPI_UINT64_T, 0, TAG_TOTALS, MPI_COMM_WORLD),
                    "MPI_Send");
        return;
    }
    memcpy(totals, mine, BENCH_HA_TOTALS * sizeof(*totals));
    present[0] = mine[BENCH_HA_TOTALS];
    bench_check(bench,
                MPI_Recv(mine, BENCH_HA_TOTALS + 1, MPI_UINT64_T, 1, TAG_TOTALS, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                "MPI_Recv");
    memcpy(totals + BENCH_HA_TOTALS, mine, BENCH_HA_TOTALS * sizeof(*totals));
    present[1] = mine[BENCH_HA_TOTALS];
}

void bench_ha_json(FILE *out, const uint64_t *totals, const bool *present)
{
    int rank, i;

    if (!present[0] || !present[1]) {
        (void)fprintf(out, "\"ha\":null");
        return;
    }
    (void)fprintf(out, "\"ha\":[");
    for (rank = 0; rank < 2; rank++) {
        for (i = 0; i < BENCH_HA_TOTALS; i++) {
            (void)fprintf(out, "%s\"%s\":%" PRIu64,
                          i      ? ","
                          : rank ? ",{"
                                 : "{",
                          ha_names[i], totals[rank * BENCH_HA_TOTALS + i]);
        }
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "]");
}

void bench_json_emit(const struct bench_mpi *bench, const char *line)
{
    const char *path = bench->options.json;
    FILE       *file;

    (void)printf("%s\n", line);
    (void)fflush(stdout);
    if (!path) {
        return;
    }
    file = fopen(path, "w");
    if (!file || fprintf(file, "%s\n", line) < 0 || fclose(file) != 0) {
        bench_fail(bench, "--json %s: %s", path, strerror(errno));
    }
}
