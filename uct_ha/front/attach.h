/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_ATTACH_H_
#define FRONT_ATTACH_H_

#include "uct_ha.h"

/*
 * Loading the glue, libuct_ha_1_<minor>.so, that was built for the UCX of this
 * process. Any thread may try, at any time, also while the dynamic loader is at
 * work: there is no lock here. The loader's own lets one thread in at a time and
 * loads a library once, so whoever comes second gets what the first one loaded,
 * and nobody waits for the loader while he holds something that another one inside
 * of it wants.
 */

/* What the glue exports for us. */
struct front_glue {
    int (*stats_get)(struct uct_ha_stats *stats, size_t size);
    int (*rail_stats_get)(unsigned index, struct uct_ha_rail_stats *stats, size_t size);
    const char *(*refusal)(void);
};

/* Where this library is, so that the glue is looked for beside it. Once, before all else. */
void front_attach_from(const void *address);

/* Load the glue if there is a UCX now and no glue yet. If UCX is there and the glue cannot be had,
 * the first call with `is_needed` says why, in one line. */
void front_attach(int is_needed);

/* NULL while there is none. */
const struct front_glue *front_attached(void);

/* Why there is none although there is a UCX; NULL: nothing is wrong. */
const char *front_refusal(void);

#endif
