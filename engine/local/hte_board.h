/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_BOARD_H_
#define HTE_BOARD_H_

/*
 * The board of a process: what its neighbours, processes of the same host that move bytes into its memory and out of
 * it by themselves (wire/hte_near.h), have to know at every moment. They map it.
 *
 *   slots   per registration its id while it is valid, 0 from the moment on when it is not
 *   seats   per neighbour's connection a number, odd while it moves bytes
 *
 * A neighbour makes its number odd, then looks at the slot; the owner clears the slot, then looks at the numbers. So
 * when hte_board_remove() has returned nobody touches the memory any more. One that was stopped in between is waited
 * for HTE_BOARD_PATIENCE_NS, no longer; it may go on later.
 *
 * The guard is a page that only the owner has: no process that gets its pid later, no child of it, and nothing that it
 * executes. It holds the secret that says who it is.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hte_region.h"

#define HTE_BOARD_VERSION     1
#define HTE_BOARD_SLOTS       131072 /* more than HTE_BUFFERS_MAX */
#define HTE_BOARD_SEATS       4096
#define HTE_BOARD_PATIENCE_NS 1000000000ull

struct hte_seat {
    _Alignas(64) _Atomic uint64_t busy;
    _Atomic int32_t owner; /* pid; 0: free */
};

/* What is mapped by all. */
struct hte_board_page {
    uint64_t         version, secret;
    _Atomic bool     is_open;
    _Atomic uint32_t seats_used; /* those behind it were never taken */
    _Atomic uint64_t slots[HTE_BOARD_SLOTS];
    struct hte_seat  seats[HTE_BOARD_SEATS];
};

struct hte_guard {
    uint64_t secret;
    uint64_t mark; /* neighbours write to it before they write to memory: where it is not, they write nothing */
};

struct hte_board {
    int                    fd;
    struct hte_board_page *page;  /* NULL: this process has none */
    struct hte_guard      *guard; /* likewise */
    uint32_t               next;  /* where to look for a free slot */
};

/* Without one when the system has not what it takes. */
void hte_board_open(struct hte_board *board);
/* Nothing is valid any more; waits as hte_board_remove(). */
void hte_board_close(struct hte_board *board);

/* One call at a time: sets region->slot. There are more slots than a descriptor may have buffers. */
void hte_board_add(struct hte_board *board, struct hte_region *region);
void hte_board_remove(struct hte_board *board, struct hte_region *const *regions, size_t count);

/* In a neighbour: a seat of another process's board, or NULL: all are taken. */
struct hte_seat *hte_board_sit(struct hte_board_page *page);
void             hte_board_rise(struct hte_seat *seat);

static inline void hte_seat_begin(struct hte_seat *seat)
{
    atomic_fetch_add(&seat->busy, 1);
}

static inline void hte_seat_end(struct hte_seat *seat)
{
    atomic_fetch_add(&seat->busy, 1);
}

#endif
