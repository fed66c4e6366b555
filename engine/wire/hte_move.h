/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_MOVE_H_
#define HTE_MOVE_H_

/*
 * The initiator's side of letters (hte_letter.h): operations that are posted so, and what comes back.
 *
 * UCX sends from copies. So the caller's memory is free at any time, whatever becomes of the peer, and no connection is
 * broken off to get it back: of UCX 1.13 over tcp, that costs the process its life now and then. When an operation is
 * given up, what UCX has of it and has not sent becomes void.
 */

#include "hte_conn.h"
#include "hte_letter.h"

struct hte_op;

/* Asks for receipts. */
void hte_move_flush(struct hte_conn *conn);
/* A begun operation. */
void hte_move_post(struct hte_op *op, struct hte_conn *conn, const struct hte_view *view);
/* It is given up. */
void hte_move_void(const struct hte_op *op);

/* A letter for this side. */
void hte_move_receive(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length);

#endif
