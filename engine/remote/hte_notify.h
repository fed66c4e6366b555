/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NOTIFY_H_
#define HTE_NOTIFY_H_

/*
 * Notifications: those that came in, and the thread that sends those of batches.
 *
 * It has one connection at a time. A target that does not take one is tried again, after a pause as long as the try
 * took and more; meanwhile all others get theirs. So they wait for one try of it at most. What a target gets it gets
 * in order.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "hte_segment.h"
#include "meta/hte_meta.h"

/* What is sent when the requests of one submission have completed. */
struct hte_notice {
    struct hte_link_ring link;    /* in the list of those to be sent */
    _Atomic uint32_t     left;    /* requests that are not final */
    _Atomic bool         is_void; /* one did not complete */
    uint32_t             n_targets;
    struct hte_segment **targets; /* references, each once; those that have it are taken out */
    uint8_t             *tries;   /* per target, that failed */
    char                *name, *text;
};

struct hte_notify {
    pthread_mutex_t      lock;  /* guards all */
    struct hte_link_ring inbox; /* struct hte_letter */
    uint64_t             n_inbox, max;
    pthread_cond_t       has_work; /* CLOCK_MONOTONIC */
    struct hte_link_ring outbox;   /* struct hte_notice */
    bool                 is_open, is_stopping, has_thread;
    uint64_t             stop_at; /* once is_stopping: what is not sent by then is dropped */
    pthread_t            thread;
    struct hte_meta     *meta;
    _Atomic uint64_t     sent, dropped; /* of batches, per target */
};

void hte_notify_init(struct hte_notify *notify, uint64_t max);
/* What batches send is sent from here on. */
int hte_notify_start(struct hte_notify *notify, struct hte_meta *meta);
/* Sends what batches have left to send, for at most so long and one delivery more; then nothing. */
void hte_notify_stop(struct hte_notify *notify, uint64_t timeout_ms);
void hte_notify_cleanup(struct hte_notify *notify);

/* Call handler of the metadata door. */
int hte_notify_receive(struct hte_notify *notify, const char *from, const char *payload, struct hte_why *why);

/* What came in, for hte_notify_drain(). */
int hte_notify_take(struct hte_notify *notify, struct hte_notification **notifications, size_t *count);
/* Sends one now. Blocks. */
int hte_notify_check(const char *name, const char *text);
int hte_notify_deliver(struct hte_meta *meta, const char *segment, const char *name, const char *text);

int  hte_notice_create(const char *name, const char *text, uint32_t max_targets, struct hte_notice **notice);
void hte_notice_destroy(struct hte_notice *notice);
/* A request that it waits for is final. After the last one it is sent, or dropped. */
void hte_notice_task_final(struct hte_notify *notify, struct hte_notice *notice, bool is_completed);

#endif
