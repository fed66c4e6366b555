/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/amo.h"

#include "ctl/ctl.h"
#include "mem/exposed.h"
#include "uct/iface.h"
#include "data/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pending_amo {
    uct_completion_t *comp;
    void             *result;
    uint8_t           size;
};

struct uct_ha_amo {
    uint32_t           issued, done; /* own requests; replies come in their order */
    struct pending_amo own[UCT_HA_AMO_WINDOW];
    uint32_t           owed_head, owed_tail; /* replies that wait for room */
    struct uct_ha_amo_reply owed[UCT_HA_AMO_WINDOW];
};

static struct uct_ha_amo *amo_of(struct uct_ha_conn *conn)
{
    if (conn->amo == NULL) {
        conn->amo = calloc(1, sizeof(*conn->amo));
    }
    return conn->amo;
}

uint32_t uct_ha_amo_done(const struct uct_ha_conn *conn)
{
    return conn->amo == NULL ? 0 : conn->amo->done;
}

uint32_t uct_ha_amo_outstanding(const struct uct_ha_conn *conn)
{
    return conn->amo == NULL ? 0 : conn->amo->issued - conn->amo->done;
}

int uct_ha_amo_owes(const struct uct_ha_conn *conn)
{
    return conn->amo != NULL && conn->amo->owed_head != conn->amo->owed_tail;
}

static void send_message(struct uct_ha_conn *conn, uint8_t imm, const void *data, size_t length)
{
    struct uct_ha_txop *txop = uct_ha_tx_append(conn, HA_OP_SEND, HA_SEND_IMM, length);

    conn->tx_sent++;
    txop->imm    = imm;
    txop->pieces = 0;
    memcpy(txop->bytes, data, length);
    uct_ha_tx_commit(conn);
}

ucs_status_t uct_ha_amo_send(struct uct_ha_conn *conn, struct uct_ha_amo_request *request,
                             uct_rkey_t rkey, void *result, uct_completion_t *comp)
{
    ucs_status_t        status = uct_ha_tx_check(conn, 1);
    struct uct_ha_amo  *amo;
    struct pending_amo *own;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    amo = amo_of(conn);
    if (ucs_unlikely(amo == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (amo->issued - amo->done == UCT_HA_AMO_WINDOW) {
        return UCS_ERR_NO_RESOURCE;
    }
    own          = &amo->own[amo->issued % UCT_HA_AMO_WINDOW];
    own->comp    = comp;
    own->result  = result;
    own->size    = request->size;
    request->key = uct_ha_rkey(rkey, 0);
    request->id  = amo->issued++;
    conn->iface->outstanding++;
    send_message(conn, UCT_HA_IMM_AMO_REQUEST, request, sizeof(*request));
    return result == NULL ? UCS_OK : UCS_INPROGRESS;
}

/* ---- the owner's side -------------------------------------------------------- */

#define EXECUTE(_type, _request, _old) \
    do { \
        _type *target = (_type *)(uintptr_t)(_request)->address; \
        _type  operand = (_type)(_request)->operand; \
        _type  compare = (_type)(_request)->compare; \
        switch ((_request)->op) { \
        case UCT_ATOMIC_OP_ADD: \
            _old = __atomic_fetch_add(target, operand, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_AND: \
            _old = __atomic_fetch_and(target, operand, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_OR: \
            _old = __atomic_fetch_or(target, operand, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_XOR: \
            _old = __atomic_fetch_xor(target, operand, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_SWAP: \
            _old = __atomic_exchange_n(target, operand, __ATOMIC_SEQ_CST); \
            break; \
        default: /* UCT_ATOMIC_OP_CSWAP: on failure `compare` becomes the old value */ \
            (void)__atomic_compare_exchange_n(target, &compare, operand, 0, __ATOMIC_SEQ_CST, \
                                              __ATOMIC_SEQ_CST); \
            _old = compare; \
            break; \
        } \
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

static int check(struct uct_ha_conn *conn, const struct uct_ha_amo_request *request)
{
    if (conn->iface->caps & HA_CAP_ATOMIC_HW) {
        return ENOTSUP; /* our card executes them: done here as well they would not be atomic */
    }
    if ((request->size != 4 && request->size != 8) || request->op >= UCT_ATOMIC_OP_LAST ||
        request->address % request->size != 0) {
        return EINVAL;
    }
    for (int s = 0; s < conn->iface->slots; s++) { /* slot 1: registered when our first rail was gone */
        if (uct_ha_exposed_covers(conn->iface->rail_no[s], request->key, request->address, request->size)) {
            return 0;
        }
    }
    return EACCES;
}

static int room_to_reply(const struct uct_ha_conn *conn)
{
    return ha_log_room(&conn->log) > 0 && uct_ha_tx_has_credit(conn);
}

void uct_ha_amo_resume(struct uct_ha_conn *conn)
{
    struct uct_ha_amo *amo = conn->amo;

    while (uct_ha_amo_owes(conn) && !conn->dead && room_to_reply(conn)) {
        struct uct_ha_amo_reply reply = amo->owed[amo->owed_head++ % UCT_HA_AMO_WINDOW];

        send_message(conn, UCT_HA_IMM_AMO_REPLY, &reply, sizeof(reply));
    }
}

static void take_request(struct uct_ha_conn *conn, const struct uct_ha_amo_request *request)
{
    struct uct_ha_amo      *amo   = amo_of(conn);
    struct uct_ha_amo_reply reply = { .id = request->id };

    if (amo == NULL || amo->owed_tail - amo->owed_head == UCT_HA_AMO_WINDOW) {
        /* Out of memory, or a peer that asks for more than it may: it gets no
         * answer, and its endpoint ends by the same rule as a silent peer's. */
        ucs_error("ha_rc: atomic request of a peer dropped: %s",
                  amo == NULL ? "out of memory" : "more than it may have under way");
        return;
    }
    reply.status = (uint32_t)check(conn, request);
    if (reply.status == 0) {
        reply.value = execute(request);
    }
    amo->owed[amo->owed_tail++ % UCT_HA_AMO_WINDOW] = reply;
    uct_ha_amo_resume(conn);
    if (uct_ha_amo_owes(conn)) {
        uct_ha_tx_backlog(conn);
    }
}

/* ---- the requester's side ------------------------------------------------------ */

static void store(const struct pending_amo *own, uint64_t value)
{
    uint32_t value32 = (uint32_t)value;

    if (own->result != NULL) {
        memcpy(own->result, own->size == sizeof(value32) ? (void *)&value32 : (void *)&value,
               own->size);
    }
}

static void finish(struct uct_ha_conn *conn, uint64_t value, ucs_status_t status)
{
    struct pending_amo own = conn->amo->own[conn->amo->done % UCT_HA_AMO_WINDOW];

    conn->amo->done++;
    conn->iface->outstanding--;
    if (status == UCS_OK) {
        store(&own, value);
    }
    if (own.comp != NULL) {
        uct_ha_completion_invoke(own.comp, status);
    }
}

static void take_reply(struct uct_ha_conn *conn, const struct uct_ha_amo_reply *reply)
{
    if (uct_ha_amo_outstanding(conn) == 0 || reply->id != conn->amo->done) {
        ucs_error("ha_rc: answer %u to an atomic that was not asked; dropped", reply->id);
        return;
    }
    if (reply->status != 0) {
        ucs_error("ha_rc: atomic refused by its target: %s; %s", strerror((int)reply->status),
                  reply->status == ENOTSUP ? "its card executes them (UCX_HA_RC_ATOMICS=hw there)" :
                  "check the address, its alignment and the remote key");
    }
    finish(conn, reply->value, reply->status == 0 ? UCS_OK : UCS_ERR_IO_ERROR);
    uct_ha_tx_complete_flushes(conn);
    if (conn->ep == NULL && uct_ha_amo_outstanding(conn) == 0) {
        uct_ha_ctl_attention(conn); /* nothing holds it open any more */
    }
}

void uct_ha_amo_take(struct uct_ha_conn *conn, uint32_t imm, const void *data, uint32_t length)
{
    struct uct_ha_amo_request request;
    struct uct_ha_amo_reply   reply;

    if ((imm & UCT_HA_IMM_AMO_REQUEST) && length == sizeof(request)) {
        memcpy(&request, data, sizeof(request));
        take_request(conn, &request);
    } else if ((imm & UCT_HA_IMM_AMO_REPLY) && length == sizeof(reply)) {
        memcpy(&reply, data, sizeof(reply));
        take_reply(conn, &reply);
    } else {
        ucs_error("ha_rc: malformed atomic message of %u bytes dropped", length);
    }
}

/* ---- ends ------------------------------------------------------------------------ */

void uct_ha_amo_forget(struct uct_ha_conn *conn)
{
    for (uint32_t i = 0; conn->amo != NULL && i < UCT_HA_AMO_WINDOW; i++) {
        conn->amo->own[i].comp   = NULL;
        conn->amo->own[i].result = NULL;
    }
}

void uct_ha_amo_cancel(struct uct_ha_conn *conn)
{
    while (uct_ha_amo_outstanding(conn) > 0) {
        finish(conn, 0, conn->status);
    }
}

void uct_ha_amo_cleanup(struct uct_ha_conn *conn)
{
    conn->iface->outstanding -= uct_ha_amo_outstanding(conn);
    free(conn->amo);
}
