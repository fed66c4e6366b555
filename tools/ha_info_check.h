/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_CHECK_H_
#define HA_INFO_CHECK_H_

#include "ha_info_facts.h"

enum info_level { INFO_NOTE, INFO_WARNING, INFO_PROBLEM };

struct info_finding {
    enum info_level level;       /* notes do not make the host unhealthy */
    const char     *id;          /* for scripts: "shared-fate" */
    char            subject[40]; /* a rail, or "host" */
    char            text[240];   /* what is the matter */
    char            remedy[240]; /* what to do about it */
};

#define INFO_FINDINGS_MAX 256

/* Everything that is wrong with the host: pure. Returns how many (at most max). */
int info_check(const struct info *info, struct info_finding *findings, int max);

/* Whether any finding is more than a note. */
int info_is_unhealthy(const struct info_finding *findings, int num);

#endif
