/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_VERDICT_H_
#define HA_INFO_VERDICT_H_

/* What the findings mean for whoever asked: which of them count, and the exit status. Pure but for stdio. */

#include "ha_info_check.h"

#include <stdio.h>

/* Exit statuses of ha_info itself. */
#define INFO_HEALTHY  0
#define INFO_FINDINGS 1
#define INFO_FAILED   2

struct info_verdict {
    enum info_level fail_on; /* what counts: INFO_WARNING or INFO_PROBLEM */
    int             nagios;  /* a line and statuses as Nagios' plugins have them */
    const char     *ignored[32];
    int             num_ignored;
};

/* --fail-on=..., --ignore=ID[,ID...]. 0, or -1 and a line on `err` that says what is possible. The text is cut up
 * and has to stay. */
int info_verdict_fail_on(struct info_verdict *verdict, const char *word, FILE *err);
int info_verdict_ignore(struct info_verdict *verdict, char *ids, FILE *err);

/* Drop what is to be ignored. Returns how many are left. */
int info_verdict_filter(const struct info_verdict *verdict, struct info_finding *findings, int num);

/* The exit status; for Nagios the line, too. */
int info_verdict_status(const struct info_verdict *verdict, const struct info_finding *findings, int num, FILE *out);

#endif
