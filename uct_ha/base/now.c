/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/now.h"

#include <time.h>

uint64_t uct_ha_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}
