/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_GATHER_H_
#define HA_INFO_GATHER_H_

#include "ha_info_facts.h"

/* Fill *info from the devices and UCX_HA_RC_*. Returns 0, or a negative errno value
 * after telling stderr. No device at all is no error. */
int info_gather(struct info *info);

/* Derive budgets and windows of a rail from what was gathered. */
void info_derive(struct info *info, int rail);

#endif
