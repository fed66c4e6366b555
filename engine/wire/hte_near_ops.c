/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_near_ops.h"

#include "hte_keys.h"
#include "hte_near.h"
#include "hte_op.h"

#define SPANS_SIZE (1u << 20) /* bytes of several, together */

static unsigned parts_of(const struct hte_op *op)
{
    return op->parts > 1 ? op->parts : 1;
}

/* There is room for its ranges. */
static void add(struct hte_near_load *load, const struct hte_op *op)
{
    const struct hte_desc_buffer *buffer = &op->keys->view->descriptor->buffers[op->buffer];
    unsigned                      first  = 1 + load->n_ranges;

    load->item[load->n_items++] = (struct hte_near_item){.first  = first,
                                                         .count  = parts_of(op),
                                                         .length = op->length,
                                                         .region = buffer->id,
                                                         .slot   = buffer->slot,
                                                         .base   = buffer->addr,
                                                         .mapped = hte_near_mapped(op->conn->near, buffer),
                                                         .result = HTE_NEAR_NOT_MOVED};
    load->n_ranges += parts_of(op);
    if (op->parts > 1) {
        op->conn->lane->hooks->parts(op, &load->local[first], &load->remote[first]);
    } else {
        load->local[first]  = (struct iovec){.iov_base = op->local, .iov_len = op->length};
        load->remote[first] = (struct iovec){.iov_base = (void *)op->remote, .iov_len = op->length};
    }
}

/* One that is larger than HTE_NEAR_SPAN: it has one range, see hte_conn_parts_size(). */
static int move_large(struct hte_near *near, const struct hte_op *op, int *result)
{
    struct hte_near_load load;
    uint64_t             at, length;
    int                  error = HTE_OK;

    *result = HTE_OK;
    for (at = 0; at < op->length && error == HTE_OK && *result == HTE_OK; at += HTE_NEAR_SPAN) {
        length = op->length - at < HTE_NEAR_SPAN ? op->length - at : HTE_NEAR_SPAN;
        hte_near_load_init(&load, op->state.is_write);
        add(&load, op);
        load.item[0].length = length;
        load.local[1]       = (struct iovec){.iov_base = op->local + at, .iov_len = length};
        load.remote[1]      = (struct iovec){.iov_base = (void *)(op->remote + at), .iov_len = length};

        error   = hte_near_move(near, &load);
        *result = load.item[0].result;
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

/* The first of what is posted, as many as go together. */
static void gather(struct hte_conn *conn, struct hte_near_load *load, struct hte_op **ops)
{
    struct hte_link_ring *link;
    struct hte_op        *op;
    uint64_t              bytes = 0;

    for (link = conn->posted.next; link != &conn->posted; link = link->next) {
        op = HTE_OBJECT_OF(link, struct hte_op, link);
        if (load->n_ranges + parts_of(op) > HTE_NEAR_RANGES_MAX ||
            (load->n_items > 0 && (op->state.is_write != load->is_write || bytes + op->length > SPANS_SIZE))) {
            break;
        }
        ops[load->n_items] = op;
        add(load, op);
        bytes += op->length;
    }
}

static int move_some(struct hte_conn *conn)
{
    struct hte_near_load load;
    struct hte_op       *ops[HTE_NEAR_RANGES_MAX];
    struct hte_op       *first = HTE_OBJECT_OF(conn->posted.next, struct hte_op, link);
    unsigned             i;
    int                  error, result;

    if (first->length > HTE_NEAR_SPAN) {
        error = move_large(conn->near, first, &result);
        if (error == HTE_OK) {
            settle(first, result);
        }
        return error;
    }
    hte_near_load_init(&load, first->state.is_write);
    gather(conn, &load, ops);
    error = hte_near_move(conn->near, &load);
    for (i = 0; i < load.n_items; ++i) {
        settle(ops[i], load.item[i].result);
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
