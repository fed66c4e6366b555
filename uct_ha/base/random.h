/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RANDOM_H_
#define UCT_HA_RANDOM_H_

#include <stdint.h>

/* 64 bits that nobody can guess and no other process has: names of instances, first
 * packet numbers. Costs a system call. */
uint64_t uct_ha_random(void);

#endif
