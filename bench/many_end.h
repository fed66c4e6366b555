/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MANY_END_H_
#define MANY_END_H_

/* One of the two processes of bench/many: interfaces, endpoints, and what they say to each other. */

#include <signal.h>

#include <uct/api/uct.h>
#include <ucs/async/async_fwd.h>

#include "uct_ha/uct_ha.h"

#define MANY_MAX 4096u

/* How an interface is reached. */
struct many_words {
    char device[256], iface[256];
};

/* An interface. That of the measured process has an endpoint for each peer, a peer has one. */
struct many_end {
    ucs_async_context_t *async;
    uct_worker_h         worker;
    uct_iface_h          iface;
    uct_ep_h            *eps;
    unsigned long        got;                /* messages */
    unsigned long        owed;               /* a peer: answers that did not go out yet */
    void (*hears)(void *arg, uint64_t from); /* if set: each message, and who says that it is his */
    void *hears_as;
};

void   many_die(const char *what) __attribute__((noreturn));
double many_now(void);
void   many_stats(struct uct_ha_stats *stats);

/* As many open files as may be. */
void many_files(void);

/* An interface of a worker of its own, with room for so many endpoints. */
void many_open(struct many_end *end, unsigned eps);

/* Writes how it is reached; makes an endpoint to whom the next such words are about. */
void many_introduce(struct many_end *end, int fd);
void many_connect(struct many_end *end, unsigned i, int fd);

/* Until somebody says something there. */
void many_wait(int fd);

void many_words(struct many_end *end, struct many_words *words);
void many_connect_to(struct many_end *end, unsigned i, const struct many_words *words);

ucs_status_t many_send_as(struct many_end *end, unsigned i, uint64_t from);
ucs_status_t many_send(struct many_end *end, unsigned i);

/* So many peers, until killed or the other end is gone; returns the exit status. */
int many_be_peers(unsigned count);

#endif
