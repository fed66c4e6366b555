/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DEVICE_H_
#define HTE_DEVICE_H_

#include <stdbool.h>

#include "core/hte_pick.h"
#include "hte_settings.h"

/*
 * Devices as option "devices" names them. UCX only warns of a name that it does not know, and then does without: an
 * engine would use shared memory, or nothing, where its user expects a network.
 */

#define HTE_DEVICE_NAME_MAX 64

/* The choices, each a rail: "a,b+c" is "a" and "b+c". */
struct hte_devices {
    char     name[HTE_RAILS_MAX][HTE_DEVICE_NAME_MAX];
    unsigned count;
    bool     is_any; /* the option is empty: one choice, named "ucx", and UCX takes what it likes */
};

/* DEVICE_NOT_FOUND names the first that this machine has not, and what it has. */
int hte_devices_choose(const struct hte_settings *settings, struct hte_devices *devices);

#endif
