/* SPDX-License-Identifier: BSD-3-Clause */
#include "front/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static char        text[2048];
static int         is_begun;   /* somebody writes text */
static const char *said;       /* text, once it is written */
static int         is_printed; /* and shown */

/* What UCX itself would not show of a warning. */
static int is_silenced(void)
{
    const char *level = getenv("UCX_LOG_LEVEL");

    return (level != NULL) && ((strcasecmp(level, "fatal") == 0) || (strcasecmp(level, "error") == 0));
}

/* All processes that a launcher started on a host have the same to tell: the first one does. */
static int is_first_of_host(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    const char              *rank;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        rank = getenv(variables[i]);
        if (rank != NULL) {
            return strcmp(rank, "0") == 0;
        }
    }
    return 1;
}

static void print(void)
{
    char host[256] = "";

    if (is_silenced() || !is_first_of_host()) {
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    (void)fprintf(stderr, "[%s:%d] %s\n", host, (int)getpid(), text);
}

void front_say(int is_to_print, const char *way_out, const char *fact, ...)
{
    int     length;
    va_list args;

    if (!__atomic_exchange_n(&is_begun, 1, __ATOMIC_ACQ_REL)) {
        length = snprintf(text, sizeof(text), "ha_rc [HA-402]: no ha_rc for this program, it goes on without: ");
        va_start(args, fact);
        length += vsnprintf(text + length, sizeof(text) - (size_t)length, fact, args);
        va_end(args);
        if (length < (int)sizeof(text)) {
            (void)snprintf(text + length, sizeof(text) - (size_t)length, "; %s", way_out);
        }
        __atomic_store_n(&said, text, __ATOMIC_RELEASE);
    }
    /* who comes while another thread still writes leaves the printing to later calls */
    if (is_to_print && (front_said() != NULL) && !__atomic_exchange_n(&is_printed, 1, __ATOMIC_ACQ_REL)) {
        print();
    }
}

const char *front_said(void)
{
    return __atomic_load_n(&said, __ATOMIC_ACQUIRE);
}
