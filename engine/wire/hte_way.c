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

/* "#   lane[0]:  1:tcp/lo.0 md[1]   -> md[1]/tcp/sysdev[255] am am_bw#0 wireup" */
static bool has_rma(const char *text)
{
    const char *lane;
    int         at;

    for (lane = strstr(text, "lane["); lane != NULL; lane = strstr(lane + 1, "lane[")) {
        at = 0;
        if (sscanf(lane, "lane[%*d]: %*d:%n", &at) == 0 && at > 0 && is_of_hardware(lane + at)) {
            return true;
        }
    }
    return false;
}

bool hte_way_has_rma(ucp_ep_h ep)
{
    char  *text   = NULL;
    size_t length = 0;
    FILE  *stream = open_memstream(&text, &length);
    bool   has    = false;

    if (stream == NULL) {
        return false;
    }
    ucp_ep_print_info(ep, stream);
    if (fclose(stream) == 0) {
        has = has_rma(text);
    }
    free(text);
    return has;
}
