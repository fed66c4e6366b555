/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FORK_H_
#define HTE_FORK_H_

#include <stdint.h>

/* Tells a process from the child that fork(2) made of it, without a call of the system: what was made in another
 * generation is another process's. */

/* Before the first look at the generation. 0, or an errno: the C library has no memory for it. Any number of times. */
int hte_fork_watch(void);

/* Another number in every child of fork(2) since hte_fork_watch(). (Not of vfork(2), nor of a bare clone(2), which tell
 * nobody.) */
uint64_t hte_fork_generation(void);

#endif
