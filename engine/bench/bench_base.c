/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "engine/include/hte.h"

void die(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fputs("hte_bench: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

void must_do(int error, const char *what)
{
    if (error != HTE_OK) {
        die("%s: %s (%s)", what, hte_error_string(error), hte_error_detail());
    }
}

double now_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6 + (double)usage.ru_stime.tv_sec +
           (double)usage.ru_stime.tv_usec * 1e-6;
}

/* Results that nobody can read are no success. */
void flush_output(void)
{
    if (fflush(stdout) != 0) {
        die("cannot write to standard output: %s", strerror(errno));
    }
    if (ferror(stdout)) { /* of a line that did not fit the buffer */
        die("cannot write to standard output");
    }
}
