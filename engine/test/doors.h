/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOORS_H_
#define DOORS_H_

/* Functions of UCP, replaced by doors.c: they count, look at arguments, fail on request, and otherwise call the real
 * ones. */

#include <pthread.h>

#include <ucp/api/ucp.h>

#define DOOR_EPS_MAX     64
#define DOOR_WORKERS_MAX 32
#define DOOR_RAILS       2
#define DOOR_HELD_MAX    8

struct hte_letter;
struct hte_letter_head;

struct door {
    _Atomic int       eps_created, eps_closed, keys_packed, keys_unpacked;
    _Atomic int       flushes_to_fail, letters_to_fail;
    _Atomic pthread_t sender; /* thread of the last one of kind 0, DATA */
    /* Changes a letter before it is sent; NULL: nothing does. letter: NULL when it has no bytes. */
    void (*spoil)(struct hte_letter_head *head, struct hte_letter *letter);
    _Atomic int  letters;          /* sent, or tried to be */
    _Atomic int  letters_of[8];    /* of these, by kind */
    _Atomic int  is_fake;          /* puts and flushes succeed, and nothing happens */
    _Atomic int  bad_rail;         /* puts on it are refused; -1: none */
    _Atomic int  puts[DOOR_RAILS]; /* tried */
    _Atomic long least_room;       /* allocated for an address or key that UCX was given */
    unsigned     prot;             /* of the latest registration */
    /* Flushes are under way until they are let go, in order; of one thread only. */
    _Atomic int holds_flushes, n_held, n_let_go, let_go;
    struct {
        ucp_send_nbx_callback_t done;
        void                   *arg;
    } held[DOOR_HELD_MAX];
    pthread_mutex_t lock; /* guards the rest */
    struct {
        ucp_worker_h worker;
        int          rail;
    } workers[DOOR_WORKERS_MAX];
    struct {
        ucp_ep_h ep;
        int      rail;
    } eps[DOOR_EPS_MAX];
    ucp_context_h contexts[DOOR_RAILS];
    int           n_workers, n_eps, n_contexts;
};

extern struct door door;

void door_reset(void);

#endif
