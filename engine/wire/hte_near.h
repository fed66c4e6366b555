/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NEAR_H_
#define HTE_NEAR_H_

/*
 * A near connection: to a process of the same host, without UCX. This process moves the bytes by itself, the target's
 * takes no part in it: with process_vm_readv(2) and process_vm_writev(2), one copy; or where the target's memory is
 * of hte_memory_alloc(), which is mapped here then, with memcpy(3).
 *
 *   begin (seat is odd) ─▶ slots: still registered? ─▶ guard: still this process? ─▶ move, up to 64 operations ─▶ end
 *
 * See local/hte_board.h. A pid says little about who has it now: the secret behind the guard is read with the bytes
 * of a READ, in one call; before a WRITE, whose first bytes go to the guard, so that a process without one gets none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "remote/hte_view.h"

struct hte_near;

#define HTE_NEAR_RANGES_MAX 64
#define HTE_NEAR_SPAN       (64ull << 20) /* bytes at a time: so long is their owner's unregister held up */
#define HTE_NEAR_NOT_MOVED  1

/* One operation: ranges of one buffer. */
struct hte_near_item {
    unsigned first, count; /* of its ranges */
    uint64_t length;       /* of all of them */
    uint64_t region, slot; /* of the buffer */
    uint64_t base;         /* where that begins in the target's memory */
    char    *mapped;       /* and in this process; NULL: it is not there */
    int      result; /* HTE_NEAR_NOT_MOVED; then HTE_OK, RANGE (released, or not mapped there), MEMORY (not here) */
};

/* What goes together, in one direction. The ranges of an item follow those of the one before it. */
struct hte_near_load {
    struct iovec         local[1 + HTE_NEAR_RANGES_MAX], remote[1 + HTE_NEAR_RANGES_MAX]; /* the first is not filled */
    struct hte_near_item item[HTE_NEAR_RANGES_MAX];
    unsigned             n_ranges, n_items;
    bool                 is_write;
};

static inline void hte_near_load_init(struct hte_near_load *load, bool is_write)
{
    load->n_ranges = 0;
    load->n_items  = 0;
    load->is_write = is_write;
}

/* NULL: it cannot be reached so, and why. `host`: hte_host_identity() of this process. `is_gone`: and nor otherwise,
 * that process of this host has ended. */
struct hte_near *hte_near_open(const struct hte_view *view, const char *host, bool *is_gone, char *why, size_t size);
void             hte_near_close(struct hte_near *near);

/* Sets results, and moves what can be; HTE_OK, or what the connection breaks with: then items may be left. */
int hte_near_move(struct hte_near *near, struct hte_near_load *load);
/* Where the buffer begins in this process; NULL: it is not mapped. */
char *hte_near_mapped(struct hte_near *near, const struct hte_desc_buffer *buffer);
/* Lets go of memory that its owner took back. */
void hte_near_sweep(struct hte_near *near);

#endif
