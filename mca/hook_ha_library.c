/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libuct_ha.so.0 looks for the UCX of the process and registers the transport with
 * it from its constructor, so UCX has to be there first: the one that Open MPI is
 * going to use. That the library loaded proves little: it refuses a UCX that it
 * does not know, and without an RDMA device it has nothing to offer. So UCX itself
 * is asked, through its public API, whether it now has a component "ha" with a
 * device.
 */
#include "hook_ha.h"

#include "opal/mca/installdirs/installdirs.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uct/api/uct.h>

#define COMPONENT "ha"
#define SONAME    "libuct_ha.so.0"
#define UCX       "libucp.so.0"
#define PML_UCX   "mca_pml_ucx.so"
#ifdef HA_LIBDIR
#define INSTALLED HA_LIBDIR "/" SONAME
#endif

typedef int (*stats_get_fn)(struct uct_ha_stats *stats, size_t size);
typedef int (*rail_stats_get_fn)(unsigned index, struct uct_ha_rail_stats *stats, size_t size);

/* UCX's public calls. Not linked to, so that this component loads on hosts without UCX, too. */
struct uct_api {
    ucs_status_t (*query_components)(uct_component_h **components, unsigned *count);
    void (*release_component_list)(uct_component_h *components);
    ucs_status_t (*component_query)(uct_component_h component, uct_component_attr_t *attr);
};

static void             *ucx;
static void             *library;
static stats_get_fn      stats_get;
static rail_stats_get_fn rail_stats_get;
static char              library_path[4096];
static char              reason_text[sizeof(library_path) + 2048];

static const char *library_name(void)
{
    if (mca_hook_ha_params.library[0] != '\0') {
        return mca_hook_ha_params.library;
    }
#ifdef INSTALLED
    if (access(INSTALLED, R_OK) == 0) {
        return INSTALLED;
    }
#endif
    return SONAME;
}

/* UCX as Open MPI will load it, by the search path of its own component; or it is here already, as
 * when that component is part of libmpi. */
static void *ucx_open(void)
{
    char  pml[4096];
    void *handle = dlopen(UCX, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

    if (!handle) {
        (void)snprintf(pml, sizeof(pml), "%s/%s", opal_install_dirs.opallibdir, PML_UCX);
        (void)dlopen(pml, RTLD_LAZY | RTLD_LOCAL);
        handle = dlopen(UCX, RTLD_LAZY | RTLD_LOCAL);
    }
    return handle;
}

/* In the library first: preloaded, or a stand-in, it may have its own. POSIX guarantees that an object
 * pointer from dlsym() holds a function; ISO C knows no such cast, hence the copy. */
static bool symbol_find(const char *name, void *function, size_t size)
{
    void *address = dlsym(library, name);

    if (!address && ucx) {
        address = dlsym(ucx, name);
    }
    memcpy(function, &address, size);
    return address != NULL;
}

static bool uct_api_find(struct uct_api *api)
{
    return symbol_find("uct_query_components", &api->query_components, sizeof(api->query_components)) &&
           symbol_find("uct_release_component_list", &api->release_component_list,
                       sizeof(api->release_component_list)) &&
           symbol_find("uct_component_query", &api->component_query, sizeof(api->component_query));
}

/* Number of devices of the component "ha"; -1 when UCX has no such component. */
static int device_count(const struct uct_api *api)
{
    uct_component_attr_t attr;
    uct_component_h     *components;
    unsigned             i, count;
    int                  devices = -1;

    if (api->query_components(&components, &count) != UCS_OK) {
        return -1;
    }
    for (i = 0; i < count && devices < 0; i++) {
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        if (api->component_query(components[i], &attr) != UCS_OK || strcmp(attr.name, COMPONENT) != 0) {
            continue;
        }
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        devices         = api->component_query(components[i], &attr) == UCS_OK ? (int)attr.md_resource_count : 0;
    }
    api->release_component_list(components);
    return devices;
}

static void path_record(const char *name)
{
    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] != '\0') {
        name = map->l_name;
    }
    (void)snprintf(library_path, sizeof(library_path), "%s", name);
}

static bool fail(const char **reason, const char *name, const char *text)
{
    (void)snprintf(reason_text, sizeof(reason_text), "%s: %s", name, text);
    *reason = reason_text;
    return false;
}

static bool library_open(const char **reason)
{
    const char *name = library_name(), *error;

    ucx = ucx_open();
    if (!ucx) {
        error = dlerror();
        return fail(reason, error ? error : UCX, "Open MPI's pml/ucx and its UCX are needed");
    }
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        error = dlerror();
        return fail(reason, error ? error : name,
                    "install ucx-ha on this host, or name the file: --mca hook_ha_library PATH");
    }
    path_record(name);
    return true;
}

bool mca_hook_ha_library_load(const char **reason, bool *is_told)
{
    const char *(*refusal)(void);
    struct uct_api api;
    int            devices;

    *is_told = false;
    if (!library_open(reason)) {
        return false;
    }
    if (!uct_api_find(&api) || !symbol_find("uct_ha_stats_get", &stats_get, sizeof(stats_get))) {
        return fail(reason, library_path, "not a UCX transport of ucx-ha");
    }
    (void)symbol_find("uct_ha_rail_stats_get", &rail_stats_get, sizeof(rail_stats_get));
    devices = device_count(&api);
    if (devices > 0) {
        return true;
    }
    if (devices == 0) {
        return fail(reason, library_path, "no usable RDMA device on this host: look at ibv_devices, ha_info --check");
    }
    if (symbol_find("uct_ha_refusal", &refusal, sizeof(refusal)) && refusal()) {
        *is_told = true;
        return fail(reason, library_path, refusal());
    }
    return fail(reason, library_path, "did not register with UCX; install the same version of all of ucx-ha");
}

bool mca_hook_ha_library_stats(struct uct_ha_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    return stats_get && stats_get(stats, sizeof(*stats)) == 0;
}

int mca_hook_ha_library_rail(unsigned index, struct uct_ha_rail_stats *rail)
{
    return rail_stats_get ? rail_stats_get(index, rail, sizeof(*rail)) : -EINVAL;
}

const char *mca_hook_ha_library_path(void)
{
    return library_path[0] != '\0' ? library_path : NULL;
}
