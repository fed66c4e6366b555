/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_GUEST_H_
#define HTE_GUEST_H_

/*
 * The target's side of letters (hte_letter.h): what they want of this process's memory is checked and done as they
 * come, and answered from UCX's callback, while there is an endpoint to answer over.
 *
 * A guest is what is remembered of a peer's connection: receipts that he has not asked for yet. Nobody says when it is
 * over; after a minute without a letter it is forgotten, and he who comes back after that notices.
 */

#include "hte_lane.h"
#include "hte_letter.h"

struct hte_guest {
    struct hte_lane     *lane;
    struct hte_link_ring link, bucket_link; /* lane's */
    uint64_t             conn, id;          /* the initiator's number, and one of ours */
    uint64_t             seen_at;
    struct hte_origin   *origin;   /* reference; NULL: nothing was written yet */
    struct hte_receipt  *receipts; /* n_receipts of them, room for more */
    uint32_t             n_receipts, room;
};

/* A letter for this side; reply: an endpoint to who sent it, for the moment; NULL when he wants no answer. */
void hte_guests_receive(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length,
                        ucp_ep_h reply);
void hte_guests_sweep(struct hte_lane *lane);
/* After UCX's worker was destroyed. */
void hte_guests_destroy(struct hte_lane *lane);

#endif
