/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo, dl_iterate_phdr */
#endif
#include "front/ucx.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LIBUCT "libuct.so.0"
#define LIBUCP "libucp.so.0"

int front_function_find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);

    memcpy(function, &address, sizeof(address));
    return address != NULL;
}

static const char *path_of(void *handle)
{
    struct link_map *map = NULL;

    return ((dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) && (map != NULL)) ? map->l_name : "";
}

/* A program that uses UCT alone has no libucp, and only that tells the version: the one beside
 * its libuct then. By name, as the dynamic loader will look for what the glue needs. */
static void *libucp_open(void *libuct)
{
    void       *libucp = dlopen(LIBUCP, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    const char *path   = path_of(libuct);
    const char *slash  = strrchr(path, '/');
    char        beside[PATH_MAX];

    if ((libucp != NULL) || (slash == NULL) ||
        (snprintf(beside, sizeof(beside), "%.*s/" LIBUCP, (int)(slash - path), path) >= (int)sizeof(beside))) {
        return libucp;
    }
    return dlopen(beside, RTLD_LAZY | RTLD_LOCAL);
}

int front_ucx_find(struct front_ucx *ucx)
{
    void (*get_version)(unsigned *major, unsigned *minor, unsigned *release);
    const char *(*get_version_string)(void);
    void    *libuct = dlopen(LIBUCT, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    unsigned release;

    memset(ucx, 0, sizeof(*ucx));
    if (libuct == NULL) {
        return 0;
    }
    ucx->handle = libucp_open(libuct);
    if ((ucx->handle == NULL) || !front_function_find(ucx->handle, "ucp_get_version", &get_version) ||
        !front_function_find(ucx->handle, "ucp_get_version_string", &get_version_string)) {
        ucx->path = path_of(libuct);
        (void)dlclose(libuct);
        return -1;
    }
    (void)dlclose(libuct);
    get_version(&ucx->major, &ucx->minor, &release);
    ucx->version = get_version_string();
    ucx->path    = path_of(ucx->handle);
    return 1;
}

void front_ucx_close(struct front_ucx *ucx)
{
    if (ucx->handle != NULL) {
        (void)dlclose(ucx->handle);
    }
    ucx->handle = NULL;
}

const char *front_ucx_missing(const struct front_ucx *ucx, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (dlsym(ucx->handle, *names) == NULL) {
            return *names;
        }
    }
    return NULL;
}

struct copies {
    const char **paths;
    unsigned     count;
};

static int copy_count(struct dl_phdr_info *object, size_t size, void *arg)
{
    struct copies *copies = arg;
    const char    *slash  = strrchr(object->dlpi_name, '/');
    const char    *name   = (slash != NULL) ? slash + 1 : object->dlpi_name;

    (void)size;
    if (strncmp(name, LIBUCT, strlen(LIBUCT)) == 0) {
        if (copies->count < FRONT_UCX_COPIES) {
            copies->paths[copies->count] = object->dlpi_name;
        }
        copies->count++;
    }
    return 0;
}

unsigned front_ucx_copies(const char **paths)
{
    struct copies copies = {paths, 0};

    (void)dl_iterate_phdr(copy_count, &copies);
    return copies.count;
}
