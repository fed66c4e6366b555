/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FRAME_H_
#define HTE_FRAME_H_

/*
 * Frames of the handshake socket:
 *
 *   'H' 'T' 'E' 1 | length, 4 bytes, big endian | `length` bytes of body
 *
 * The reader takes bytes as they come, in pieces of any size. Memory grows
 * with the bytes that really arrived, never with what a header claims.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/hte_why.h"

#define HTE_FRAME_HEADER_LEN 8

struct hte_frame_reader {
    size_t   max; /* bytes of body that are accepted; may be changed between frames */
    uint8_t  header[HTE_FRAME_HEADER_LEN];
    size_t   have;   /* bytes of header and body so far */
    size_t   length; /* of the body, once the header is complete */
    size_t   room;
    uint8_t *body; /* `length` bytes and a zero byte, once the frame is complete */
};

void hte_frame_init(struct hte_frame_reader *reader, size_t max);
void hte_frame_cleanup(struct hte_frame_reader *reader);

/* Takes up to `size` bytes, *used of them, and stops at the end of a frame.
 * 1 = the frame is complete: use reader->body, then hte_frame_next(). 0 = more is needed. HTE_ERR_MALFORMED_JSON for
 * another protocol, HTE_ERR_LIMIT, HTE_ERR_MEMORY: the stream is lost, nothing more can be read of it. */
int hte_frame_feed(struct hte_frame_reader *reader, const void *bytes, size_t size, size_t *used, struct hte_why *why);
/* Forgets the complete frame, and its memory. */
void hte_frame_next(struct hte_frame_reader *reader);

/* HTE_FRAME_HEADER_LEN bytes for a body of `length`. */
void hte_frame_header(uint8_t *header, size_t length);

#endif
