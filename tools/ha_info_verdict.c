/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_info_verdict.h"

#include <string.h>

#define NAGIOS_OK       0
#define NAGIOS_WARNING  1
#define NAGIOS_CRITICAL 2

/* Every id that info_check() gives; scripts/make_pages compares. */
static const char *const known[] = {
    "no-rail",       "single-rail", "backup-off",     "shared-fate", "no-standby",    "cannot-open",
    "port-down",     "no-gid",      "gid-type",       "mtu",         "same-subnet",   "no-zone",
    "apm-capable",   "apm-armed",   "rto-rule",       "proof-count", "proof-refused", "retry-forever",
    "heartbeat-off", "memlock",     "limited-member", "not-a-rail",
};

int info_verdict_fail_on(struct info_verdict *verdict, const char *word, FILE *err)
{
    if (strcmp(word, "problem") == 0) {
        verdict->fail_on = INFO_PROBLEM;
    } else if (strcmp(word, "warning") == 0) {
        verdict->fail_on = INFO_WARNING;
    } else {
        fprintf(err, "ha_info: --fail-on=%s: use problem or warning\n", word);
        return -1;
    }
    return 0;
}

static int is_known(const char *id)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], id) == 0) {
            return 1;
        }
    }
    return 0;
}

int info_verdict_ignore(struct info_verdict *verdict, char *ids, FILE *err)
{
    for (char *id = strtok(ids, ","); id != NULL; id = strtok(NULL, ",")) {
        if (!is_known(id)) {
            fprintf(err, "ha_info: --ignore=%s: no such finding; there are", id);
            for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                fprintf(err, " %s", known[i]);
            }
            fputc('\n', err);
            return -1;
        }
        if (verdict->num_ignored < (int)(sizeof(verdict->ignored) / sizeof(verdict->ignored[0]))) {
            verdict->ignored[verdict->num_ignored++] = id;
        }
    }
    return 0;
}

static int is_ignored(const struct info_verdict *verdict, const char *id)
{
    for (int i = 0; i < verdict->num_ignored; i++) {
        if (strcmp(verdict->ignored[i], id) == 0) {
            return 1;
        }
    }
    return 0;
}

int info_verdict_filter(const struct info_verdict *verdict, struct info_finding *findings, int num)
{
    int left = 0;

    for (int i = 0; i < num; i++) {
        if (!is_ignored(verdict, findings[i].id)) {
            findings[left++] = findings[i];
        }
    }
    return left;
}

int info_verdict_status(const struct info_verdict *verdict, const struct info_finding *findings, int num, FILE *out)
{
    static const char *const word[]   = {"OK", "WARNING", "CRITICAL"};
    int                      problems = 0, warnings = 0, status;

    for (int i = 0; i < num; i++) {
        problems += findings[i].level == INFO_PROBLEM;
        warnings += findings[i].level == INFO_WARNING;
    }
    if (!verdict->nagios) {
        return problems > 0 || (warnings > 0 && verdict->fail_on == INFO_WARNING) ? INFO_FINDINGS : INFO_HEALTHY;
    }
    status = problems > 0                                       ? NAGIOS_CRITICAL
             : warnings > 0 && verdict->fail_on == INFO_WARNING ? NAGIOS_WARNING
                                                                : NAGIOS_OK;
    fprintf(out, "HA_RC %s - %d problems, %d warnings", word[status], problems, warnings);
    for (int i = 0; i < num; i++) {
        if (findings[i].level > INFO_NOTE) {
            fprintf(out, ", %s %s", findings[i].subject, findings[i].id);
        }
    }
    fputc('\n', out);
    return status;
}
