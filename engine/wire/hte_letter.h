/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_LETTER_H_
#define HTE_LETTER_H_

/*
 * Letters: UCP active messages of the engine's own, which move the data where no hardware does. UCX's software RMA is
 * not used there: when a peer dies in the middle of it, the replies to him abort the process that is still alive. An
 * active message that cannot be sent comes back with its error.
 *
 *   initiator (hte_move.h)                               target (hte_guest.h)
 *
 *     DATA token, addresses, bytes ─────────────────────▶ checks, copies, keeps a receipt
 *     FLUSH (the thread has no more, or a quarter of its window is out) ──▶
 *                              ◀───────────────────────── ACK receipts: tokens, each with its bytes, and if refused
 *     ASK token, addresses, length ─────────────────────▶ checks, copies
 *                              ◀───────────────────────── BYTES token, offset, bytes
 *
 * An operation of several ranges is one letter, before whose bytes they are listed (struct hte_letter_part).
 *
 * A token names an operation while it is posted (hte_tokens.h): what comes for one that is over is thrown away. The
 * target answers at once, over the endpoint that UCX made for the initiator's: one of its own to him would meet those
 * of his that are about to break, and UCX 1.13 does not survive all such meetings over tcp.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "base/hte_list.h"

#define HTE_LETTERS_VERSION  3     /* in the descriptor; another one is not understood */
#define HTE_LETTER_ID        0x48  /* of UCP */
#define HTE_LETTER_BYTES     65536 /* of data at most */
#define HTE_LETTER_PARTS_MAX 64    /* ranges */

enum hte_letter_kind { HTE_LETTER_DATA, HTE_LETTER_FLUSH, HTE_LETTER_ACK, HTE_LETTER_ASK, HTE_LETTER_BYTES_ARE };

struct hte_letter_head {
    uint16_t kind;  /* enum hte_letter_kind */
    uint16_t parts; /* DATA, ASK: so many ranges are listed; 0: it is one, at addr */
    uint32_t error; /* BYTES: 0, or the enum hte_error that it is refused with, without its sign */
    uint64_t conn;  /* the initiator's number of the connection */
    uint64_t token;
    uint64_t addr;          /* DATA, ASK: in the target's memory */
    uint64_t origin, epoch; /* DATA: see local/hte_origin.h */
    uint64_t region; /* DATA, ASK: hte_desc_buffer.id; ACK: which guest it was, should it have been forgotten between */
    uint64_t offset; /* ASK, BYTES: in the operation; FLUSH, ACK: sequence number of the latest operation before it */
    uint64_t length; /* ASK; ACK: 1 in the last one for a flush */
};

/* One of the ranges, all of one registration, that the bytes of a letter are for, or are wanted of: in this order. */
struct hte_letter_part {
    uint64_t addr, length;
};

/* One of those that an ACK consists of. */
struct hte_receipt {
    uint64_t token;
    uint32_t length;
    uint32_t error; /* as above; CANCELED: not taken, as a later epoch has been seen */
};

/* Large letters that were sent, kept by their thread for the next ones: what is allocated in such sizes costs as much
 * as moving a request. */
struct hte_letter_shelf {
    struct hte_letter *first;
    unsigned           count;
};

struct hte_letter {
    struct hte_link_ring     link;  /* of those that UCX has, with their sender */
    struct hte_letter_shelf *shelf; /* it goes there; NULL: it is small */
    struct hte_letter       *next;  /* there */
    /* UCX is through with it, and `bytes`; it is let go of afterwards. */
    void (*sent)(struct hte_letter *letter, ucs_status_t status);
    void                  *sender;
    struct hte_letter_head head;
    uint32_t               length;
    char                   bytes[];
};

/* With room for so many bytes; NULL: no memory. The shelf is there until the letter has been sent, or is freed. */
struct hte_letter *hte_letter_create(enum hte_letter_kind kind, uint64_t conn, size_t room,
                                     struct hte_letter_shelf *shelf);
/* One that is not sent. */
void hte_letter_free(struct hte_letter *letter);
void hte_letter_shelf_cleanup(struct hte_letter_shelf *shelf);
/* Bytes that UCX copies into its own buffers, always: what its tcp sends from elsewhere, it completes twice when the
 * connection breaks in the middle (1.13). */
int  hte_letter_type_create(ucp_datatype_t *type);
void hte_letter_type_destroy(ucp_datatype_t type);

/* With the first `length` of its bytes. May call sent() before it returns; flags of ucp_am_send_nbx(). */
void hte_letter_send(struct hte_letter *letter, ucp_ep_h ep, ucp_datatype_t type, size_t length, unsigned flags,
                     struct hte_link_ring *out);
/* UCX's worker is gone, and what it had. */
void hte_letters_free(struct hte_link_ring *out);

#endif
