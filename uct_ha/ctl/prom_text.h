/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PROM_TEXT_H_
#define UCT_HA_PROM_TEXT_H_

#include "ctl/ctl.h"

#include <stdio.h>

/* The text of the statistics file, of these interfaces (chained by prom_next) and of the process. Takes the control
 * lock of each in turn. */
void uct_ha_prom_text(FILE *file, struct uct_ha_ctl *ctls, uint64_t now);

#endif
