/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_near_ops.h"

#include "hte_keys.h"
#include "hte_near.h"
#include "hte_op.h"

#define SPANS_SIZE (1u << 20)    /* bytes of several, together */
#define SPAN_SIZE  (64ull << 20) /* of one operation at a time: so long is its owner's unregister held up */

static unsigned parts_of(const struct hte_op *op)
{
    return op->parts > 1 ? op->parts : 1;
}

/* A span for each part of it. */
static void fill(struct hte_near *near, const struct hte_op *op, struct hte_near_span *span)
{
    const struct hte_desc_buffer *buffer = &op->keys->view->descriptor->buffers[op->buffer];
    char                         *mapped = hte_near_mapped(near, buffer);
    struct hte_part               part[HTE_PARTS_MAX];
    unsigned                      i, count = parts_of(op);

    if (count > 1) {
        op->conn->lane->hooks->parts(op, part);
    } else {
        part[0] = (struct hte_part){.local = op->local, .remote = op->remote, .length = op->length};
    }
    for (i = 0; i < count; ++i) {
        span[i] = (struct hte_near_span){.local  = part[i].local,
                                         .remote = part[i].remote,
                                         .mapped = mapped == NULL ? NULL : mapped + (part[i].remote - buffer->addr),
                                         .length = part[i].length,
                                         .region = buffer->id,
                                         .slot   = buffer->slot,
                                         .result = HTE_NEAR_NOT_MOVED};
    }
}

/* What came of all its parts: when one was refused, that. */
static int result_of(const struct hte_op *op, const struct hte_near_span *span)
{
    unsigned i, count = parts_of(op);
    int      result = HTE_OK;

    for (i = 0; i < count && result != HTE_NEAR_NOT_MOVED; ++i) {
        result = result == HTE_OK || span[i].result == HTE_NEAR_NOT_MOVED ? span[i].result : result;
    }
    return result;
}

/* One that is larger than SPAN_SIZE. */
static int move_large(struct hte_near *near, const struct hte_op *op, int *result)
{
    struct hte_near_spans spans = {.count = 1, .is_write = op->state.is_write};
    struct hte_near_span  whole;
    uint64_t              at;
    int                   error = HTE_OK;

    fill(near, op, &whole);
    *result = HTE_OK;
    for (at = 0; at < op->length && error == HTE_OK && *result == HTE_OK; at += SPAN_SIZE) {
        spans.span[0] = whole;
        spans.span[0].local += at;
        spans.span[0].remote += at;
        spans.span[0].mapped += whole.mapped == NULL ? 0 : at;
        spans.span[0].length = op->length - at < SPAN_SIZE ? op->length - at : SPAN_SIZE;

        error   = hte_near_move(near, &spans);
        *result = spans.span[0].result;
    }
    return error;
}

static void settle(struct hte_op *op, int result)
{
    if (result == HTE_OK) {
        hte_op_event(op, HTE_SLICE_MOVED, HTE_OK);
    } else if (result != HTE_NEAR_NOT_MOVED) {
        hte_op_event(op, HTE_SLICE_EXPIRE, result); /* no other try would do better */
    }
}

/* The first of what is posted, as many as go together; how many. */
static unsigned gather(struct hte_conn *conn, struct hte_near_spans *spans, struct hte_op **ops)
{
    struct hte_link_ring *link;
    struct hte_op        *op;
    uint64_t              bytes = 0;
    unsigned              count = 0;

    spans->count = 0;
    for (link = conn->posted.next; link != &conn->posted; link = link->next) {
        op = HTE_OBJECT_OF(link, struct hte_op, link);
        if (spans->count + parts_of(op) > HTE_NEAR_SPANS_MAX ||
            (count > 0 && (op->state.is_write != spans->is_write || bytes + op->length > SPANS_SIZE))) {
            break;
        }
        spans->is_write = op->state.is_write;
        fill(conn->near, op, &spans->span[spans->count]);
        ops[count++] = op;
        bytes += op->length;
        spans->count += parts_of(op);
    }
    return count;
}

static int move_some(struct hte_conn *conn)
{
    struct hte_near_spans spans;
    struct hte_op        *ops[HTE_NEAR_SPANS_MAX];
    struct hte_op        *first = HTE_OBJECT_OF(conn->posted.next, struct hte_op, link);
    unsigned              i, count, at = 0;
    int                   error, result;

    if (first->length > SPAN_SIZE) {
        error = move_large(conn->near, first, &result);
        if (error == HTE_OK) {
            settle(first, result);
        }
        return error;
    }
    count = gather(conn, &spans, ops);
    error = hte_near_move(conn->near, &spans);
    for (i = 0; i < count; ++i) {
        result = result_of(ops[i], &spans.span[at]);
        at += parts_of(ops[i]); /* it may be gone when it is settled */
        settle(ops[i], result);
    }
    return error;
}

void hte_near_note(struct hte_conn *conn)
{
    if (hte_ring_is_empty(&conn->near_link)) {
        hte_ring_append(&conn->lane->nears, &conn->near_link);
    }
}

static unsigned run(struct hte_conn *conn)
{
    unsigned count = 0;
    int      error;

    while (conn->near != NULL && conn->step == HTE_CONN_UP && !hte_ring_is_empty(&conn->posted)) {
        error = move_some(conn);
        ++count;
        if (error != HTE_OK) {
            hte_conn_break(conn, error);
        }
    }
    return count;
}

unsigned hte_near_run_all(struct hte_lane *lane)
{
    struct hte_conn *conn;
    unsigned         count = 0;

    while (!hte_ring_is_empty(&lane->nears)) {
        conn = HTE_OBJECT_OF(lane->nears.next, struct hte_conn, near_link);
        hte_ring_remove(&conn->near_link);
        count += run(conn);
    }
    return count;
}
