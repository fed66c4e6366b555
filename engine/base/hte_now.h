/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NOW_H_
#define HTE_NOW_H_

#include <stdint.h>

#define HTE_NS_PER_MS 1000000ull

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t hte_now(void);

#endif
