/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FLOW_H_
#define HTE_FLOW_H_

/*
 * A flow: what one worker thread has of one target. Only the thread touches it; it is part of struct hte_target.
 *
 *            take                 no room                         nothing to cut
 *   (idle) ────────▶ ACTIVE ─────────────────▶ STALLED     both ────────────────▶ (idle)
 *                      ▲         room             │
 *                      └──────────────────────────┘
 *
 * Each has its share of the thread's slices (core/hte_share.h): a target that takes nothing any more keeps what it has until
 * slice_timeout, and the others go on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hte_target.h"

struct hte_piece;
struct hte_worker;

/* The thread's flow of that target; NULL: HTE_SEGMENT_LOCAL. */
struct hte_flow *hte_flow_of(struct hte_worker *worker, const struct hte_segment *segment);
/* In slices: how many UCX may still be given; how many may still be cut; the lesser of the two. */
uint64_t hte_flow_window(const struct hte_worker *worker, const struct hte_flow *flow);
uint64_t hte_flow_spare(const struct hte_worker *worker, const struct hte_flow *flow);
uint64_t hte_flow_room(const struct hte_worker *worker, const struct hte_flow *flow);

struct hte_slice *hte_flow_take_slice(struct hte_worker *worker, struct hte_flow *flow);
void hte_flow_put_slice(struct hte_worker *worker, struct hte_flow *flow, struct hte_slice *slice);

/* The next piece to cut, of a flow that has room; from the queue when the thread has none. NULL: there is none now. */
struct hte_piece *hte_flows_next(struct hte_worker *worker);
/* Stalled flows that have room again become active. */
void hte_flows_resume(struct hte_worker *worker);
/* Nothing more is cut of it: out of its flow, or whatever list it is in. */
void hte_flow_remove(struct hte_worker *worker, struct hte_piece *piece);

#endif
