/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_JSON_H_
#define HA_INFO_JSON_H_

#include <stdio.h>

#include "ha_info_check.h"
#include "ha_info_facts.h"

void info_print_json(const struct info *info, const struct info_finding *findings, int num, FILE *out);
void info_print_matrix(const struct info *info, FILE *out);

#endif
