/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr, RTLD_NEXT */
#endif

/*
 * libuct_ha.so.0: what users preload, open, or put where UCX looks for modules. It links nothing but
 * libc, so it can be in any process, with any UCX or none. The transport itself, the glue, is in a library
 * per UCX minor version, and is loaded only into a process that has that UCX.
 *
 * When? UCX may be there when this library is loaded: then at once. Or it comes later, with a library
 * that the program opens (Python opens libmpi, which opens libucp). Nobody tells us of that; but every
 * user of UCX, UCP included, asks for the list of components before anything else, by
 * uct_query_components(). We have a function of that name. A preloaded library comes first in the search
 * for symbols, also for libraries that were opened with RTLD_LOCAL, so it is ours that is called: the glue
 * is loaded, registers itself with UCX, and UCX's own function then lists it among the others.
 *
 * Not by an own dlopen(): the real one looks at who called it (RUNPATH, namespaces), and would see us.
 * Not by ucp_init_version(): UCT has users without UCP, and programs that look it up with dlsym() in
 * libucp would pass us by, while libucp's own call of uct_query_components() does not.
 *
 * Where there is no UCX at all our function says UNSUPPORTED; only a program that looks whether the symbol
 * exists, instead of calling it, could be misled.
 *
 * What this cannot see: UCX in a library opened with RTLD_DEEPBIND or in another namespace, UCX linked
 * statically, and UCX that comes after this library was opened with RTLD_LOCAL. Those run without ha_rc.
 */

#include "front/attach.h"
#include "front/ucx.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define QUERY    "uct_query_components"

/* UCX's ucs_status_t is an enumeration packed into one byte, in all versions. */
typedef signed char ucx_status_t;
#define UCX_ERR_UNSUPPORTED ((ucx_status_t)-22)

typedef ucx_status_t (*query_fn)(void **components_p, unsigned *num_components_p);

EXPORTED ucx_status_t uct_query_components(void **components_p, unsigned *num_components_p);

static __thread int is_forwarding;
static const char   own_address = 0;

/* Is our function the one that everybody in this process finds? Then whoever uses UCX comes by. */
static int is_interposed(void)
{
    void   *process = dlopen(NULL, RTLD_LAZY);
    void   *query   = (process != NULL) ? dlsym(process, QUERY) : NULL;
    Dl_info own, other;

    if (process != NULL) {
        (void)dlclose(process);
    }
    return (query != NULL) && (dladdr(&own_address, &own) != 0) && (dladdr(query, &other) != 0) &&
           (own.dli_fbase == other.dli_fbase);
}

/* The first of the name that `path` itself, if it is loaded, and what it links to have. */
static query_fn query_of(const char *path)
{
    void    *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    query_fn query  = NULL;

    if (handle != NULL) {
        (void)front_function_find(handle, QUERY, &query);
        (void)dlclose(handle);
    }
    return query;
}

/* The function that the caller would have called without us: the next one that the whole process sees,
 * else one that only the caller sees. Where that leads back to us, as two copies of this library can
 * do to each other, the one that there is. */
static query_fn query_next(const void *caller)
{
    const char *paths[FRONT_UCX_COPIES];
    query_fn    query = NULL;
    Dl_info     info;

    if (!is_forwarding && is_interposed()) {
        (void)front_function_find(RTLD_NEXT, QUERY, &query);
    }
    if ((query == NULL) && !is_forwarding && (front_ucx_copies(paths) > 1) && (dladdr(caller, &info) != 0)) {
        query = query_of(info.dli_fname);
    }
    return (query != NULL) ? query : query_of("libuct.so.0");
}

ucx_status_t uct_query_components(void **components_p, unsigned *num_components_p)
{
    const void  *caller = __builtin_return_address(0);
    int          was    = is_forwarding;
    ucx_status_t status = UCX_ERR_UNSUPPORTED;
    query_fn     query;

    front_attach(1);
    query         = query_next(caller);
    is_forwarding = 1;
    if (query != NULL) {
        status = query(components_p, num_components_p);
    }
    is_forwarding = was;
    return status;
}

/* Without our function in everybody's way this is the only chance, and the only one to say why not. */
static void __attribute__((constructor)) front_start(void)
{
    front_attach_from(&own_address);
    front_attach(!is_interposed());
}

EXPORTED int uct_ha_stats_get(struct uct_ha_stats *stats, size_t size)
{
    const struct front_glue *glue = front_attached();

    if (glue != NULL) {
        return glue->stats_get(stats, size);
    }
    if (stats == NULL) {
        return -EINVAL;
    }
    memset(stats, 0, size);
    return 0;
}

EXPORTED int uct_ha_rail_stats_get(unsigned index, struct uct_ha_rail_stats *stats, size_t size)
{
    const struct front_glue *glue = front_attached();

    return (glue != NULL) ? glue->rail_stats_get(index, stats, size) : -EINVAL;
}

EXPORTED const char *uct_ha_refusal(void)
{
    return front_refusal();
}
