/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EXPOSED_H_
#define UCT_HA_EXPOSED_H_

/*
 * The memory of this process that peers may do atomics on, by rail and remote
 * key. Atomics travel as messages and this process executes them, so what the
 * card checks for a PUT has to be checked here: a key or an address that is not
 * ours must never be touched.
 *
 * Threads: any; its own lock.
 */

#include <stddef.h>
#include <stdint.h>

/* 0 or -ENOMEM. A key is added once before it is removed. */
int  uct_ha_exposed_add(unsigned rail_no, uint32_t key, const void *address, size_t length);
void uct_ha_exposed_remove(unsigned rail_no, uint32_t key);

/* 1 if `size` bytes at `address` lie within the memory of `key`. */
int uct_ha_exposed_covers(unsigned rail_no, uint32_t key, uint64_t address, size_t size);

#endif
