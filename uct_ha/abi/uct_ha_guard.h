/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_GUARD_H_
#define UCT_HA_GUARD_H_

/*
 * Is the UCX of this process the one whose binary interface we were built for?
 * Asked once, before anything is registered with it.
 */

#include "uct_ha_abi.h"

/* What UCX looks like at run time. Gathered apart from judging it, so that a
 * test can make one up. */
struct uct_ha_guard_facts {
    unsigned               major; /* of the running libucp */
    unsigned               minor;
    const char            *version;        /* as it calls itself */
    int                    has_statistics; /* layouts grow with them */
    int                    async_mode_ok;  /* ucs_async_context as declared */
    const ucs_list_link_t *components;
};

enum uct_ha_guard_verdict {
    UCT_HA_GUARD_OK,
    UCT_HA_GUARD_DUPLICATE, /* another copy of us is registered already */
    UCT_HA_GUARD_VERSION,
    UCT_HA_GUARD_STATISTICS,
    UCT_HA_GUARD_ASYNC,
    UCT_HA_GUARD_LAYOUT
};

void uct_ha_guard_facts_get(struct uct_ha_guard_facts *facts);

/* Reads only what the declared layout promises to be there, most certain
 * first, and stops at the first contradiction. */
enum uct_ha_guard_verdict uct_ha_guard_judge(const struct uct_ha_guard_facts *facts, const char *own_name);

/* 1 = register. 0 = do not; said why in one line. */
int uct_ha_guard_pass(const char *own_name);

/* That line, for uct_ha_refusal(); NULL when nothing was refused. */
const char *uct_ha_guard_refusal(void);

#endif
