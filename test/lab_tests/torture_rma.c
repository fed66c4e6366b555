/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

/*
 * PUT goes to slots in the peer's memory. When a flush or a fence proves them
 * complete they are announced; the receiver checks the slot, overwrites it with
 * poison and gives it back only many announcements later, when the poison is
 * still untouched: a second execution would show.
 *
 * GET reads the peer's pattern. Its buffer, too, is poisoned and kept for a
 * while: a late response to an operation that was read again would show.
 */

#define LARGE_IN_FLIGHT 96
#define BATCH_SIZE      16
#define GET_QUARANTINE  32

struct announce {
    uint64_t seq;
    uint32_t slot;
    uint32_t size;
};

/* PUTs which one flush or fence proves. */
struct batch {
    struct batch   *next;
    struct torture *torture;
    unsigned        count, target;
    struct announce puts[BATCH_SIZE];
};

struct slot_ring {
    uint32_t ids[SLOT_COUNT];
    unsigned head, count;
};

struct torture_rma {
    char            *slots; /* the peer writes here */
    ucp_mem_h        slots_memh, pattern_memh;
    struct remote    peer_slots, peer_pattern;
    struct slot_ring available[2];  /* sender: of the peer's small, large slots */
    struct slot_ring quarantine[2]; /* receiver */
    struct slot_ring freed;         /* receiver: to tell with the next ack */
    struct batch    *open;          /* collecting */
    struct batch    *proven;        /* flushed, to be announced */
    struct ledger    puts;
    struct {
        struct buffer *buffer;
        uint32_t       size;
    } read[GET_QUARANTINE];
    unsigned read_next;
    int64_t  stale_slot; /* planted: written again later; or -1 */
};

/* ---- slots ------------------------------------------------------------------------ */

static void ring_push(struct slot_ring *ring, uint32_t id)
{
    ring->ids[(ring->head + ring->count++) % SLOT_COUNT] = id;
}

static uint32_t ring_pop(struct slot_ring *ring)
{
    uint32_t id = ring->ids[ring->head];

    ring->head = (ring->head + 1) % SLOT_COUNT;
    ring->count--;
    return id;
}

static int is_large(uint32_t slot)
{
    return slot >= SLOT_SMALL_COUNT;
}

static uint64_t slot_offset(uint32_t slot)
{
    return is_large(slot)
               ? (uint64_t)SLOT_SMALL_COUNT * SLOT_SMALL_SIZE + (uint64_t)(slot - SLOT_SMALL_COUNT) * SLOT_LARGE_SIZE
               : (uint64_t)slot * SLOT_SMALL_SIZE;
}

static uint32_t slot_size(uint32_t slot)
{
    return is_large(slot) ? SLOT_LARGE_SIZE : SLOT_SMALL_SIZE;
}

/* ---- PUT, sending ------------------------------------------------------------------ */

static void announce(struct torture *t, struct batch *batch)
{
    msg_send_control(t, CONTROL_ANNOUNCE, batch->puts, batch->count * sizeof(batch->puts[0]));
    free(batch);
}

static void flushed(void *request, ucs_status_t status, void *user_data)
{
    struct batch   *batch = user_data;
    struct torture *t     = batch->torture;

    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status != UCS_OK) {
        ep_failed(t, status);
        return;
    }
    batch->next    = t->rma->proven;
    t->rma->proven = batch;
    report_progress(t);
}

/* Every other batch is proved by the order of the fence, the others by a flush. */
static void batch_close(struct torture *t)
{
    struct batch       *batch = t->rma->open;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = flushed,
        .user_data    = batch,
    };
    ucs_status_ptr_t request;
    ucs_status_t     status;

    t->rma->open = NULL;
    if (mix(batch->puts[0].seq) & 1) {
        status = ucp_worker_fence(t->run->worker);
        if (status != UCS_OK) {
            ep_failed(t, status);
        }
        announce(t, batch);
        return;
    }
    request = ucp_ep_flush_nbx(t->ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        flushed(NULL, UCS_PTR_STATUS(request), batch);
    }
}

static struct batch *batch_open(struct torture *t, uint64_t seq)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    batch->torture = t;
    batch->target  = 1 + (unsigned)(mix(seq + 1) % BATCH_SIZE);
    return batch;
}

/* Planted: a slot that the receiver must have seen long ago is written again. */
static void put_stale(struct torture *t, uint64_t seq, uint32_t slot)
{
    struct torture_rma *rma   = t->rma;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = op_completed,
    };
    struct op *op;

    if (!planted(t, PLANT_STALE) || is_large(slot) || seq < PLANT_AT) {
        return;
    }
    if (rma->stale_slot < 0) {
        rma->stale_slot = slot;
    } else if (t->total.acked[KIND_PUT] > 2 * PLANT_AT) {
        op              = op_create(t, KIND_COUNT, 0, 8, buffer_get(8, 0));
        param.user_data = op;
        t->opt.plant    = PLANT_NOTHING;
        memcpy(op->buffer->data, "planted", 8);
        op_started(t, op,
                   ucp_put_nbx(t->ep, op->buffer->data, 8,
                               rma->peer_slots.address + slot_offset((uint32_t)rma->stale_slot), rma->peer_slots.rkey,
                               &param));
    }
}

static int put_start(struct torture *t)
{
    struct torture_rma *rma   = t->rma;
    uint64_t            seq   = t->total.sent[KIND_PUT];
    uint32_t            size  = size_of(t, 1, KIND_PUT, seq);
    struct slot_ring   *ring  = &rma->available[size > SLOT_SMALL_SIZE];
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = op_completed,
    };
    struct buffer *buffer;
    struct op     *op;
    uint32_t       slot;

    if (ring->count == 0 || (buffer = buffer_get(size, LARGE_IN_FLIGHT)) == NULL) {
        return 0;
    }
    slot = ring_pop(ring);
    memcpy(buffer->data, pattern_of(t, 1, KIND_PUT, seq), size);
    t->total.sent[KIND_PUT]++;
    if (rma->open == NULL) {
        rma->open = batch_open(t, seq);
    }
    rma->open->puts[rma->open->count++] = (struct announce){seq, slot, size};
    op                                  = op_create(t, KIND_PUT, seq, size, buffer);
    param.user_data                     = op;
    op_started(t, op,
               ucp_put_nbx(t->ep, buffer->data, size, rma->peer_slots.address + slot_offset(slot), rma->peer_slots.rkey,
                           &param));
    if (rma->open->count >= rma->open->target) {
        batch_close(t);
    }
    put_stale(t, seq, slot);
    return 1;
}

void rma_on_freed(struct torture *t, const uint32_t *slots, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (slots[i] < SLOT_COUNT) {
            ring_push(&t->rma->available[is_large(slots[i])], slots[i]);
        }
    }
}

/* ---- PUT, receiving ----------------------------------------------------------------- */

static void check_poison(struct torture *t, uint32_t slot, const char *when)
{
    if (!is_poison(t->rma->slots + slot_offset(slot), slot_size(slot))) {
        complain(t, &t->total.stale_write, "slot %u was written again, found %s", slot, when);
        memset(t->rma->slots + slot_offset(slot), POISON, slot_size(slot));
    }
}

static void slot_release(struct torture *t, uint32_t slot)
{
    struct torture_rma *rma  = t->rma;
    struct slot_ring   *ring = &rma->quarantine[is_large(slot)];
    unsigned            keep = (is_large(slot) ? SLOT_LARGE_COUNT : SLOT_SMALL_COUNT) / 4 * 3;

    memset(rma->slots + slot_offset(slot), POISON, slot_size(slot));
    ring_push(ring, slot);
    if (ring->count > keep) {
        slot = ring_pop(ring);
        check_poison(t, slot, "on return");
        ring_push(&rma->freed, slot);
    }
}

static void put_verify(struct torture *t, const struct announce *put)
{
    const char *data;

    if (put->slot >= SLOT_COUNT || put->size > slot_size(put->slot)) {
        complain(t, &t->total.corrupt, "announcement of slot %u", put->slot);
        return;
    }
    data = t->rma->slots + slot_offset(put->slot);
    ledger_add(t, &t->rma->puts, put->seq, 0, "put");
    if (put->size != size_of(t, 0, KIND_PUT, put->seq) ||
        memcmp(data, pattern_of(t, 0, KIND_PUT, put->seq), put->size) != 0) {
        complain(t, &t->total.corrupt, "put %" PRIu64 ": %u bytes in slot %u%s", put->seq, put->size, put->slot,
                 is_poison(data, put->size) ? ", nothing written" : "");
    } else if (!is_poison(data + put->size, slot_size(put->slot) - put->size)) {
        complain(t, &t->total.stale_write, "put %" PRIu64 ": bytes behind its %u in slot %u", put->seq, put->size,
                 put->slot);
    }
    t->total.received[KIND_PUT]++;
    slot_release(t, put->slot);
}

void rma_on_announce(struct torture *t, const void *data, size_t size)
{
    struct announce put;

    for (size_t at = 0; at + sizeof(put) <= size; at += sizeof(put)) {
        memcpy(&put, (const char *)data + at, sizeof(put));
        put_verify(t, &put);
    }
    report_progress(t);
}

unsigned rma_take_freed(struct torture *t, uint32_t *slots, unsigned room)
{
    unsigned count = 0;

    while (count < room && t->rma->freed.count > 0) {
        slots[count++] = ring_pop(&t->rma->freed);
    }
    return count;
}

/* ---- GET ------------------------------------------------------------------------------ */

static int get_start(struct torture *t)
{
    uint64_t            seq    = t->total.sent[KIND_GET];
    uint32_t            size   = size_of(t, 1, KIND_GET, seq);
    struct buffer      *buffer = buffer_get(size, LARGE_IN_FLIGHT);
    ucp_request_param_t param  = {
         .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
         .cb.send      = op_completed,
    };
    struct op *op;

    if (buffer == NULL) {
        return 0;
    }
    t->total.sent[KIND_GET]++;
    op              = op_create(t, KIND_GET, seq, size, buffer);
    op->offset      = mix(seq * 2 + 1) % REGION_SIZE;
    param.user_data = op;
    op_started(t, op,
               ucp_get_nbx(t->ep, buffer->data, size, t->rma->peer_pattern.address + op->offset,
                           t->rma->peer_pattern.rkey, &param));
    return 1;
}

void rma_get_finish(struct op *op)
{
    struct torture     *t    = op->torture;
    struct torture_rma *rma  = t->rma;
    unsigned            i    = rma->read_next;
    const char         *data = op->buffer->data;

    if (memcmp(data, t->run->pattern[t->is_client] + op->offset, op->size) != 0) {
        complain(t, &t->total.corrupt, "get %" PRIu64 ": contents of %u bytes%s", op->seq, op->size,
                 is_poison(data, op->size) ? ", nothing arrived" : "");
    }
    memset(op->buffer->data, POISON, op->size);
    if (rma->read[i].buffer != NULL) {
        if (!is_poison(rma->read[i].buffer->data, rma->read[i].size)) {
            complain(t, &t->total.stale_write, "buffer of a get of %u bytes, after completion", rma->read[i].size);
        }
        buffer_put(rma->read[i].buffer, rma->read[i].size);
    }
    rma->read[i].buffer = op->buffer;
    rma->read[i].size   = op->size;
    rma->read_next      = (i + 1) % GET_QUARANTINE;
}

/* ---- the rest -------------------------------------------------------------------------- */

int rma_start(struct torture *t, unsigned kind)
{
    return kind == KIND_PUT ? put_start(t) : get_start(t);
}

void rma_progress(struct torture *t)
{
    struct batch *list = t->rma->proven, *next;

    t->rma->proven = NULL;
    for (; list != NULL; list = next) {
        next = list->next;
        announce(t, list);
    }
    if (t->rma->open != NULL && !t->run->running) {
        batch_close(t);
    }
}

void rma_check_final(struct torture *t, const uint64_t *peer_sent)
{
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        check_poison(t, slot, "at the end");
    }
    for (uint64_t n = t->rma->puts.count; n < peer_sent[KIND_PUT]; n++) {
        complain(t, &t->total.lost, "put: %" PRIu64 " of %" PRIu64 " seen", t->rma->puts.count, peer_sent[KIND_PUT]);
    }
}

void rma_create(struct torture *t)
{
    struct torture_rma *rma  = calloc(1, sizeof(*rma));
    size_t              size = slot_offset(SLOT_COUNT);

    if (rma == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    rma->slots = must_alloc(size);
    memset(rma->slots, POISON, size);
    rma->slots_memh   = remote_map(t, rma->slots, size);
    rma->pattern_memh = remote_map(t, t->run->pattern[!t->is_client], PATTERN_SIZE + MAX_SIZE);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        ring_push(&rma->available[is_large(slot)], slot);
    }
    rma->stale_slot = -1;
    t->rma          = rma;
}

size_t rma_pack(struct torture *t, void *blob, size_t room)
{
    size_t used = remote_pack(t, blob, room, t->rma->slots, t->rma->slots_memh);

    return used +
           remote_pack(t, (char *)blob + used, room - used, t->run->pattern[!t->is_client], t->rma->pattern_memh);
}

size_t rma_unpack(struct torture *t, const void *blob, size_t size)
{
    size_t used = remote_unpack(t, blob, size, &t->rma->peer_slots);

    return used + remote_unpack(t, (const char *)blob + used, size - used, &t->rma->peer_pattern);
}

void rma_destroy(struct torture *t)
{
    ucp_rkey_destroy(t->rma->peer_slots.rkey);
    ucp_rkey_destroy(t->rma->peer_pattern.rkey);
    ucp_mem_unmap(t->run->context, t->rma->slots_memh);
    ucp_mem_unmap(t->run->context, t->rma->pattern_memh);
    free(t->rma->slots);
    free(t->rma->puts.seen);
    free(t->rma);
}
