/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PIECES_H_
#define HTE_PIECES_H_

/* Pieces are cut into slices. */

#include "hte_post.h"

/* Cut pieces and post their slices while there is room. Returns how many were cut. */
unsigned hte_pieces_post(struct hte_poster *poster);
/* Those whose requests were canceled: in the queue, taken, and slices that wait for a retry. */
void hte_pieces_cancel(struct hte_poster *poster);

/* A pack that no flow has can be moved at once: to a process of the same host, over a connection that is there. */
bool hte_pieces_can_move(struct hte_poster *poster, const struct hte_piece *pack);
/* Of a pack that its flow has, as much as there is room for; how many operations. */
unsigned hte_pieces_post_pack(struct hte_poster *poster, struct hte_piece *pack);

#endif
