/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_NOW_H_
#define UCT_HA_NOW_H_

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. Never on the path of an operation. */
uint64_t uct_ha_now(void);

#endif
