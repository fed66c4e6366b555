/* SPDX-License-Identifier: BSD-3-Clause */
#include "contract.h"
#include "contract_cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings settings = {.max_bytes = 1 << 20};

static const struct {
    const char *name;
    void (*check)(void);
} groups[] = {
    {"attributes", check_attributes}, {"memory", check_memory}, {"messages", check_messages}, {"rma", check_rma},
    {"atomics", check_atomics},       {"flow", check_flow},     {"pending", check_pending},   {"events", check_events},
    {"errors", check_errors},
};

static const char usage[] =
    "usage: uct_contract --transport NAME [OPTION...]\n"
    "  --device DEV --peer-device DEV   instead of the first one that there is\n"
    "  --set NAME=VALUE                 an option of the transport, as UCX_..._NAME\n"
    "  --max-bytes N                    the longest operation that is tried (1048576)\n"
    "  --only GROUPS                    of attributes memory messages rma atomics flow pending events errors\n"
    "  --excuse TEXT                    failures of checks with this in their name are known, and only counted\n"
    "  --cut COMMAND --repair COMMAND   cut a rail in the middle of bursts, %d is the rail, 0 and 1 in turn;\n"
    "                                   for ha_rc, with libuct_ha.so.0 in LD_PRELOAD\n"
    "  --plant FAULT                    be wrong once, to see that it is noticed: byte lost twice put atomic cut\n"
    "  --table                          what was tried, as in docs/contract.md\n"
    "  --calm                           cut nothing\n"
    "  --verbose\n"
    "Exit status: 0, 1 when something is not as it should be, 77 when there is no such transport.\n";

int planted(const char *fault)
{
    return settings.plant != NULL && strcmp(settings.plant, fault) == 0;
}

static void fail_usage(void)
{
    fputs(usage, stderr);
    exit(2);
}

static void take(const char *option, const char *value)
{
    if (strcmp(option, "--transport") == 0) {
        settings.transport = value;
    } else if (strcmp(option, "--device") == 0) {
        settings.device[0] = value;
        settings.device[1] = settings.device[1] == NULL ? value : settings.device[1];
    } else if (strcmp(option, "--peer-device") == 0) {
        settings.device[1] = value;
    } else if (strcmp(option, "--set") == 0 && settings.settings < SETTINGS_MAX) {
        settings.setting[settings.settings++] = value;
    } else if (strcmp(option, "--excuse") == 0 && settings.excuses < SETTINGS_MAX) {
        settings.excuse[settings.excuses++] = value;
    } else if (strcmp(option, "--max-bytes") == 0) {
        settings.max_bytes = strtoul(value, NULL, 0);
    } else if (strcmp(option, "--only") == 0) {
        settings.only = value;
    } else if (strcmp(option, "--cut") == 0) {
        settings.cut = value;
    } else if (strcmp(option, "--repair") == 0) {
        settings.repair = value;
    } else if (strcmp(option, "--plant") == 0) {
        settings.plant = value;
    } else {
        fail_usage();
    }
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--table") == 0) {
            settings.table = 1;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            settings.verbose = 1;
        } else if (strcmp(argv[i], "--calm") == 0) {
            settings.calm = 1;
        } else if (i + 1 < argc) {
            take(argv[i], argv[i + 1]);
            i++;
        } else {
            fail_usage();
        }
    }
}

/* UCX reads its environment before main(). Its hooks for memory events disturb sanitizers, and errors
 * are provoked here. */
static void prepare(char **argv)
{
    if (getenv("UCX_MEM_EVENTS") == NULL) {
        setenv("UCX_MEM_EVENTS", "n", 1);
        setenv("UCX_LOG_LEVEL", "fatal", 0);
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    int left;

    prepare(argv);
    hardware_begin();
    read_options(argc, argv);
    if (settings.transport == NULL) {
        fail_usage();
    }
    world_open();
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (settings.only == NULL || strstr(settings.only, groups[i].name) != NULL) {
            groups[i].check();
        }
    }
    world_close();
    left = hardware_end();
    (void)expect(left == 0, "%d objects were left behind", left);
    if (settings.table) {
        report_table();
    }
    report_summary();
    return report_failures() != 0;
}
