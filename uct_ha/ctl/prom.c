/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/prom.h"

#include "base/now.h"
#include "ctl/prom_text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_LEN 512

/* Lock order: this one, any interface's control lock. Without the second one the list may be read. */
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
static struct uct_ha_ctl *ctls; /* that are open */
static char               path[PATH_MAX_LEN];
static pid_t              owner; /* who wrote it: not a child that was forked later */
static uint64_t           interval;
static uint64_t           due = UINT64_MAX; /* atomic */
static int                told;

uint64_t uct_ha_prom_due(void)
{
    return __atomic_load_n(&due, __ATOMIC_RELAXED);
}

/* %h: host, %p: process. The rest was checked with the settings. */
static void expand(const char *pattern)
{
    char   host[64] = "";
    size_t length   = 0;

    (void)gethostname(host, sizeof(host) - 1);
    for (const char *c = pattern; *c != '\0' && length < sizeof(path) - 1; c++) {
        if (c[0] == '%' && c[1] == 'h') {
            length += (size_t)snprintf(path + length, sizeof(path) - length, "%s", host);
            c++;
        } else if (c[0] == '%' && c[1] == 'p') {
            length += (size_t)snprintf(path + length, sizeof(path) - length, "%d", (int)owner);
            c++;
        } else {
            path[length++] = *c;
            path[length]   = '\0';
        }
    }
}

static int write_all(const char *name)
{
    int   fd   = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int   error;

    if (file == NULL) {
        error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    uct_ha_prom_text(file, ctls, uct_ha_now());
    error = ferror(file) != 0 ? EIO : 0;
    return fclose(file) != 0 ? errno : error;
}

static void write_locked(void)
{
    char temporary[PATH_MAX_LEN + 8];
    int  error;

    if (ctls == NULL || owner != getpid()) {
        return;
    }
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    error = write_all(temporary);
    if (error == 0 && rename(temporary, path) != 0) {
        error = errno;
    }
    if (error != 0) {
        (void)unlink(temporary);
        if (!told) {
            told = 1;
            ucs_warn("ha_rc [HA-341]: UCX_HA_RC_STATS_FILE: cannot write %s: %s; the job goes on without it", path,
                     strerror(error));
        }
    }
}

void uct_ha_prom_run(uint64_t now)
{
    uint64_t then = uct_ha_prom_due();

    if (now < then ||
        !__atomic_compare_exchange_n(&due, &then, now + interval, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return; /* too early, or another interface's timer does it */
    }
    pthread_mutex_lock(&lock);
    write_locked();
    pthread_mutex_unlock(&lock);
}

/* ---- life ------------------------------------------------------------------------- */

void uct_ha_prom_open(struct uct_ha_ctl *ctl)
{
    const struct uct_ha_iface_config *config = ctl->pairs->config;

    if (config->stats_file[0] == '\0') {
        return;
    }
    pthread_mutex_lock(&lock);
    if (ctls == NULL) {
        owner    = getpid();
        interval = (uint64_t)(config->stats_interval * 1e9);
        told     = 0;
        expand(config->stats_file);
    }
    ctl->prom_next = ctls;
    ctls           = ctl;
    __atomic_store_n(&due, uct_ha_now() + interval, __ATOMIC_RELAXED);
    write_locked();
    pthread_mutex_unlock(&lock);
}

void uct_ha_prom_close(struct uct_ha_ctl *ctl)
{
    struct uct_ha_ctl **link;

    pthread_mutex_lock(&lock);
    for (link = &ctls; *link != NULL && *link != ctl; link = &(*link)->prom_next) {
    }
    if (*link == ctl) {
        *link = ctl->prom_next;
        if (ctls == NULL) {
            __atomic_store_n(&due, UINT64_MAX, __ATOMIC_RELAXED);
            if (owner == getpid()) {
                (void)unlink(path);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}
