/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

/* TAG and AM messages, and the control messages that travel among the AM ones:
 * acknowledgements of what was verified, and announcements of PUTs. */

#define TAG_RECEIVES    64
#define LARGE_IN_FLIGHT 96
#define ACK_EVERY       32
#define ACK_SLOTS       200
#define ACK_DELAY       0.002
#define MAX_CONTROLS    128
#define TAG_SEQ_BITS    48 /* of the tag; the rest says which endpoint */
#define TAG_SEQ_MASK    ((1ull << TAG_SEQ_BITS) - 1)

struct tag_receive {
    struct torture *torture;
    char           *data;
    void           *request;
    uint64_t        tag;
    size_t          length;
    int             complete;
};

/* An active message whose data is looked at later. */
struct am_held {
    struct am_held *next;
    struct torture *torture;
    void           *desc;
    size_t          length;
    uint64_t        seq;
    struct buffer  *buffer; /* rendezvous */
};

struct ack {
    uint64_t received[KIND_COUNT];
    uint32_t count;
    uint32_t slots[ACK_SLOTS];
};

struct torture_msg {
    struct ledger      tag, am;
    struct tag_receive receives[TAG_RECEIVES];
    unsigned           head; /* oldest posted receive */
    struct am_held    *held, *to_fetch;
    uint64_t           acked;
    double             acked_at;
    unsigned           controls;
};

static void verify(struct torture *t, unsigned kind, uint64_t seq, const void *data, size_t length)
{
    const char *what = kind == KIND_TAG ? "tag" : "am";
    uint32_t    size = size_of(t, 0, kind, seq);

    if (length != size) {
        complain(t, &t->total.corrupt, "%s %" PRIu64 ": %zu bytes instead of %u", what, seq, length, size);
    } else if (memcmp(data, pattern_of(t, 0, kind, seq), size) != 0) {
        complain(t, &t->total.corrupt, "%s %" PRIu64 ": contents of %u bytes", what, seq, size);
    }
    t->total.received[kind]++;
    series_add(length);
    report_progress(t);
}

/* ---- TAG -------------------------------------------------------------------- */

static void tag_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
    struct tag_receive *receive = user_data;

    if (status == UCS_OK) {
        receive->tag      = info->sender_tag & TAG_SEQ_MASK; /* info is part of the request */
        receive->length   = info->length;
        receive->complete = 1;
    } else if (status != UCS_ERR_CANCELED) {
        ep_failed(receive->torture, status);
    }
    receive->request = NULL;
    ucp_request_free(request);
}

static void tag_post(struct torture *t, struct tag_receive *receive)
{
    /* one way for all: completion by callback, even when it is complete at once */
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv      = tag_received,
        .user_data    = receive,
    };
    ucs_status_ptr_t request;

    receive->complete = 0;
    request           = ucp_tag_recv_nbx(t->run->worker, receive->data, MAX_SIZE, (uint64_t)t->index << TAG_SEQ_BITS,
                                         ~TAG_SEQ_MASK, &param);
    if (UCS_PTR_IS_ERR(request)) {
        ep_failed(t, UCS_PTR_STATUS(request));
    } else if (!receive->complete) {
        receive->request = request;
    }
}

/* Messages match receives in the order in which those were posted, but large
 * ones complete later: only the oldest receive is looked at. */
static void tag_progress(struct torture *t)
{
    struct torture_msg *msg = t->msg;

    for (unsigned n = 0; n < TAG_RECEIVES; n++) {
        struct tag_receive *receive = &msg->receives[msg->head];

        if (!receive->complete) {
            return;
        }
        ledger_add(t, &msg->tag, receive->tag, 1, "tag");
        verify(t, KIND_TAG, receive->tag, receive->data, receive->length);
        memset(receive->data, POISON, receive->length);
        tag_post(t, receive);
        msg->head = (msg->head + 1) % TAG_RECEIVES;
    }
}

/* ---- AM, receiving ------------------------------------------------------------ */

static struct am_held *hold(struct torture *t, struct am_held **list, void *desc, size_t length, uint64_t seq)
{
    struct am_held *held = calloc(1, sizeof(*held));

    if (held == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    held->torture = t;
    held->desc    = desc;
    held->length  = length;
    held->seq     = seq;
    held->next    = *list;
    *list         = held;
    return held;
}

static ucs_status_t am_stream(void *arg, const void *header, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    struct torture *t = arg;
    uint64_t        seq;

    if (header_length != sizeof(seq)) {
        complain(t, &t->total.corrupt, "am header of %zu bytes", header_length);
        return UCS_OK;
    }
    memcpy(&seq, header, sizeof(seq));
    ledger_add(t, &t->msg->am, seq, 1, "am");
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        hold(t, &t->msg->to_fetch, data, length, seq);
        return UCS_INPROGRESS;
    }
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) && seq % 8 == 0) {
        hold(t, &t->msg->held, data, length, seq);
        return UCS_INPROGRESS;
    }
    verify(t, KIND_AM, seq, data, length);
    return UCS_OK;
}

static void am_fetched(void *request, ucs_status_t status, size_t length, void *user_data)
{
    struct am_held *held = user_data;
    struct torture *t    = held->torture;

    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        verify(t, KIND_AM, held->seq, held->buffer->data, length);
    } else {
        ep_failed(t, status);
    }
    buffer_put(held->buffer, (uint32_t)held->length);
    free(held);
}

static void am_fetch(struct torture *t, struct am_held *held)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = am_fetched,
        .user_data    = held,
    };
    ucs_status_ptr_t request;

    held->buffer = buffer_get((uint32_t)held->length, 0);
    request      = ucp_am_recv_data_nbx(t->run->worker, held->desc, held->buffer->data, held->length, &param);
    if (UCS_PTR_IS_ERR(request)) {
        ep_failed(t, UCS_PTR_STATUS(request));
    } else if (request == NULL) {
        am_fetched(NULL, UCS_OK, held->length, held);
    }
}

static void am_progress(struct torture *t)
{
    struct am_held *list = t->msg->to_fetch, *next;

    t->msg->to_fetch = NULL;
    for (; list != NULL; list = next) {
        next = list->next;
        am_fetch(t, list);
    }
    list         = t->msg->held;
    t->msg->held = NULL;
    for (; list != NULL; list = next) {
        next = list->next;
        verify(t, KIND_AM, list->seq, list->desc, list->length);
        ucp_am_data_release(t->run->worker, list->desc);
        free(list);
    }
}

/* ---- control messages ----------------------------------------------------------- */

static ucs_status_t am_ack(void *arg, const void *header, size_t header_length, void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    struct torture *t = arg;
    struct ack      ack;

    (void)header, (void)header_length, (void)param;
    if (length > sizeof(ack) || length < offsetof(struct ack, slots)) {
        complain(t, &t->total.corrupt, "acknowledgement of %zu bytes", length);
        return UCS_OK;
    }
    memcpy(&ack, data, length);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        if (ack.received[kind] < t->total.acked[kind] || ack.received[kind] > t->total.sent[kind]) {
            complain(t, &t->total.corrupt, "acknowledged %" PRIu64 " of %" PRIu64, ack.received[kind],
                     t->total.sent[kind]);
        }
        t->total.acked[kind] = ack.received[kind];
    }
    rma_on_freed(t, ack.slots, ack.count);
    report_progress(t);
    return UCS_OK;
}

static ucs_status_t am_announce(void *arg, const void *header, size_t header_length, void *data, size_t length,
                                const ucp_am_recv_param_t *param)
{
    (void)header, (void)header_length, (void)param;
    rma_on_announce(arg, data, length);
    return UCS_OK;
}

static void control_done(void *request, ucs_status_t status, void *user_data)
{
    struct op      *op = user_data;
    struct torture *t  = op->torture;

    t->msg->controls--;
    op_completed(request, status, op);
}

/* Handlers belong to the worker: an endpoint's messages have numbers of their own. */
static unsigned am_id(const struct torture *t, unsigned id)
{
    return t->index * CONTROL_COUNT + id;
}

void msg_send_control(struct torture *t, unsigned id, const void *data, size_t size)
{
    struct buffer      *buffer = buffer_get((uint32_t)size, 0);
    struct op          *op     = op_create(t, KIND_COUNT, 0, (uint32_t)size, buffer);
    ucp_request_param_t param  = {
         .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
         .cb.send      = control_done,
         .user_data    = op,
         .flags        = UCP_AM_SEND_FLAG_EAGER,
    };
    ucs_status_ptr_t request;

    memcpy(buffer->data, data, size);
    t->msg->controls++;
    request = ucp_am_send_nbx(t->ep, am_id(t, id), NULL, 0, buffer->data, size, &param);
    if (UCS_PTR_IS_PTR(request)) {
        return;
    }
    control_done(NULL, UCS_PTR_STATUS(request), op);
}

static void acknowledge(struct torture *t)
{
    struct torture_msg *msg = t->msg;
    struct ack          ack;
    uint64_t            sum = 0;
    double              now;

    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        sum += t->total.received[kind];
    }
    if (sum == msg->acked || msg->controls >= MAX_CONTROLS) {
        return;
    }
    now = now_seconds();
    if (sum - msg->acked < ACK_EVERY && now - msg->acked_at < ACK_DELAY) {
        return;
    }
    memcpy(ack.received, t->total.received, sizeof(ack.received));
    ack.count     = rma_take_freed(t, ack.slots, ACK_SLOTS);
    msg->acked    = sum;
    msg->acked_at = now;
    msg_send_control(t, CONTROL_ACK, &ack, offsetof(struct ack, slots) + ack.count * sizeof(ack.slots[0]));
}

/* ---- the rest --------------------------------------------------------------------- */

static void send_one(struct torture *t, struct op *op, unsigned kind, uint64_t seq)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = op_completed,
        .user_data    = op,
    };
    uint64_t tag  = (uint64_t)t->index << TAG_SEQ_BITS | seq;
    char    *data = op->buffer->data;

    op->seq = seq;
    if (kind == KIND_AM) {
        op_started(t, op,
                   ucp_am_send_nbx(t->ep, am_id(t, CONTROL_STREAM), &op->seq, sizeof(op->seq), data, op->size, &param));
    } else if (seq % 16 == 5) {
        op_started(t, op, ucp_tag_send_sync_nbx(t->ep, data, op->size, tag, &param));
    } else {
        op_started(t, op, ucp_tag_send_nbx(t->ep, data, op->size, tag, &param));
    }
}

/* Planted faults of a message: 1 when it is not to be sent. */
static int spoil(struct torture *t, struct op *op, unsigned kind, uint64_t seq)
{
    struct op *twice;

    if (kind != KIND_TAG || seq < PLANT_AT || op->size == 0 || op->size > 64) {
        return 0;
    }
    if (planted(t, PLANT_LOST)) {
        t->opt.plant = PLANT_NOTHING;
        op_finish(op, UCS_OK);
        return 1;
    }
    if (planted(t, PLANT_DUPLICATE)) {
        twice = op_create(t, KIND_COUNT, seq, op->size, buffer_get(op->size, 0));
        memcpy(twice->buffer->data, op->buffer->data, op->size);
        t->opt.plant = PLANT_NOTHING;
        send_one(t, twice, KIND_TAG, seq);
    } else if (planted(t, PLANT_CORRUPT)) {
        t->opt.plant = PLANT_NOTHING;
        op->buffer->data[op->size - 1] ^= 1;
    } else if (planted(t, PLANT_ERROR)) {
        t->opt.plant = PLANT_NOTHING;
        t->total.errors++;
    }
    return 0;
}

/* Planted: two neighbours change places. */
static uint64_t order(const struct torture *t, unsigned kind, uint64_t seq)
{
    return kind == KIND_TAG && planted(t, PLANT_REORDERED) && (seq | 1) == (PLANT_AT | 1) ? seq ^ 1 : seq;
}

int msg_start(struct torture *t, unsigned kind)
{
    uint64_t       seq    = order(t, kind, t->total.sent[kind]);
    uint32_t       size   = size_of(t, 1, kind, seq);
    struct buffer *buffer = buffer_get(size, LARGE_IN_FLIGHT);
    struct op     *op;

    if (buffer == NULL) {
        return 0;
    }
    memcpy(buffer->data, pattern_of(t, 1, kind, seq), size);
    t->total.sent[kind]++;
    op = op_create(t, kind, seq, size, buffer);
    if (t->opt.plant == PLANT_NOTHING || !spoil(t, op, kind, seq)) {
        send_one(t, op, kind, seq);
    }
    return 1;
}

void msg_progress(struct torture *t)
{
    tag_progress(t);
    am_progress(t);
    acknowledge(t);
}

static void set_handler(struct torture *t, unsigned id, ucp_am_recv_callback_t handler, uint32_t flags)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id    = am_id(t, id),
        .cb    = handler,
        .arg   = t,
        .flags = flags,
    };

    if (ucp_worker_set_am_recv_handler(t->run->worker, &param) != UCS_OK) {
        fprintf(stderr, "ha_torture: cannot set the handler of active message %u\n", id);
        exit(EXIT_USAGE);
    }
}

void msg_create(struct torture *t)
{
    t->msg = calloc(1, sizeof(*t->msg));
    if (t->msg == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    set_handler(t, CONTROL_STREAM, am_stream, 0);
    set_handler(t, CONTROL_ACK, am_ack, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(t, CONTROL_ANNOUNCE, am_announce, UCP_AM_FLAG_WHOLE_MSG);
    for (unsigned i = 0; i < TAG_RECEIVES; i++) {
        t->msg->receives[i].torture = t;
        t->msg->receives[i].data    = must_alloc(MAX_SIZE);
        tag_post(t, &t->msg->receives[i]);
    }
}

void msg_check_lost(struct torture *t, const uint64_t *peer_sent)
{
    const struct {
        const char    *name;
        struct ledger *ledger;
    } streams[] = {{"tag", &t->msg->tag}, {"am", &t->msg->am}};

    for (unsigned kind = KIND_TAG; kind <= KIND_AM; kind++) {
        struct ledger *ledger = streams[kind].ledger;

        for (uint64_t seq = 0; seq < peer_sent[kind]; seq++) {
            if (seq >= ledger->capacity || !(ledger->seen[seq / 8] & (1u << (seq % 8)))) {
                complain(t, &t->total.lost, "%s %" PRIu64, streams[kind].name, seq);
            }
        }
    }
}

/* Before the worker is destroyed. */
void msg_cancel(struct torture *t)
{
    for (unsigned i = 0; i < TAG_RECEIVES; i++) {
        if (t->msg->receives[i].request != NULL) {
            ucp_request_cancel(t->run->worker, t->msg->receives[i].request);
        }
    }
    while (ucp_worker_progress(t->run->worker) != 0) {
    }
}

void msg_destroy(struct torture *t)
{
    for (unsigned i = 0; i < TAG_RECEIVES; i++) {
        free(t->msg->receives[i].data);
    }
    free(t->msg->tag.seen);
    free(t->msg->am.seen);
    free(t->msg);
}
