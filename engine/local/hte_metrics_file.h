/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_METRICS_FILE_H_
#define HTE_METRICS_FILE_H_

/*
 * A file whose text is made anew every second or so, by a thread of its own, while the engine lives: written under
 * another name and then renamed, so that a reader sees a whole one, and removed at the end. A write that fails is tried
 * again a period later; nothing else of the engine waits for it.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* *text of malloc(3), or an enum hte_error. */
typedef int (*hte_metrics_maker)(void *arg, char **text);

struct hte_metrics_file {
    char             *path, *temporary; /* NULL: there is none */
    hte_metrics_maker make;
    void             *arg;
    uint64_t          interval_ms;
    pid_t             owner; /* not a child that was forked later */
    _Atomic uint64_t  failures;
    pthread_mutex_t   lock; /* guards is_stopping */
    pthread_cond_t    wake;
    bool              is_stopping, has_thread;
    pthread_t         thread;
};

/* `pattern`: %h is the host, %p the process. An error when it cannot be written; "" is no file. All zero before. */
int  hte_metrics_file_start(struct hte_metrics_file *file, const char *pattern, uint64_t interval_ms,
                            hte_metrics_maker make, void *arg);
void hte_metrics_file_stop(struct hte_metrics_file *file);

#endif
