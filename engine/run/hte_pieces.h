/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PIECES_H_
#define HTE_PIECES_H_

/* Pieces are cut into slices. */

#include "hte_post.h"

/* Cut pieces and post their slices while there is room. Returns how many were cut. */
unsigned hte_pieces_post(struct hte_poster *poster);
/* Those whose requests were canceled: in the queue, taken, and slices that wait for a retry. */
void hte_pieces_cancel(struct hte_poster *poster);

#endif
