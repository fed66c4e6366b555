/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_frame.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'H', 'T', 'E', 1};

void hte_frame_header(uint8_t *header, size_t length)
{
    memcpy(header, magic, sizeof(magic));
    header[4] = (uint8_t)(length >> 24);
    header[5] = (uint8_t)(length >> 16);
    header[6] = (uint8_t)(length >> 8);
    header[7] = (uint8_t)length;
}

void hte_frame_init(struct hte_frame_reader *reader, size_t max)
{
    memset(reader, 0, sizeof(*reader));
    reader->max = max;
}

void hte_frame_cleanup(struct hte_frame_reader *reader)
{
    free(reader->body);
    reader->body = NULL;
}

void hte_frame_next(struct hte_frame_reader *reader)
{
    size_t max = reader->max;

    hte_frame_cleanup(reader);
    hte_frame_init(reader, max);
}

/* Refuses at the first byte that is wrong: another protocol does not get to wait for us. */
static int take_header(struct hte_frame_reader *reader, uint8_t byte, struct hte_why *why)
{
    reader->header[reader->have] = byte;
    if (reader->have < sizeof(magic) && byte != magic[reader->have]) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "not the handshake protocol: byte %zu of a frame is 0x%02x",
                           reader->have, byte);
    }
    reader->have++;
    if (reader->have < HTE_FRAME_HEADER_LEN) {
        return 0;
    }
    reader->length = (size_t)reader->header[4] << 24 | (size_t)reader->header[5] << 16 |
                     (size_t)reader->header[6] << 8 | reader->header[7];
    if (reader->length > reader->max) {
        return hte_why_set(why, HTE_ERR_LIMIT, "a frame of %zu bytes, at most %zu are accepted", reader->length,
                           reader->max);
    }
    return 0;
}

/* Room for `need` bytes and a zero byte: doubles, up to the frame's length. */
static int make_room(struct hte_frame_reader *reader, size_t need, struct hte_why *why)
{
    size_t   room = reader->room != 0 ? reader->room : 512;
    uint8_t *body;

    while (room < need) {
        room *= 2;
    }
    room = room < reader->length ? room : reader->length;
    if (reader->body != NULL && room == reader->room) {
        return 0;
    }
    body = realloc(reader->body, room + 1);
    if (body == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a frame of %zu bytes", reader->length);
    }
    reader->body = body;
    reader->room = room;
    return 0;
}

static int take_body(struct hte_frame_reader *reader, const uint8_t *bytes, size_t size, size_t *taken,
                     struct hte_why *why)
{
    size_t have = reader->have - HTE_FRAME_HEADER_LEN;
    size_t part = reader->length - have < size ? reader->length - have : size;
    int    ret  = make_room(reader, have + part, why);

    if (ret != 0) {
        return ret;
    }
    if (part != 0) {
        memcpy(reader->body + have, bytes, part);
    }
    reader->body[have + part] = '\0';
    reader->have += part;
    *taken = part;
    return have + part == reader->length ? 1 : 0;
}

int hte_frame_feed(struct hte_frame_reader *reader, const void *bytes, size_t size, size_t *used, struct hte_why *why)
{
    const uint8_t *in    = bytes;
    size_t         taken = 0;
    int            ret;

    *used = 0;
    while (reader->have < HTE_FRAME_HEADER_LEN) {
        if (*used == size) {
            return 0;
        }
        ret = take_header(reader, in[(*used)++], why);
        if (ret != 0) {
            return ret;
        }
    }
    ret = take_body(reader, in + *used, size - *used, &taken, why);
    *used += taken;
    return ret;
}
