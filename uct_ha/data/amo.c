/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/amo.h"

#include "data/go.h"
#include "data/retire.h"
#include "mem/exposed.h"
#include "mem/rkey.h"
#include "pair/attention.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pending_amo {
    uct_completion_t *comp;
    void             *result;
    uint8_t           size;
};

struct uct_ha_amo {
    struct pending_amo      own[UCT_HA_AMO_WINDOW];
    uint32_t                owed_head, owed_tail; /* replies that wait for room */
    struct uct_ha_amo_reply owed[UCT_HA_AMO_WINDOW];
};

static struct uct_ha_amo *amo_of(struct uct_ha_flow *flow)
{
    if (flow->amo == NULL) {
        flow->amo = calloc(1, sizeof(*flow->amo));
    }
    return flow->amo;
}

int uct_ha_amo_owes(const struct uct_ha_flow *flow)
{
    return flow->amo != NULL && flow->amo->owed_head != flow->amo->owed_tail;
}

static void send_message(struct uct_ha_flow *flow, int go, uint8_t imm, const void *data, size_t length)
{
    struct uct_ha_out out = {
        .op = HA_SEND_IMM, .kind = HA_OP_SEND, .flags = HA_OP_FLAG_QUIET, .imm = imm, .length = (uint32_t)length};

    uct_ha_tx_begin_out(flow, &out, UCT_HA_BYTES);
    flow->tx.sent++;
    memcpy(out.bytes, data, length);
    uct_ha_go_short(flow, go, &out, 1);
}

ucs_status_t uct_ha_amo_send(struct uct_ha_flow *flow, struct uct_ha_amo_request *request, uct_rkey_t rkey,
                             void *result, uct_completion_t *comp)
{
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);
    struct uct_ha_amo  *amo;
    struct pending_amo *own;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    amo = amo_of(flow);
    if (ucs_unlikely(amo == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (uct_ha_flow_atomics(flow) == UCT_HA_AMO_WINDOW) {
        return UCS_ERR_NO_RESOURCE;
    }
    own          = &amo->own[flow->amo_issued % UCT_HA_AMO_WINDOW];
    own->comp    = comp;
    own->result  = result;
    own->size    = request->size;
    request->key = uct_ha_rkey(rkey, 0);
    request->id  = flow->amo_issued++;
    flow->flows->outstanding++;
    send_message(flow, go, UCT_HA_IMM_AMO_REQUEST, request, sizeof(*request));
    return result == NULL ? UCS_OK : UCS_INPROGRESS;
}

/* ---- the owner's side -------------------------------------------------------- */

#define EXECUTE(_type, _request, _old)                                                                           \
    do {                                                                                                         \
        _type *target  = (_type *)(uintptr_t)(_request)->address;                                                \
        _type  operand = (_type)(_request)->operand;                                                             \
        _type  compare = (_type)(_request)->compare;                                                             \
        switch ((_request)->op) {                                                                                \
        case UCT_ATOMIC_OP_ADD:                                                                                  \
            _old = __atomic_fetch_add(target, operand, __ATOMIC_SEQ_CST);                                        \
            break;                                                                                               \
        case UCT_ATOMIC_OP_AND:                                                                                  \
            _old = __atomic_fetch_and(target, operand, __ATOMIC_SEQ_CST);                                        \
            break;                                                                                               \
        case UCT_ATOMIC_OP_OR:                                                                                   \
            _old = __atomic_fetch_or(target, operand, __ATOMIC_SEQ_CST);                                         \
            break;                                                                                               \
        case UCT_ATOMIC_OP_XOR:                                                                                  \
            _old = __atomic_fetch_xor(target, operand, __ATOMIC_SEQ_CST);                                        \
            break;                                                                                               \
        case UCT_ATOMIC_OP_SWAP:                                                                                 \
            _old = __atomic_exchange_n(target, operand, __ATOMIC_SEQ_CST);                                       \
            break;                                                                                               \
        default: /* UCT_ATOMIC_OP_CSWAP: on failure `compare` becomes the old value */                           \
            (void)__atomic_compare_exchange_n(target, &compare, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
            _old = compare;                                                                                      \
            break;                                                                                               \
        }                                                                                                        \
    } while (0)

static uint64_t execute(const struct uct_ha_amo_request *request)
{
    uint64_t old;

    if (request->size == sizeof(uint32_t)) {
        EXECUTE(uint32_t, request, old);
    } else {
        EXECUTE(uint64_t, request, old);
    }
    return old;
}

static int check(struct uct_ha_flow *flow, const struct uct_ha_amo_request *request)
{
    if (flow->flows->card_atomics) {
        return ENOTSUP; /* our card executes them: done here as well they would not be atomic */
    }
    if ((request->size != 4 && request->size != 8) || request->op >= UCT_ATOMIC_OP_LAST ||
        request->address % request->size != 0) {
        return EINVAL;
    }
    for (int s = 0; s < flow->road.lanes->slots; s++) { /* slot 1: registered when our first rail was gone */
        if (uct_ha_exposed_covers(flow->road.lanes->rail_no[s], request->key, request->address, request->size)) {
            return 0;
        }
    }
    return EACCES;
}

static int room_to_reply(struct uct_ha_flow *flow)
{
    return uct_ha_tx_has_room(flow) && uct_ha_tx_has_credit(flow);
}

void uct_ha_amo_resume(struct uct_ha_flow *flow)
{
    struct uct_ha_amo *amo = flow->amo;

    while (uct_ha_amo_owes(flow) && !flow->tx.dead && room_to_reply(flow)) {
        struct uct_ha_amo_reply reply = amo->owed[amo->owed_head++ % UCT_HA_AMO_WINDOW];

        send_message(flow, uct_ha_go_is_open(flow, 1) || uct_ha_go_open(flow, 1), UCT_HA_IMM_AMO_REPLY, &reply,
                     sizeof(reply));
    }
}

static void take_request(struct uct_ha_flow *flow, const struct uct_ha_amo_request *request)
{
    struct uct_ha_amo      *amo   = amo_of(flow);
    struct uct_ha_amo_reply reply = {.id = request->id};

    if (amo == NULL || amo->owed_tail - amo->owed_head == UCT_HA_AMO_WINDOW) {
        /* Out of memory, or a peer that asks for more than it may: it gets no
         * answer, and its endpoint ends by the same rule as a silent peer's. */
        ucs_error("ha_rc [HA-505]: atomic request of a peer dropped: %s",
                  amo == NULL ? "out of memory" : "more than it may have under way");
        return;
    }
    reply.status = (uint32_t)check(flow, request);
    if (reply.status == 0) {
        reply.value = execute(request);
    }
    amo->owed[amo->owed_tail++ % UCT_HA_AMO_WINDOW] = reply;
    uct_ha_amo_resume(flow);
    if (uct_ha_amo_owes(flow)) {
        uct_ha_tx_backlog(flow);
    }
}

/* ---- the requester's side ------------------------------------------------------ */

static void store(const struct pending_amo *own, uint64_t value)
{
    uint32_t value32 = (uint32_t)value;

    if (own->result != NULL) {
        memcpy(own->result, own->size == sizeof(value32) ? (void *)&value32 : (void *)&value, own->size);
    }
}

static void finish(struct uct_ha_flow *flow, uint64_t value, ucs_status_t status)
{
    struct pending_amo own = flow->amo->own[flow->amo_done % UCT_HA_AMO_WINDOW];

    flow->amo_done++;
    flow->flows->outstanding--;
    if (status == UCS_OK) {
        store(&own, value);
    }
    if (own.comp != NULL) {
        uct_ha_completion_invoke(own.comp, status);
    }
}

static void take_reply(struct uct_ha_flow *flow, const struct uct_ha_amo_reply *reply)
{
    if (uct_ha_flow_atomics(flow) == 0 || reply->id != flow->amo_done) {
        ucs_error("ha_rc [HA-506]: answer %u to an atomic that was not asked; dropped", reply->id);
        return;
    }
    if (reply->status != 0) {
        ucs_error("ha_rc [HA-507]: atomic refused by its target: %s; %s", strerror((int)reply->status),
                  reply->status == ENOTSUP ? "its card executes them (UCX_HA_RC_ATOMICS=hw there)"
                                           : "check the address, its alignment and the remote key");
    }
    finish(flow, reply->value, reply->status == 0 ? UCS_OK : UCS_ERR_IO_ERROR);
    uct_ha_tx_complete_flushes(flow);
    if (!flow->is_held && uct_ha_flow_atomics(flow) == 0) {
        uct_ha_attention(flow->road.conn); /* nothing holds it open any more */
    }
}

void uct_ha_amo_take(struct uct_ha_flow *flow, uint32_t imm, const void *data, uint32_t length)
{
    struct uct_ha_amo_request request;
    struct uct_ha_amo_reply   reply;

    if ((imm & UCT_HA_IMM_AMO_REQUEST) && length == sizeof(request)) {
        memcpy(&request, data, sizeof(request));
        take_request(flow, &request);
    } else if ((imm & UCT_HA_IMM_AMO_REPLY) && length == sizeof(reply)) {
        memcpy(&reply, data, sizeof(reply));
        take_reply(flow, &reply);
    } else {
        ucs_error("ha_rc [HA-508]: malformed atomic message of %u bytes dropped", length);
    }
}

/* ---- ends ------------------------------------------------------------------------ */

void uct_ha_amo_let_go(struct uct_ha_flow *flow)
{
    struct pending_amo *own;
    uct_completion_t   *comp;

    for (uint32_t i = 0; i < uct_ha_flow_atomics(flow); i++) {
        own         = &flow->amo->own[(flow->amo_done + i) % UCT_HA_AMO_WINDOW];
        comp        = own->comp;
        own->comp   = NULL;
        own->result = NULL;
        if (comp != NULL) {
            uct_ha_completion_invoke(comp, UCS_ERR_CANCELED);
        }
    }
}

void uct_ha_amo_cancel(struct uct_ha_flow *flow)
{
    while (uct_ha_flow_atomics(flow) > 0) {
        finish(flow, 0, flow->status);
    }
}
