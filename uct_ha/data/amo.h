/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_AMO_H_
#define UCT_HA_AMO_H_

/*
 * Atomics through messages. A request is a message like any other, so it is
 * executed exactly once whatever happens to the rails; the owner of the memory
 * executes it in progress, in order with the sender's other messages, and
 * answers with a message that brings the old value and proves the execution.
 *
 *   requester                          owner
 *   uct_ha_ep_atomic*()  ─ REQUEST ─▶  checks key and range, executes
 *   completes            ◀─ REPLY  ──  old value, status
 *
 * Atomic with respect to the owner's CPU and to other atomics of this
 * transport, not to atomics that a card executes. The owner has to call
 * progress, as for any active message.
 *
 * Data part of a connection: progress, no lock.
 */

#include "data/flow.h"

#define UCT_HA_AMO_WINDOW 64 /* under way per connection and direction */

struct uct_ha_amo_request {
    uint64_t address, operand, compare;
    uint32_t key; /* of the owner's primary rail */
    uint32_t id;
    uint8_t  op; /* uct_atomic_op_t */
    uint8_t  size;
    uint8_t  reserved[6];
};

struct uct_ha_amo_reply {
    uint64_t value; /* before the operation */
    uint32_t id;
    uint32_t status; /* 0, or a positive errno value */
};

/* Bytes that must fit inline for atomics to be offered. */
#define UCT_HA_AMO_INLINE sizeof(struct uct_ha_amo_request)

/* One atomic of the user. `result` may be NULL (post), `comp` too. */
ucs_status_t uct_ha_amo_send(struct uct_ha_flow *flow, struct uct_ha_amo_request *request, uct_rkey_t rkey,
                             void *result, uct_completion_t *comp);

/* A request or reply arrived. */
void uct_ha_amo_take(struct uct_ha_flow *flow, uint32_t imm, const void *data, uint32_t length);

/* Send replies that found no room before. */
void uct_ha_amo_resume(struct uct_ha_flow *flow);
int  uct_ha_amo_owes(const struct uct_ha_flow *flow);

void uct_ha_amo_let_go(struct uct_ha_flow *flow); /* the users are told now, and no more */
void uct_ha_amo_cancel(struct uct_ha_flow *flow); /* end all with flow->status */

#endif
