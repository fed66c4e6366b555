/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_IMPORT_H_
#define HA_INFO_IMPORT_H_

#include <stdio.h>

#include "ha_info_facts.h"

/* Does a matrix of near rails fit this host? Prints it, and what is wrong. Returns 0, 1
 * when something is, or -1 when it cannot be read, after telling stderr. */
int info_import_matrix(const struct info *info, const char *path, FILE *out);

#endif
