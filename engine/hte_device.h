/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DEVICE_H_
#define HTE_DEVICE_H_

/*
 * Devices as option "devices" names them. UCX only warns of a name that it does not know, and then does without: an engine
 * would use shared memory, or nothing, where its user expects a network.
 */

/* Checks "a:1" or "a:1+b:1": DEVICE_NOT_FOUND names the first that this machine has not, and what it has. */
int hte_device_check(const char *names);

#endif
