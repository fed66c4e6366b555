/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_guest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "local/hte_access.h"

#define FORGET_NS    60000000000ull
#define RECEIPTS_MAX 2048 /* in one letter */

static struct hte_link_ring *bucket_of(struct hte_lane *lane, uint64_t conn)
{
    return &lane->guest_buckets[((conn >> 32) * 31 + conn) % HTE_CONN_BUCKETS];
}

static struct hte_guest *create(struct hte_lane *lane, uint64_t conn)
{
    struct hte_guest *guest = calloc(1, sizeof(*guest));

    if (guest != NULL) {
        guest->lane = lane;
        guest->conn = conn;
        guest->id   = ++lane->last_guest;
        hte_ring_append(bucket_of(lane, conn), &guest->bucket_link);
        hte_ring_append(&lane->guests, &guest->link);
    }
    return guest;
}

static struct hte_guest *get(struct hte_lane *lane, uint64_t conn)
{
    struct hte_link_ring *link, *bucket = bucket_of(lane, conn);
    struct hte_guest     *guest = NULL;

    for (link = bucket->next; link != bucket && guest == NULL; link = link->next) {
        guest = HTE_OBJECT_OF(link, struct hte_guest, bucket_link);
        guest = guest->conn == conn ? guest : NULL;
    }
    guest = guest != NULL ? guest : create(lane, conn);
    if (guest != NULL) {
        guest->seen_at = lane->now;
    }
    return guest;
}

static void destroy(struct hte_guest *guest)
{
    hte_ring_remove(&guest->bucket_link);
    hte_ring_remove(&guest->link);
    if (guest->origin != NULL) {
        hte_origin_put(&guest->lane->rails->origins, guest->origin);
    }
    free(guest->receipts);
    free(guest);
}

/* Of a DATA or ASK: the ranges that its bytes are for, or are wanted of; how many, 0: it makes no sense. *rest: what
 * is behind their list; *length: of that, of DATA; else of what is wanted, at most HTE_LETTER_BYTES. */
static unsigned ranges_of(const struct hte_letter_head *head, const void **rest, size_t *length, struct iovec *ranges)
{
    const char            *bytes  = *rest;
    size_t                 listed = head->parts * sizeof(struct hte_letter_part);
    uint64_t               left   = head->kind == HTE_LETTER_DATA ? *length - listed : head->length;
    struct hte_letter_part part   = {.addr = head->addr, .length = left};
    unsigned               i, count = head->parts == 0 ? 1 : head->parts;

    if (listed > *length || count > HTE_LETTER_PARTS_MAX || left > HTE_LETTER_BYTES) {
        return 0;
    }
    *rest   = bytes + listed;
    *length = left;
    for (i = 0; i < count; ++i) {
        if (head->parts > 0) {
            memcpy(&part, bytes + i * sizeof(part), sizeof(part));
        }
        if (part.length == 0 || part.length > left) {
            return 0;
        }
        left -= part.length;
        ranges[i] = (struct iovec){.iov_base = (void *)part.addr, .iov_len = part.length};
    }
    return left == 0 ? count : 0;
}

/* ---- answers ---- */

/* One that did not arrive is missed by its initiator, whose connection is broken, too. */
static void on_sent(struct hte_letter *letter, ucs_status_t status)
{
    (void)letter;
    (void)status;
}

static void mail(struct hte_lane *lane, struct hte_letter *letter, size_t length, ucp_ep_h reply)
{
    letter->sent = on_sent;
    hte_letter_send(letter, reply, lane->rails->letter_type, length, 0, &lane->answers);
}

static void answer_flush(struct hte_lane *lane, struct hte_guest *guest, uint64_t seq, ucp_ep_h reply)
{
    struct hte_letter *letter;
    uint32_t           done = 0, count;

    do {
        count  = guest->n_receipts - done < RECEIPTS_MAX ? guest->n_receipts - done : RECEIPTS_MAX;
        letter = hte_letter_create(HTE_LETTER_ACK, guest->conn, count * sizeof(guest->receipts[0]), &lane->shelf);
        if (letter == NULL) {
            break; /* the rest with the next one */
        }
        if (count > 0) {
            memcpy(letter->bytes, &guest->receipts[done], count * sizeof(guest->receipts[0]));
        }
        done += count;
        letter->head.region = guest->id;
        letter->head.offset = seq;
        letter->head.length = done == guest->n_receipts;
        mail(lane, letter, count * sizeof(guest->receipts[0]), reply);
    } while (done < guest->n_receipts);
    guest->n_receipts -= done;
    if (guest->n_receipts > 0) {
        memmove(guest->receipts, &guest->receipts[done], guest->n_receipts * sizeof(guest->receipts[0]));
    }
}

static void answer_ask(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length,
                       ucp_ep_h reply)
{
    struct iovec       ranges[HTE_LETTER_PARTS_MAX];
    unsigned           count  = ranges_of(head, &bytes, &length, ranges);
    struct hte_letter *letter = hte_letter_create(HTE_LETTER_BYTES_ARE, head->conn, count == 0 ? 0 : length,
                                                  &lane->shelf);
    int                error  = HTE_ERR_RANGE;

    if (letter == NULL) {
        return; /* as if it had been lost */
    }
    if (count > 0) {
        error = hte_access_read(lane->regions, head->region, ranges, count, letter->bytes);
    }
    letter->head.token  = head->token;
    letter->head.offset = head->offset;
    letter->head.error  = (uint32_t)-error;
    mail(lane, letter, error == HTE_OK ? length : 0, reply);
}

/* ---- receiving ---- */

static void keep_receipt(struct hte_guest *guest, uint64_t token, size_t length, int error)
{
    struct hte_receipt *last = guest->n_receipts == 0 ? NULL : &guest->receipts[guest->n_receipts - 1], *more;
    uint32_t            room = guest->room == 0 ? 64 : 2 * guest->room;

    if (last != NULL && last->token == token && last->error == (uint32_t)-error) {
        last->length += (uint32_t)length;
        return;
    }
    if (guest->n_receipts == guest->room) {
        more = realloc(guest->receipts, room * sizeof(*more));
        if (more == NULL) {
            destroy(guest); /* he notices */
            return;
        }
        guest->receipts = more;
        guest->room     = room;
    }
    guest->receipts[guest->n_receipts++] = (struct hte_receipt){
        .token = token, .length = (uint32_t)length, .error = (uint32_t)-error};
}

static int write_bytes(struct hte_guest *guest, const struct hte_letter_head *head, const void *bytes, size_t *length)
{
    struct hte_lane *lane = guest->lane;
    struct iovec     ranges[HTE_LETTER_PARTS_MAX];
    unsigned         count = ranges_of(head, &bytes, length, ranges);
    int              error;

    if (count == 0) {
        return HTE_ERR_RANGE;
    }
    if (guest->origin == NULL) {
        guest->origin = hte_origin_get(&lane->rails->origins, head->origin);
    }
    error = guest->origin == NULL ? HTE_ERR_CANCELED : hte_origin_enter(guest->origin, head->epoch);
    if (error == HTE_OK) {
        error = hte_access_write(lane->regions, head->region, ranges, count, bytes);
        hte_origin_leave(guest->origin);
    }
    return error;
}

void hte_guests_receive(struct hte_lane *lane, const struct hte_letter_head *head, const void *bytes, size_t length,
                        ucp_ep_h reply)
{
    struct hte_guest *guest;
    int               error;

    if (head->kind == HTE_LETTER_ASK) {
        if (reply != NULL) {
            answer_ask(lane, head, bytes, length, reply);
        }
        return;
    }
    guest = get(lane, head->conn);
    if (guest == NULL) {
        return;
    }
    if (head->kind == HTE_LETTER_DATA) {
        error = write_bytes(guest, head, bytes, &length);
        keep_receipt(guest, head->token, length, error);
    } else if (head->kind == HTE_LETTER_FLUSH && reply != NULL) {
        answer_flush(lane, guest, head->offset, reply);
    }
}

/* ---- the end ---- */

void hte_guests_sweep(struct hte_lane *lane)
{
    struct hte_link_ring *link, *next;
    struct hte_guest     *guest;

    for (link = lane->guests.next; link != &lane->guests; link = next) {
        next  = link->next;
        guest = HTE_OBJECT_OF(link, struct hte_guest, link);
        if (lane->now - guest->seen_at > FORGET_NS) {
            destroy(guest);
        }
    }
}

void hte_guests_destroy(struct hte_lane *lane)
{
    while (!hte_ring_is_empty(&lane->guests)) {
        destroy(HTE_OBJECT_OF(lane->guests.next, struct hte_guest, link));
    }
    hte_letters_free(&lane->answers);
}
