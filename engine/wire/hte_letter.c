/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_letter.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"

#define LARGE     16384                                                                      /* bytes, and more */
#define ROOM      (HTE_LETTER_BYTES + HTE_LETTER_PARTS_MAX * sizeof(struct hte_letter_part)) /* of all large ones */
#define SHELF_MAX 16

static struct hte_letter *take_large(struct hte_letter_shelf *shelf)
{
    struct hte_letter *letter = shelf->first;

    if (letter == NULL) {
        return malloc(sizeof(*letter) + ROOM);
    }
    shelf->first = letter->next;
    --shelf->count;
    return letter;
}

struct hte_letter *hte_letter_create(enum hte_letter_kind kind, uint64_t conn, size_t room,
                                     struct hte_letter_shelf *shelf)
{
    bool               is_large = room >= LARGE && room <= ROOM;
    struct hte_letter *letter   = is_large ? take_large(shelf) : malloc(sizeof(*letter) + room);

    if (letter != NULL) {
        *letter = (struct hte_letter){.shelf = is_large ? shelf : NULL, .head = {.kind = (uint16_t)kind, .conn = conn}};
        hte_ring_init(&letter->link);
    }
    return letter;
}

void hte_letter_free(struct hte_letter *letter)
{
    struct hte_letter_shelf *shelf = letter->shelf;

    if (shelf == NULL || shelf->count == SHELF_MAX) {
        free(letter);
        return;
    }
    letter->next = shelf->first;
    shelf->first = letter;
    ++shelf->count;
}

void hte_letter_shelf_cleanup(struct hte_letter_shelf *shelf)
{
    struct hte_letter *letter;

    while ((letter = shelf->first) != NULL) {
        shelf->first = letter->next;
        free(letter);
    }
    shelf->count = 0;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct hte_letter *letter = arg;

    if (request != NULL) {
        ucp_request_free(request);
    }
    hte_ring_remove(&letter->link);
    letter->sent(letter, status);
    hte_letter_free(letter);
}

/* ---- the type ---- */

static void *start_pack(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)buffer;
}

static size_t packed_size(void *state)
{
    const struct hte_letter *letter = state;

    return letter->length;
}

static size_t pack(void *state, size_t offset, void *to, size_t room)
{
    const struct hte_letter *letter = state;
    size_t                   length = letter->length - offset < room ? letter->length - offset : room;

    memcpy(to, letter->bytes + offset, length);
    return length;
}

static void *start_unpack(void *context, void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return buffer;
}

static ucs_status_t unpack(void *state, size_t offset, const void *from, size_t length)
{
    (void)state;
    (void)offset;
    (void)from;
    (void)length;
    return UCS_ERR_UNSUPPORTED; /* receivers get plain bytes */
}

static void finish(void *state)
{
    (void)state;
}

int hte_letter_type_create(ucp_datatype_t *type)
{
    static const ucp_generic_dt_ops_t ops = {.start_pack   = start_pack,
                                             .start_unpack = start_unpack,
                                             .packed_size  = packed_size,
                                             .pack         = pack,
                                             .unpack       = unpack,
                                             .finish       = finish};

    return ucp_dt_create_generic(&ops, NULL, type) == UCS_OK ? HTE_OK
                                                             : hte_fail(HTE_ERR_MEMORY, "no memory for a UCX datatype");
}

void hte_letter_type_destroy(ucp_datatype_t type)
{
    ucp_dt_destroy(type);
}

/* ---- sending ---- */

void hte_letter_send(struct hte_letter *letter, ucp_ep_h ep, ucp_datatype_t type, size_t length, unsigned flags,
                     struct hte_link_ring *out)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                        (length > 0 ? UCP_OP_ATTR_FIELD_DATATYPE : 0),
        .datatype  = type,
        .flags     = UCP_AM_SEND_FLAG_EAGER | flags,
        .cb.send   = on_sent,
        .user_data = letter,
    };
    ucs_status_ptr_t request;

    letter->length = (uint32_t)length;
    hte_ring_append(out, &letter->link);
    request = ucp_am_send_nbx(ep, HTE_LETTER_ID, &letter->head, sizeof(letter->head), length > 0 ? letter : NULL,
                              length > 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        on_sent(NULL, UCS_PTR_STATUS(request), letter);
    }
}

void hte_letters_free(struct hte_link_ring *out)
{
    struct hte_letter *letter;

    while (!hte_ring_is_empty(out)) {
        letter = HTE_OBJECT_OF(out->next, struct hte_letter, link);
        hte_ring_remove(&letter->link);
        hte_letter_free(letter);
    }
}
