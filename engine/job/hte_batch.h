/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_BATCH_H_
#define HTE_BATCH_H_

/*
 * Batches and their requests.
 *
 *   caller: submit ──▶ queue of pieces ──▶ worker thread: take, cut into slices, post ... piece FINAL
 *                                            ──▶ last piece: request final ──▶ last request: wake, eventfd, callback
 *
 * A request is divided into pieces at submit; a piece belongs to the thread that took it. Small ones the other way
 * round: neighbours in the batch that are alike (same target, direction, and registered memory on both sides) are one
 * piece, a pack, in which those that continue each other become one operation (run/hte_pieces.h). Each has its own
 * status all the same. Memory: one block per batch (its requests, each with its first piece) and one per submission
 * that has requests to divide.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "base/hte_table.h"
#include "core/hte_piece.h"
#include "engine/include/hte.h"

struct hte_engine;
struct hte_notice;
struct hte_edition;
struct hte_region;
struct hte_segment;
struct hte_view;
struct hte_task;

struct hte_piece {
    struct hte_link_ring link;   /* in the queue, or in its thread's list */
    struct hte_task     *task;   /* a pack: the first that is not cut */
    uint32_t             count;  /* a pack: so many requests are not cut, the others follow `task`; 0: it is none */
    uint32_t             weight; /* operations that it takes, about */
    uint64_t             offset; /* in the request, of the next slice */
    /* border of the local region that the next slice begins in; 0: to be looked up */
    uint64_t               local_end;
    uint32_t               preferred, available; /* rails near that region */
    uint32_t               buffer;               /* of the view, that the next slice begins in */
    bool                   is_gpu;               /* that region is memory of a GPU */
    struct hte_piece_state state;
};

/* What a request has in common with the one before it in the batch. */
enum hte_likeness {
    HTE_UNLIKE,
    HTE_ALIKE,    /* target, direction, and registered memory on both sides, which has all of both */
    HTE_CONTINUES /* and on both sides it begins where the other one ends */
};

struct hte_task {
    struct hte_batch   *batch;
    struct hte_segment *segment; /* reference; NULL: HTE_SEGMENT_LOCAL */
    struct hte_view    *view;    /* reference; NULL likewise */
    struct hte_notice  *notice;  /* or NULL */
    struct hte_edition *edition; /* reference, which has the others in its stead: it is of a prepared list; or NULL */
    struct hte_region  *region;  /* that has all of the local memory, pinned; NULL: there are several, pinned too */
    char               *local;
    uint64_t            remote, length;
    uint32_t            buffer;   /* of the view, that has all of the remote memory, when it is plain */
    uint8_t             is_plain; /* all of its memory is of one region here, and of one buffer there */
    uint8_t             likeness; /* enum hte_likeness */
    uint8_t             is_write;
    _Atomic bool        is_canceled;
    _Atomic int32_t     code; /* enum hte_status_code; final ones are stored last */
    _Atomic int32_t     error;
    _Atomic int32_t     worst;  /* of its final pieces: code | -error << 8 */
    _Atomic uint32_t    pieces; /* not final */
    _Atomic uint64_t    transferred;
    struct hte_piece    first;
};

struct hte_block { /* pieces of divided requests */
    struct hte_block *next;
    struct hte_piece  pieces[];
};

struct hte_batch {
    struct hte_batches  *batches;
    hte_batch_t          id;
    uint32_t             slot;
    _Atomic uint32_t     refs; /* table, callers inside a call, unfinished requests */
    uint32_t             capacity;
    uint8_t              priority;
    hte_batch_callback_t callback;
    void                *callback_arg;
    int                  eventfd; /* our duplicate, so that the caller's may be closed at any time; -1: none */

    pthread_mutex_t   submit_lock; /* guards blocks, has_notice and the growth of submitted; held while fetching */
    pthread_mutex_t   lock;        /* waiters sleep on it; held for moments only */
    pthread_cond_t    ended;       /* CLOCK_MONOTONIC */
    struct hte_block *blocks;
    bool              has_notice;
    _Atomic uint32_t  submitted;
    _Atomic bool      has_begun;  /* one of its requests has */
    _Atomic uint32_t  unfinished; /* requests that are not final */
    _Atomic uint32_t  untold;     /* the same, and those whose callback is still to come or under way */
    _Atomic int32_t   worst;      /* code of final requests */
    _Atomic int32_t   first_error;
    _Atomic uint64_t  transferred;
    struct hte_task   tasks[]; /* capacity of them */
};

/* Gives back what `count` requests that are final held besides the batch's memory: one, or some that are alike. */
typedef void (*hte_task_release)(struct hte_engine *engine, struct hte_task *task, uint32_t count, bool is_completed);

struct hte_batches {
    pthread_mutex_t    lock;
    struct hte_table   table;
    struct hte_slot   *slots;
    struct hte_engine *engine; /* for the two kinds of callbacks */
    hte_task_release   release;
    _Atomic uint32_t   open;
    _Atomic uint64_t   requests, requests_ended;
};

int  hte_batches_init(struct hte_batches *batches, uint32_t count, struct hte_engine *engine, hte_task_release release);
void hte_batches_cleanup(struct hte_batches *batches); /* none may be open */

int hte_batches_alloc(struct hte_batches *batches, size_t capacity, hte_batch_t *id);
/* Takes it out of the table. Whether it was there: then the table's reference is the caller's. */
bool hte_batches_remove(struct hte_batches *batches, struct hte_batch *batch);

/* A reference for the caller, or NULL with the error set. */
struct hte_batch *hte_batches_get(struct hte_batches *batches, hte_batch_t id);
void              hte_batch_ref(struct hte_batch *batch, uint32_t count);
void              hte_batch_put(struct hte_batch *batch);
/* References to all open ones, an array of the caller's. */
struct hte_batch **hte_batches_all(struct hte_batches *batches, size_t *count);
void               hte_batch_cancel_tasks(struct hte_batch *batch);
/* Whether the calling thread is inside a batch's callback: there nobody may wait for a callback. */
bool hte_batch_in_callback(void);

/* A piece of this task is being worked on. */
void hte_task_begin(struct hte_task *task);
/* The same of some of a pack. */
void hte_tasks_begin(struct hte_task *task, uint32_t count);
/* Some of a pack, which succeeded or failed as a whole. */
void hte_tasks_final(struct hte_task *task, uint32_t count, int code, int error);
/* A piece of this task has become final. Called by its thread; runs what follows from it. */
void hte_task_piece_final(struct hte_task *task, const struct hte_piece_state *piece);

#endif
