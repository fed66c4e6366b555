/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_now.h"

#include <time.h>

uint64_t hte_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}
