/* SPDX-License-Identifier: BSD-3-Clause */
#include "many_end.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define AM_ID  5
#define DEVICE "sc0:1"

static uct_md_h        md;
static uct_component_h component;

void many_die(const char *what)
{
    fprintf(stderr, "many_driver: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        fprintf(stderr, "many_driver: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

double many_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void many_stats(struct uct_ha_stats *stats)
{
    static int (*get)(struct uct_ha_stats *, size_t);

    if (get == NULL) {
        get = (int (*)(struct uct_ha_stats *, size_t))dlsym(RTLD_DEFAULT, "uct_ha_stats_get");
    }
    if (get == NULL) {
        fprintf(stderr, "many_driver: libuct_ha.so.0 is not loaded\n");
        exit(1);
    }
    get(stats, sizeof(*stats));
}

void many_files(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- interfaces -------------------------------------------------------------------- */

static ucs_status_t take_am(void *arg, void *data, size_t length, unsigned flags)
{
    struct many_end *end = arg;

    (void)length, (void)flags;
    end->got++;
    end->owed++;
    if (end->hears != NULL) {
        end->hears(end->hears_as, *(const uint64_t *)data);
    }
    return UCS_OK;
}

static ucs_status_t take_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg, (void)ep;
    check("endpoint", status);
    return UCS_OK;
}

static void open_md(void)
{
    uct_component_h     *list;
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_md_config_t     *config;
    unsigned             count;

    check("components", uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; i++) {
        check("component", uct_component_query(list[i], &attr));
        if (strcmp(attr.name, "ha") == 0) {
            component = list[i];
        }
    }
    uct_release_component_list(list);
    check("component ha", component == NULL ? UCS_ERR_NO_DEVICE : UCS_OK);
    check("md config", uct_md_config_read(component, NULL, NULL, &config));
    check("md", uct_md_open(component, DEVICE, config, &md));
    uct_config_release(config);
}

void many_open(struct many_end *end, unsigned eps)
{
    uct_iface_config_t *config;
    uct_iface_params_t  params = {
         .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                       UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_FEATURES,
         .open_mode   = UCT_IFACE_OPEN_MODE_DEVICE,
         .mode.device = {.tl_name = "ha_rc", .dev_name = DEVICE},
         .err_handler = take_error,
         .features    = (uint64_t)-1,
    };

    if (md == NULL) {
        open_md();
    }
    end->eps = calloc(eps, sizeof(*end->eps));
    if (end->eps == NULL) {
        many_die("endpoints");
    }
    check("async", ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &end->async));
    check("worker", uct_worker_create(end->async, UCS_THREAD_MODE_SINGLE, &end->worker));
    check("iface config", uct_md_iface_config_read(md, "ha_rc", NULL, NULL, &config));
    check("iface", uct_iface_open(md, end->worker, &params, config, &end->iface));
    uct_config_release(config);
    uct_iface_progress_enable(end->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    check("handler", uct_iface_set_am_handler(end->iface, AM_ID, take_am, end, 0));
}

/* ---- who is there ------------------------------------------------------------------ */

void many_words(struct many_end *end, struct many_words *words)
{
    memset(words, 0, sizeof(*words));
    check("device address", uct_iface_get_device_address(end->iface, (void *)words->device));
    check("iface address", uct_iface_get_address(end->iface, (void *)words->iface));
}

void many_introduce(struct many_end *end, int fd)
{
    struct many_words words;

    many_words(end, &words);
    if (write(fd, &words, sizeof(words)) != sizeof(words)) {
        many_die("write");
    }
}

void many_connect_to(struct many_end *end, unsigned i, const struct many_words *words)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = end->iface,
        .dev_addr   = (const void *)words->device,
        .iface_addr = (const void *)words->iface,
    };

    check("endpoint", uct_ep_create(&params, &end->eps[i]));
}

static void read_words(struct many_words *words, int fd)
{
    size_t  have = 0;
    ssize_t n;

    while (have < sizeof(*words)) {
        n = read(fd, (char *)words + have, sizeof(*words) - have);
        if (n <= 0) {
            fprintf(stderr, "many_driver: the other process is gone\n");
            exit(1);
        }
        have += (size_t)n;
    }
}

void many_connect(struct many_end *end, unsigned i, int fd)
{
    struct many_words words;

    read_words(&words, fd);
    many_connect_to(end, i, &words);
}

void many_wait(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    while (poll(&poll_fd, 1, -1) < 0) {
    }
}

ucs_status_t many_send_as(struct many_end *end, unsigned i, uint64_t from)
{
    return uct_ep_am_short(end->eps[i], AM_ID, from, "message", 8);
}

ucs_status_t many_send(struct many_end *end, unsigned i)
{
    return many_send_as(end, i, 0);
}

/* ---- the peers --------------------------------------------------------------------- */

/* Until there is nothing to do, and whatever comes wakes us. */
static void serve_one(struct many_end *end)
{
    do {
        do {
            while (end->owed > 0 && many_send(end, 0) == UCS_OK) {
                end->owed--;
            }
        } while (uct_worker_progress(end->worker) > 0 || end->owed > 0);
    } while (uct_iface_event_arm(end->iface, UCT_EVENT_RECV | UCT_EVENT_SEND_COMP) == UCS_ERR_BUSY);
}

/* They are many on few processors: none of them spins. */
static void serve(struct many_end *ends, unsigned count)
{
    struct epoll_event events[64];
    int                epoll = epoll_create1(EPOLL_CLOEXEC), fd, n;

    for (unsigned i = 0; i < count; i++) {
        check("event fd", uct_iface_event_fd_get(ends[i].iface, &fd));
        events[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = &ends[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &events[0]) != 0) {
            many_die("epoll");
        }
        serve_one(&ends[i]);
    }
    while (getppid() != 1) {
        n = epoll_wait(epoll, events, 64, 1000);
        for (int i = 0; i < n; i++) {
            serve_one(events[i].data.ptr);
        }
    }
}

int many_be_peers(unsigned count)
{
    struct many_end  *ends      = calloc(count, sizeof(*ends));
    int               to_others = dup(STDOUT_FILENO);
    struct many_words words;

    dup2(STDERR_FILENO, STDOUT_FILENO); /* UCX writes its log there */
    if (ends == NULL) {
        many_die("peers");
    }
    read_words(&words, STDIN_FILENO);
    for (unsigned i = 0; i < count; i++) {
        many_open(&ends[i], 1);
    }
    for (unsigned i = 0; i < count; i++) {
        many_introduce(&ends[i], to_others);
        many_connect_to(&ends[i], 0, &words);
    }
    serve(ends, count);
    return 0;
}
