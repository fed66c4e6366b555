/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "front/attach.h"
#include "front/say.h"
#include "front/ucx.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct minor {
    unsigned           major;
    unsigned           minor;
    const char        *file;
    const char *const *symbols;
};

/* The UCX versions that there can be glue for: minors[] and MINORS, made from abi/ucx.symbols. */
#include "uct_ha/front/minors.h"

static char                     folder[PATH_MAX]; /* ours, with the slash; empty: unknown */
static struct front_glue        glue;             /* whoever fills it writes the same */
static const struct front_glue *attached;         /* &glue, once it is filled */

void front_attach_from(const void *address)
{
    Dl_info info;
    char   *slash;

    /* Where the file really is: a link to it may stand in UCX's folder of modules. And now: the
     * path may be relative, and programs change their folder. */
    if ((dladdr(address, &info) == 0) || (realpath(info.dli_fname, folder) == NULL)) {
        folder[0] = '\0';
        return;
    }
    slash    = strrchr(folder, '/');
    slash[1] = '\0';
}

const struct front_glue *front_attached(void)
{
    return __atomic_load_n(&attached, __ATOMIC_ACQUIRE);
}

const char *front_refusal(void)
{
    const struct front_glue *front_glue = front_attached();

    return (front_glue != NULL) ? front_glue->refusal() : front_said();
}

static const struct minor *minor_find(const struct front_ucx *ucx)
{
    for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
        if ((minors[i].major == ucx->major) && (minors[i].minor == ucx->minor)) {
            return &minors[i];
        }
    }
    return NULL;
}

/* Another copy of this library may have loaded the glue already: one is enough, whoever's it is. */
static void *glue_open(const struct minor *minor)
{
    char  path[PATH_MAX + 64];
    void *handle = dlopen(minor->file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

    if (handle == NULL) {
        (void)snprintf(path, sizeof(path), "%s%s", folder, minor->file);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    return handle;
}

static void glue_load(const struct minor *minor, int is_needed)
{
    void             *handle = glue_open(minor);
    struct front_glue found;

    if (handle == NULL) {
        front_say(is_needed,
                  "that library belongs beside libuct_ha.so.0: build ucx-ha with that UCX (configure "
                  "--with-ucx=PREFIX), or install it again, completely",
                  "%s", dlerror());
        return;
    }
    if (!front_function_find(handle, "uct_ha_stats_get", &found.stats_get) ||
        !front_function_find(handle, "uct_ha_rail_stats_get", &found.rail_stats_get) ||
        !front_function_find(handle, "uct_ha_refusal", &found.refusal)) {
        front_say(is_needed, "install ucx-ha again, completely", "%s%s is of another version of ucx-ha", folder,
                  minor->file);
        return;
    }
    __atomic_store_n(&glue.stats_get, found.stats_get, __ATOMIC_RELAXED);
    __atomic_store_n(&glue.rail_stats_get, found.rail_stats_get, __ATOMIC_RELAXED);
    __atomic_store_n(&glue.refusal, found.refusal, __ATOMIC_RELAXED);
    __atomic_store_n(&attached, &glue, __ATOMIC_RELEASE);
}

static void attach_to(const struct front_ucx *ucx, int is_needed)
{
    const struct minor *minor = minor_find(ucx);
    const char         *missing, *paths[FRONT_UCX_COPIES];

    if (front_ucx_copies(paths) > 1) {
        /* the glue would register with one, and the program might use the other */
        front_say(is_needed, "let the program find one only (LD_LIBRARY_PATH; ldd shows who loads which)",
                  "there are two copies of UCX in this process, %s and %s", paths[0], paths[1]);
    } else if (minor == NULL) {
        front_say(is_needed, "install a ucx-ha for that UCX, or let the program find " MINORS " (LD_LIBRARY_PATH)",
                  "the program uses UCX %s (%s), and this ucx-ha works with " MINORS, ucx->version, ucx->path);
    } else if ((missing = front_ucx_missing(ucx, minor->symbols)) != NULL) {
        front_say(is_needed, "use that UCX as distributions build it",
                  "UCX %s (%s) lacks %s, which releases of this version have", ucx->version, ucx->path, missing);
    } else {
        glue_load(minor, is_needed);
    }
}

void front_attach(int is_needed)
{
    struct front_ucx ucx;
    int              found;

    if (front_attached() != NULL) {
        return;
    }
    found = front_ucx_find(&ucx);
    if (found > 0) {
        attach_to(&ucx, is_needed);
    } else if (found < 0) {
        front_say(is_needed, "install UCX completely, with libucp", "%s has no libucp.so.0 that tells its version",
                  ucx.path);
    }
    front_ucx_close(&ucx);
    (void)dlerror(); /* none of ours is left for the program to find */
}
