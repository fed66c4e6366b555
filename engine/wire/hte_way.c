/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What their names begin with. */
static const char *const with_rma[] = {"rc", "dc", "ha_rc", "gga", "ugni"};

static bool is_of_hardware(const char *transport)
{
    size_t i;

    for (i = 0; i < sizeof(with_rma) / sizeof(with_rma[0]); ++i) {
        if (strncmp(transport, with_rma[i], strlen(with_rma[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* "tcp/lo.0 md[1]" */
static void add_name(const char *from, char *names, size_t size)
{
    size_t length = strcspn(from, " "), used = strlen(names);
    char   name[64];

    snprintf(name, sizeof(name), "%.*s", (int)length, from);
    if (strstr(names, name) == NULL) {
        snprintf(names + used, size - used, "%s%s", used == 0 ? "" : ",", name);
    }
}

/* "#   lane[0]:  1:tcp/lo.0 md[1]   -> md[1]/tcp/sysdev[255] am am_bw#0 wireup" */
static bool has_rma(const char *text, char *names, size_t size)
{
    const char *lane;
    bool        has = false;
    int         at;

    for (lane = strstr(text, "lane["); lane != NULL; lane = strstr(lane + 1, "lane[")) {
        at = 0;
        if (sscanf(lane, "lane[%*d]: %*d:%n", &at) == 0 && at > 0 && is_of_hardware(lane + at)) {
            has = true;
        }
        if (at > 0) {
            add_name(lane + at, names, size);
        }
    }
    return has;
}

bool hte_way_has_rma(ucp_ep_h ep, char *names, size_t size)
{
    char  *text   = NULL;
    size_t length = 0;
    FILE  *stream = open_memstream(&text, &length);
    bool   has    = false;

    names[0] = '\0';
    if (stream == NULL) {
        return false;
    }
    ucp_ep_print_info(ep, stream);
    if (fclose(stream) == 0) {
        has = has_rma(text, names, size);
    }
    free(text);
    return has;
}
