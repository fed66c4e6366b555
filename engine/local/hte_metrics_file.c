/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_error.h"

/* ---- its name ---- */

/* Without %p the processes of a host would write over each other's. */
static bool is_pattern(const char *pattern)
{
    const char *percent;
    bool        is_good = strstr(pattern, "%p") != NULL && strlen(pattern) < PATH_MAX / 2;

    for (percent = strchr(pattern, '%'); percent != NULL; percent = strchr(percent + 1, '%')) {
        is_good &= percent[1] == 'h' || percent[1] == 'p';
    }
    return is_good;
}

/* The program may go to another folder later, and have several engines. */
static void expand(const char *pattern, unsigned number, FILE *out)
{
    char host[HOST_NAME_MAX + 1] = "", folder[PATH_MAX] = "";

    if (pattern[0] != '/' && getcwd(folder, sizeof(folder)) != NULL) {
        fprintf(out, "%s/", folder);
    }
    gethostname(host, sizeof(host) - 1);
    for (; *pattern != '\0'; ++pattern) {
        if (*pattern != '%') {
            fputc(*pattern, out);
        } else if (*++pattern == 'h') {
            fputs(host, out);
        } else if (number > 1) {
            fprintf(out, "%d.%u", (int)getpid(), number);
        } else {
            fprintf(out, "%d", (int)getpid());
        }
    }
}

static char *expanded(const char *pattern, unsigned number, const char *end)
{
    char  *text   = NULL;
    size_t length = 0;
    FILE  *out    = open_memstream(&text, &length);

    if (out == NULL) {
        return NULL;
    }
    expand(pattern, number, out);
    fputs(end, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text)
{
    size_t  left = strlen(text);
    ssize_t done;

    for (; left > 0; text += done, left -= (size_t)done) {
        done = write(fd, text, left);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        done = done < 0 ? 0 : done;
    }
    return 0;
}

/* No stdio: what a stream holds is written by a child that is forked now, too, when that ends. What is in the way under
 * the other name is not ours, or is left of a process that had our number. */
static int replace(const struct hte_metrics_file *file, const char *text)
{
    int fd, error;

    unlink(file->temporary);
    fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return errno;
    }
    error = write_all(fd, text);
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0 && rename(file->temporary, file->path) != 0) {
        error = errno;
    }
    if (error != 0) {
        unlink(file->temporary);
    }
    return error;
}

static int write_once(struct hte_metrics_file *file, int *error)
{
    char *text;
    int   failed = file->make(file->arg, &text);

    *error = 0;
    if (failed != HTE_OK) {
        return failed;
    }
    *error = replace(file, text);
    free(text);
    return *error == 0 ? HTE_OK : HTE_ERR_INVALID_ARGUMENT;
}

/* Sleeps for a period; false when it is time to end. */
static bool sleep_period(struct hte_metrics_file *file)
{
    struct timespec until;
    bool            goes_on;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(file->interval_ms / 1000);
    until.tv_nsec += (long)(file->interval_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        ++until.tv_sec;
    }
    pthread_mutex_lock(&file->lock);
    while (!file->is_stopping && pthread_cond_timedwait(&file->wake, &file->lock, &until) != ETIMEDOUT) {
    }
    goes_on = !file->is_stopping;
    pthread_mutex_unlock(&file->lock);
    return goes_on;
}

static void *run(void *arg)
{
    struct hte_metrics_file *file = arg;
    int                      error;

    while (sleep_period(file)) {
        if (write_once(file, &error) != HTE_OK) {
            atomic_fetch_add(&file->failures, 1);
        }
    }
    return NULL;
}

/* ---- life ---- */

static void init(struct hte_metrics_file *file)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&file->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&file->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The application's signal handlers are for its own threads. */
static int start_thread(struct hte_metrics_file *file)
{
    sigset_t all, before;
    int      error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&file->thread, NULL, run, file);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    file->has_thread = error == 0;
    if (error == 0) {
        return HTE_OK;
    }
    unlink(file->path);
    return hte_fail(HTE_ERR_LIMIT, "cannot create a thread for metrics: %s", strerror(error));
}

static int start(struct hte_metrics_file *file, const char *pattern)
{
    static _Atomic unsigned number; /* of the latest engine in this process that has a file */
    unsigned                own = atomic_fetch_add(&number, 1) + 1;
    int                     failed, error;

    file->path      = expanded(pattern, own, "");
    file->temporary = expanded(pattern, own, ".tmp");
    if (file->path == NULL || file->temporary == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for the name of a file");
    }
    failed = write_once(file, &error);
    if (error != 0) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT,
                        "option metrics_file='%s': cannot write %s: %s: make its folder, or name another one", pattern,
                        file->path, strerror(error));
    }
    return failed != HTE_OK ? failed : start_thread(file);
}

int hte_metrics_file_start(struct hte_metrics_file *file, const char *pattern, uint64_t interval_ms,
                           hte_metrics_maker make, void *arg)
{
    int error;

    if (pattern[0] == '\0') {
        return HTE_OK;
    }
    if (!is_pattern(pattern)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT,
                        "option metrics_file='%.200s': it needs %%p (process), may have %%h (host), no other %%, and "
                        "less than %d characters",
                        pattern, PATH_MAX / 2);
    }
    *file = (struct hte_metrics_file){.make = make, .arg = arg, .interval_ms = interval_ms, .owner = getpid()};
    init(file);
    error = start(file, pattern);
    if (error != HTE_OK) {
        hte_metrics_file_stop(file);
    }
    return error;
}

void hte_metrics_file_stop(struct hte_metrics_file *file)
{
    if (file->make == NULL || file->owner != getpid()) {
        return;
    }
    if (file->has_thread) {
        pthread_mutex_lock(&file->lock);
        file->is_stopping = true;
        pthread_cond_signal(&file->wake);
        pthread_mutex_unlock(&file->lock);
        pthread_join(file->thread, NULL);
        unlink(file->path);
    }
    free(file->path);
    free(file->temporary);
    pthread_cond_destroy(&file->wake);
    pthread_mutex_destroy(&file->lock);
    file->make = NULL;
}
