/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_POST_H_
#define HTE_POST_H_

/* Slices are posted, again if need be, and end. */

#include "hte_poster.h"

int hte_poster_open(struct hte_poster *poster, struct hte_run *run, unsigned index);

/* A slice: it is posted, or becomes READY, or ends. *conn: the connection that the slice before it went by, of the same
 * target and as new as this, or NULL; and this one's. */
void hte_post_slice(struct hte_poster *poster, struct hte_slice *slice, struct hte_conn **conn);
/* READY ones whose time has come. Returns how many. */
unsigned hte_post_ready(struct hte_poster *poster);
/* When the next of them can be posted; UINT64_MAX: when something else makes room. */
uint64_t hte_post_due(struct hte_poster *poster);

/* Canceled, or stopped: nothing more of it is posted. Its task, or one of the pack's that is not over. */
static inline bool hte_post_is_unwanted(const struct hte_poster *poster, const struct hte_piece *piece,
                                        const struct hte_task *task)
{
    return piece->state.step == HTE_PIECE_STOPPED || atomic_load_explicit(&task->is_canceled, memory_order_relaxed) ||
           atomic_load_explicit(&poster->run->is_stopping, memory_order_relaxed);
}

/* The piece is FINAL. */
void hte_post_piece_over(struct hte_poster *poster, struct hte_piece *piece);

#endif
