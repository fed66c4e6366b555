/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is not linked with UCX and does with it, and with libuct_ha.so.0, what its arguments say,
 * in their order:
 *
 *   open:FILE     dlopen() as Python and most programs do it, with RTLD_LOCAL
 *   global:FILE   the same with RTLD_GLOBAL
 *   chdir:FOLDER  go there
 *   fork          the rest happens in a child
 *   init          ucp_init() of the UCX that is there: "init 0" when that works
 *   init:FILE     of this copy of libucp
 *   threads       the same in eight threads at once
 *   components    what UCT then has: "components: self tcp ... ."
 *   stats         the counters of libuct_ha.so.0: "stats 0", status and number of failovers
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include "uct_ha/uct_ha.h"

#define THREADS 8

static void fail(const char *what, const char *why)
{
    printf("FAIL %s: %s\n", what, why ? why : "?");
    exit(1);
}

static void function_find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);

    if (!address) {
        fail(name, dlerror());
    }
    memcpy(function, &address, sizeof(address));
}

static void file_open(const char *file, int mode)
{
    if (!dlopen(file, RTLD_NOW | mode)) {
        fail(file, dlerror());
    }
}

static void *ucx_open(const char *file)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);

    if (!handle) {
        fail(file, "is not loaded");
    }
    return handle;
}

static void *init(void *file)
{
    ucs_status_t (*ucp_init_fn)(unsigned, unsigned, const ucp_params_t *, const ucp_config_t *, ucp_context_h *);
    void (*cleanup)(ucp_context_h);
    ucp_params_t  params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_context_h context;
    ucs_status_t  status;

    function_find(ucx_open(file), "ucp_init_version", &ucp_init_fn);
    function_find(ucx_open(file), "ucp_cleanup", &cleanup);
    status = ucp_init_fn(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &context);
    if (status == UCS_OK) {
        cleanup(context);
    }
    printf("init %d\n", status);
    return NULL;
}

static void threads(void)
{
    static char file[] = "libucp.so.0";
    pthread_t   id[THREADS];

    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&id[i], NULL, init, file) != 0) {
            fail("threads", "pthread_create");
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(id[i], NULL);
    }
}

static void components(void)
{
    ucs_status_t (*query_all)(uct_component_h **, unsigned *);
    ucs_status_t (*query)(uct_component_h, uct_component_attr_t *);
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_component_h     *all;
    unsigned             i, count;

    function_find(ucx_open("libuct.so.0"), "uct_query_components", &query_all);
    function_find(ucx_open("libuct.so.0"), "uct_component_query", &query);
    if (query_all(&all, &count) != UCS_OK) {
        fail("components", "cannot be listed");
    }
    printf("components:");
    for (i = 0; i < count; i++) {
        if (query(all[i], &attr) == UCS_OK) {
            printf(" %s", attr.name);
        }
    }
    printf(" .\n");
}

static void stats(void)
{
    int (*get)(struct uct_ha_stats *, size_t);
    struct uct_ha_stats now;
    int                 status;

    memset(&now, 0xff, sizeof(now));
    function_find(dlopen("libuct_ha.so.0", RTLD_LAZY | RTLD_NOLOAD), "uct_ha_stats_get", &get);
    status = get(&now, sizeof(now));
    printf("stats %d %lu\n", status, (unsigned long)now.failovers);
}

static void fork_off(void)
{
    pid_t child = fork();
    int   status;

    if (child != 0) {
        (void)waitpid(child, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
}

int main(int argc, char **argv)
{
    static char libucp[] = "libucp.so.0";

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        char  *word = argv[i], *rest = strchr(word, ':');
        size_t length = rest ? (size_t)(rest++ - word) : strlen(word);

#define IS(_name) (length == strlen(_name) && strncmp(word, _name, length) == 0)
        if (IS("open") && rest) {
            file_open(rest, RTLD_LOCAL);
        } else if (IS("global") && rest) {
            file_open(rest, RTLD_GLOBAL);
        } else if (IS("chdir") && rest) {
            if (chdir(rest) != 0) {
                fail(rest, "cannot go there");
            }
        } else if (IS("fork")) {
            fork_off();
        } else if (IS("init")) {
            (void)init(rest ? rest : libucp);
        } else if (IS("threads")) {
            threads();
        } else if (IS("components")) {
            components();
        } else if (IS("stats")) {
            stats();
        } else {
            fail(word, "is no action");
        }
    }
    return 0;
}
