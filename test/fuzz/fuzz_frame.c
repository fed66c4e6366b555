/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The byte stream of the TCP carrier, in pieces as the network cuts it. Input:
 * pairs of a length byte and so many bytes. The product hands over exactly the
 * frames that are in the stream, and gives up exactly where it is not ours.
 */

/* its reader of frames is not public */
#include "ctl/tcp.c" /* NOLINT(bugprone-suspicious-include) */

#include "fuzz.h"

const char     fuzz_name[] = "frame";
const unsigned fuzz_runs   = 20000;

#define STREAM_MAX 65536

static struct {
    uint8_t bytes[STREAM_MAX];
    size_t  size, at;
} stream;

/* The next frame must be the one that is next in the stream. */
static int on_frame(void *arg, const void *data, size_t length)
{
    size_t told;

    (void)arg;
    fuzz_expect(stream.at + LENGTH_LEN + length <= stream.size, "a frame that has not come yet");
    told = (size_t)stream.bytes[stream.at] << 8 | stream.bytes[stream.at + 1];
    fuzz_expect(told == length, "a frame of another length");
    fuzz_expect(memcmp(stream.bytes + stream.at + LENGTH_LEN, data, length) == 0, "other bytes");
    fuzz_expect(length > 0 && length <= HA_PACKET_MTU, "a frame of a length that is none");
    stream.at += LENGTH_LEN + length;
    return 0;
}

/* Is a whole frame waiting, or one that can never be? */
static int something_is_left(void)
{
    size_t length;

    if (stream.size - stream.at < LENGTH_LEN) {
        return 0;
    }
    length = (size_t)stream.bytes[stream.at] << 8 | stream.bytes[stream.at + 1];
    return length == 0 || length > HA_PACKET_MTU || stream.size - stream.at >= LENGTH_LEN + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct incoming  *in  = calloc(1, sizeof(*in));
    struct uct_ha_tcp tcp = {.cb = on_frame};
    int               bad = 0;

    stream.size = stream.at = 0;
    while (size > 1 && !bad) {
        size_t piece = 1 + (size_t)data[0] * 8, room = sizeof(in->frame) - in->have;

        piece = piece > size - 1 ? size - 1 : piece;
        piece = piece > room ? room : piece; /* as recv() is asked for */
        if (stream.size + piece > STREAM_MAX) {
            break;
        }
        fuzz_expect(piece > 0, "the reader has no room left and waits for ever");
        memcpy(in->frame + in->have, data + 1, piece);
        memcpy(stream.bytes + stream.size, data + 1, piece);
        in->have += piece;
        stream.size += piece;
        data += piece + 1;
        size -= piece + 1;
        bad = take_frames(&tcp, in) != 0;
        fuzz_expect(bad == something_is_left(), "a frame is left, or the stream given up in vain");
    }
    free(in);
    return 0;
}
