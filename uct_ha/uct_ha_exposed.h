/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EXPOSED_H_
#define UCT_HA_EXPOSED_H_

/*
 * The memory of a domain that peers may do atomics on, by its remote key.
 * Atomics travel as messages and this process executes them, so what the card
 * checks for a PUT has to be checked here: a key or an address that is not
 * ours must never be touched.
 *
 * Threads: any; its own lock.
 */

#include <stddef.h>
#include <stdint.h>

struct uct_ha_exposed;

struct uct_ha_exposed *uct_ha_exposed_create(void); /* NULL: no memory */
void uct_ha_exposed_destroy(struct uct_ha_exposed *exposed);

/* 0 or -ENOMEM. A key is added once before it is removed. */
int  uct_ha_exposed_add(struct uct_ha_exposed *exposed, uint32_t key, const void *address,
                        size_t length);
void uct_ha_exposed_remove(struct uct_ha_exposed *exposed, uint32_t key);

/* 1 if `size` bytes at `address` lie within the memory of `key`. */
int uct_ha_exposed_covers(struct uct_ha_exposed *exposed, uint32_t key, uint64_t address,
                          size_t size);

#endif
