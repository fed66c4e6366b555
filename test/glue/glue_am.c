/* SPDX-License-Identifier: BSD-3-Clause */

/* Active messages of all three kinds whose stream, number and every byte are checked. */

#include "glue_side.h"

#include <string.h>

#define MSG_MAX 4096

/* One message: its stream, its number, and bytes that follow from both. */
struct message {
    uint32_t stream, number;
    uint8_t  bytes[MSG_MAX];
};

static uint8_t pattern(uint32_t stream, uint32_t number, size_t i)
{
    return (uint8_t)(stream * 31 + number * 7 + i * 13 + (i >> 8));
}

static void fill(struct message *message, uint32_t stream, uint32_t number, size_t length)
{
    message->stream = stream;
    message->number = number;
    for (size_t i = 0; i < length; i++) {
        message->bytes[i] = pattern(stream, number, i);
    }
}

ucs_status_t am_received(void *arg, void *data, size_t length, unsigned flags)
{
    struct side          *side    = arg;
    const struct message *message = data;
    size_t                bytes   = length - offsetof(struct message, bytes);

    (void)flags;
    if (length < offsetof(struct message, bytes) || message->stream >= EPS_ROOM ||
        message->number != side->received[message->stream]) {
        side->wrong++;
        return UCS_OK;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (message->bytes[i] != pattern(message->stream, message->number, i)) {
            side->wrong++;
            break;
        }
    }
    side->received[message->stream]++;
    return UCS_OK;
}

static size_t pack_message(void *dest, void *arg)
{
    const size_t *how = arg; /* stream, number, length */

    fill(dest, (uint32_t)how[0], (uint32_t)how[1], how[2]);
    return offsetof(struct message, bytes) + how[2];
}

static ucs_status_t send_short(struct side *side, int i, unsigned length)
{
    struct message message;
    uint64_t       header;

    length = length > 40 ? 40 : length;
    fill(&message, (uint32_t)i, side->sent[i], length);
    memcpy(&header, &message, sizeof(header));
    return uct_ep_am_short(side->ep[i], AM_ID, header, message.bytes, length);
}

static ucs_status_t send_bcopy(struct side *side, int i, unsigned length)
{
    size_t  how[] = {(size_t)i, side->sent[i], length};
    ssize_t sent  = uct_ep_am_bcopy(side->ep[i], AM_ID, pack_message, how, 0);

    return sent < 0 ? (ucs_status_t)sent : UCS_OK;
}

/* The bytes must stay until the completion: they rotate through the memory. */
static ucs_status_t send_zcopy(struct side *side, int i, unsigned length, uct_completion_t *comp)
{
    struct message message;
    uint8_t       *bytes = side->am_source + ((size_t)i * AM_SLOTS + side->sent[i] % AM_SLOTS) * AM_SLOT;
    uct_iov_t iov = {.buffer = bytes, .length = length > AM_SLOT ? AM_SLOT : length, .memh = side->am_memh, .count = 1};
    ucs_status_t status;

    fill(&message, (uint32_t)i, side->sent[i], iov.length);
    memcpy(bytes, message.bytes, iov.length);
    status = uct_ep_am_zcopy(side->ep[i], AM_ID, &message, 8, &iov, 1, 0, comp);
    return status == UCS_INPROGRESS ? UCS_OK : status;
}

ucs_status_t am_send(int s, int i, enum how how, unsigned length, uct_completion_t *comp)
{
    struct side *side = &world.side[s];
    ucs_status_t status;

    if (how == ZCOPY && side->memory != NULL) {
        status = send_zcopy(side, i, length, comp);
    } else if (how == SHORT) {
        status = send_short(side, i, length);
    } else {
        status = send_bcopy(side, i, length);
    }
    side->sent[i] += status == UCS_OK;
    return status;
}

void am_post(int s, int i, unsigned count)
{
    uint64_t     start = now_ns();
    ucs_status_t status;

    while (count > 0) {
        status = am_send(s, i, (enum how)(count % HOWS), count * 37 % 3000, NULL);
        if (status == UCS_OK) {
            count--;
        } else {
            assert_int_equal(status, UCS_ERR_NO_RESOURCE);
            pump();
            if (now_ns() - start > PATIENCE_S * 1000000000ull) {
                world_print();
                fail_msg("still not: room for %u messages more", count);
            }
        }
    }
}

int am_all_here(void)
{
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < EPS_ROOM; i++) {
            if (world.side[s].sent[i] != world.side[!s].received[i]) {
                return 0;
            }
        }
    }
    return 1;
}

void am_exchange(int i, unsigned count)
{
    while (count > 0) {
        unsigned batch = count < 8 ? count : 8;

        am_post(0, i, batch);
        am_post(1, i, batch);
        count -= batch;
    }
    pump_until(am_all_here());
}
