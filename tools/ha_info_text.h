/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_TEXT_H_
#define HA_INFO_TEXT_H_

#include <stdio.h>

#include "ha_info_check.h"
#include "ha_info_facts.h"

void info_print_rails(const struct info *info, FILE *out);
void info_print_pairs(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices, int num, FILE *out);
void info_print_findings(const struct info_finding *findings, int num, FILE *out);

/* "10.77.1.1", "fe80::1"; buf of INET6_ADDRSTRLEN. Returns buf. */
const char *info_gid_text(const uint8_t gid[16], char *buf);

#endif
