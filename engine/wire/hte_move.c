/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_move.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "hte_op.h"
#include "hte_status.h"
#include "local/hte_access.h"

/* ---- an operation's steps ---- */

static void refuse(struct hte_op *op)
{
    hte_op_event(op, HTE_SLICE_EXPIRE, op->refused);
}

/* What is known of it now makes it go on, or end. */
static void settle(struct hte_op *op)
{
    bool is_answered = op->unanswered == 0;

    if (op->is_posting) {
        return;
    }
    if (op->move_error != HTE_OK) {
        hte_op_fail(op, op->move_error);
    } else if (op->refused != HTE_OK && (is_answered || !op->state.is_write)) {
        refuse(op);
    } else if (!op->state.is_write) {
        if (is_answered) {
            hte_op_event(op, HTE_SLICE_LOCAL, HTE_OK);
        }
    } else {
        if (op->state.step == HTE_SLICE_POSTED) {
            hte_op_event(op, HTE_SLICE_LOCAL, HTE_OK);
        }
        if (is_answered) {
            hte_op_event(op, HTE_SLICE_FLUSHED, HTE_OK);
        }
    }
}

void hte_move_void(const struct hte_op *op)
{
    struct hte_link_ring *link, *letters = &op->conn->letters;
    struct hte_letter    *letter;

    for (link = letters->next; link != letters; link = link->next) {
        letter = HTE_OBJECT_OF(link, struct hte_letter, link);
        if (letter->head.token == op->token) {
            letter->head.region = 0; /* of no registration */
        }
    }
}

/* ---- sending ---- */

static void on_sent(struct hte_letter *letter, ucs_status_t status)
{
    struct hte_conn *conn = letter->sender;
    struct hte_op   *op   = hte_tokens_find(&conn->lane->tokens, letter->head.token);

    --conn->pending;
    conn->copied -= letter->length;
    if (letter->head.token == HTE_TOKEN_NONE && status != UCS_OK) {
        hte_conn_break(conn, hte_error_of_ucs(status));
    }
    if (op == NULL || op->conn != conn) {
        return;
    }
    if (status != UCS_OK) {
        op->move_error = conn->step == HTE_CONN_UP ? hte_error_of_ucs(status) : conn->error;
        settle(op);
    }
}

static bool mail(struct hte_conn *conn, struct hte_letter *letter, size_t length, unsigned flags)
{
    if (letter == NULL) {
        return false;
    }
    letter->sender = conn;
    letter->sent   = on_sent;
    conn->copied += length;
    ++conn->pending;
    hte_letter_send(letter, conn->ep, conn->lane->rails->letter_type, length, flags, &conn->letters);
    return true;
}

void hte_move_flush(struct hte_conn *conn)
{
    struct hte_letter *letter = hte_letter_create(HTE_LETTER_FLUSH, conn->id, 0, &conn->lane->shelf);

    if (letter != NULL) {
        letter->head.token  = HTE_TOKEN_NONE;
        letter->head.offset = conn->seq;
        ++conn->flushes_out;
    }
    if (!mail(conn, letter, 0, UCP_AM_SEND_FLAG_REPLY)) {
        hte_conn_break(conn, HTE_ERR_MEMORY);
    }
}

static struct hte_letter *letter_of(const struct hte_op *op, const struct hte_desc_buffer *buffer,
                                    enum hte_letter_kind kind, uint64_t offset, size_t room)
{
    struct hte_letter *letter = hte_letter_create(kind, op->conn->id, room, &op->conn->lane->shelf);

    if (letter != NULL) {
        letter->head.token  = op->token;
        letter->head.addr   = op->remote + offset;
        letter->head.region = buffer->id;
    }
    return letter;
}

/* Its bytes are `from`, after a list of so many bytes. */
static bool send_data(struct hte_op *op, struct hte_letter *letter, size_t listed, const struct iovec *from,
                      unsigned count, size_t length)
{
    if (letter != NULL && hte_access_gather(letter->bytes + listed, from, count) != HTE_OK) {
        hte_letter_free(letter); /* not mapped any more */
        return false;
    }
    if (letter != NULL) {
        letter->head.origin = op->conn->lane->rails->origin;
        letter->head.epoch  = atomic_load(&op->conn->lane->rails->epoch);
    }
    return mail(op->conn, letter, listed + length, 0);
}

static bool ask(struct hte_op *op, struct hte_letter *letter, size_t listed, uint64_t offset, size_t length)
{
    if (letter != NULL) {
        letter->head.offset = offset;
        letter->head.length = length;
    }
    return mail(op->conn, letter, listed, UCP_AM_SEND_FLAG_REPLY);
}

/* One that has several ranges: who joined them saw to it that they fit into one letter. */
static bool send_parts(struct hte_op *op, const struct hte_desc_buffer *buffer)
{
    enum hte_letter_kind   kind   = op->state.is_write ? HTE_LETTER_DATA : HTE_LETTER_ASK;
    size_t                 listed = op->parts * sizeof(struct hte_letter_part);
    struct hte_letter     *letter = letter_of(op, buffer, kind, 0, listed + (op->state.is_write ? op->length : 0));
    struct hte_letter_part listing;
    struct iovec           local[HTE_PARTS_MAX], remote[HTE_PARTS_MAX];
    uint32_t               i;

    if (letter == NULL) {
        return false;
    }
    letter->head.parts = (uint16_t)op->parts;
    op->conn->lane->hooks->parts(op, local, remote);
    for (i = 0; i < op->parts; ++i) {
        listing = (struct hte_letter_part){.addr = (uint64_t)remote[i].iov_base, .length = remote[i].iov_len};
        memcpy(letter->bytes + i * sizeof(listing), &listing, sizeof(listing));
    }
    return op->state.is_write ? send_data(op, letter, listed, local, op->parts, op->length)
                              : ask(op, letter, listed, 0, op->length);
}

static bool send_range(struct hte_op *op, const struct hte_desc_buffer *buffer, uint64_t offset, size_t length)
{
    struct iovec local = {.iov_base = op->local + offset, .iov_len = length};

    return op->state.is_write
               ? send_data(op, letter_of(op, buffer, HTE_LETTER_DATA, offset, length), 0, &local, 1, length)
               : ask(op, letter_of(op, buffer, HTE_LETTER_ASK, offset, 0), 0, offset, length);
}

static bool send_all(struct hte_op *op, const struct hte_desc_buffer *buffer)
{
    uint64_t offset, length;
    bool     is_sent = true;

    if (op->parts > 1) {
        return send_parts(op, buffer);
    }
    for (offset = 0; is_sent && offset < op->length && op->move_error == HTE_OK; offset += length) {
        length  = op->length - offset < HTE_LETTER_BYTES ? op->length - offset : HTE_LETTER_BYTES;
        is_sent = send_range(op, buffer, offset, length);
    }
    return is_sent;
}

void hte_move_post(struct hte_op *op, struct hte_conn *conn, const struct hte_view *view)
{
    const struct hte_desc_buffer *buffer = &view->descriptor->buffers[op->buffer];
    bool                          is_sent;

    op->token      = hte_tokens_take(&conn->lane->tokens, op);
    op->unanswered = op->length;
    op->move_error = HTE_OK;
    op->refused    = HTE_OK;
    op->is_posting = true;
    is_sent        = op->token != HTE_TOKEN_NONE && send_all(op, buffer);
    op->is_posting = false;
    if (!is_sent) {
        op->move_error = HTE_ERR_MEMORY;
    }
    settle(op);
}

/* ---- receiving ---- */

/* The posted operation that an answer is for. */
static struct hte_op *op_of(struct hte_lane *lane, uint64_t conn, uint64_t token)
{
    struct hte_op *op = hte_tokens_find(&lane->tokens, token);

    return op != NULL && op->conn->id == conn ? op : NULL;
}

/* What a peer may refuse with. */
static int refusal_of(uint32_t error)
{
    return -(int)error == HTE_ERR_PERMISSION ? HTE_ERR_PERMISSION : HTE_ERR_RANGE;
}

static void take_receipt(struct hte_lane *lane, uint64_t conn, const struct hte_receipt *receipt)
{
    struct hte_op *op = op_of(lane, conn, receipt->token);

    if (op == NULL || !op->state.is_write || receipt->length > op->unanswered) {
        return;
    }
    op->unanswered -= receipt->length;
    if (-(int)receipt->error == HTE_ERR_CANCELED) {
        op->move_error = HTE_ERR_ENDPOINT; /* to be sent again */
    } else if (receipt->error != 0) {
        op->refused = refusal_of(receipt->error);
    }
    if (op->unanswered == 0) {
        settle(op);
    }
}

/* UCX may send over several ways at once: then what was posted before a flush may come after it. */
static void look_for_more(struct hte_conn *conn, uint64_t seq)
{
    const struct hte_op *oldest = HTE_OBJECT_OF(conn->posted.next, const struct hte_op, link);

    if (!hte_ring_is_empty(&conn->posted) && oldest->state.is_write && oldest->seq <= seq && oldest->unanswered > 0 &&
        hte_ring_is_empty(&conn->dirty_link)) {
        hte_ring_append(&conn->lane->dirty, &conn->dirty_link);
    }
}

static void take_ack(struct hte_lane *lane, const struct hte_letter_head *head, const char *bytes, size_t length)
{
    struct hte_conn   *conn = hte_conn_of_opening(lane, head->conn);
    struct hte_receipt receipt;
    size_t             at;

    if (conn == NULL) {
        return;
    }
    if (conn->guest != 0 && conn->guest != head->region) {
        hte_conn_break(conn, HTE_ERR_ENDPOINT); /* forgotten meanwhile, and receipts with it */
        return;
    }
    conn->guest = head->region;
    hte_conn_succeeded(conn);
    for (at = 0; at + sizeof(receipt) <= length; at += sizeof(receipt)) {
        memcpy(&receipt, bytes + at, sizeof(receipt));
        take_receipt(lane, head->conn, &receipt);
    }
    if (head->length == 1 && conn->flushes_out > 0) {
        --conn->flushes_out;
        look_for_more(conn, head->offset);
    }
}

/* Of an operation with several ranges they come all at once. */
static int put_bytes(const struct hte_op *op, uint64_t offset, const void *bytes, size_t length)
{
    struct iovec local[HTE_PARTS_MAX], remote[HTE_PARTS_MAX];

    if (op->parts <= 1) {
        return hte_access_copy(op->local + offset, bytes, length);
    }
    op->conn->lane->hooks->parts(op, local, remote);
    return length == op->length ? hte_access_scatter(local, op->parts, bytes) : HTE_ERR_RANGE;
}

static void take_bytes(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length)
{
    struct hte_op *op = op_of(lane, head->conn, head->token);

    if (op == NULL || op->state.is_write) {
        return;
    }
    if (head->error != 0) {
        op->refused = refusal_of(head->error);
    } else if (length > op->unanswered || head->offset > op->length - length) {
        return;
    } else {
        op->unanswered -= length;
        if (put_bytes(op, head->offset, bytes, length) != HTE_OK) {
            op->move_error = HTE_ERR_MEMORY;
        }
    }
    settle(op);
}

void hte_move_receive(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length)
{
    if (head->kind == HTE_LETTER_ACK) {
        take_ack(lane, head, bytes, length);
    } else {
        take_bytes(lane, head, bytes, length);
    }
}
