/* SPDX-License-Identifier: BSD-3-Clause */

/* Active messages: every kind and size, every header and number of pieces, every id, and what the
 * handler may do with what it gets. */

#include "contract.h"

#include <stdlib.h>
#include <string.h>

#define AM_ID 7

static struct {
    unsigned      received, seed;
    size_t        size;
    struct memory source;
} am;

/* Content says which message it is: lost, doubled, and out of order all show. */
static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    (void)arg;
    (void)flags;
    if (am.received == 3 && planted("byte") && length > 0) {
        *(uint8_t *)data ^= 1;
    }
    if (am.received == 3 && planted("lost")) {
        am.seed++;
        return UCS_OK;
    }
    (void)expect(length == am.size, "message %u has %zu bytes", am.received, length);
    (void)same(data, am.seed + am.received, length);
    am.received += 1 + (am.received == 3 && planted("twice"));
    return UCS_OK;
}

static void expect_messages(struct burst *burst)
{
    struct patience wait = patience("messages to arrive");

    while (am.received < burst->count) {
        progress_wait(&wait);
    }
    progress_ms(1);
    (void)expect(am.received == burst->count, "%u messages were sent, %u came", burst->count, am.received);
    am.received = 0;
}

/* Each burst's messages have content of their own. */
static unsigned begin(struct burst *burst, unsigned i)
{
    if (i == 0) {
        am.seed = burst->seed * BURST_MAX;
        am.size = burst->size;
    }
    return burst->seed * BURST_MAX + i;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static ucs_status_t post_short(struct burst *burst, unsigned i)
{
    unsigned     seed  = begin(burst, i);
    uint8_t     *bytes = malloc(burst->size);
    uint64_t     header;
    ucs_status_t status;

    fill(bytes, seed, 0, burst->size);
    memcpy(&header, bytes, sizeof(header));
    status = uct_ep_am_short(burst->ep, AM_ID, header, bytes + sizeof(header),
                             (unsigned)(burst->size - sizeof(header)));
    free(bytes); /* the transport has its copy */
    return status;
}

/* Pieces of growing length that make up `size`. */
static size_t split(uct_iov_t *iov, uint8_t *bytes, size_t size, size_t pieces, uct_mem_h memh)
{
    size_t done = 0;

    for (size_t i = 0; i < pieces; i++) {
        size_t length = i == pieces - 1 ? size - done : size / pieces;

        iov[i] = (uct_iov_t){.buffer = bytes + done, .length = length, .memh = memh, .stride = 0, .count = 1};
        done += length;
    }
    return pieces;
}

static ucs_status_t post_short_iov(struct burst *burst, unsigned i)
{
    unsigned     seed  = begin(burst, i);
    uint8_t     *bytes = malloc(burst->size + 1);
    uct_iov_t    iov[3];
    ucs_status_t status;

    fill(bytes, seed, 0, burst->size);
    status = uct_ep_am_short_iov(burst->ep, AM_ID, iov, split(iov, bytes, burst->size, 1 + i % 3, UCT_MEM_HANDLE_NULL));
    free(bytes);
    return status;
}

struct packing {
    unsigned seed;
    size_t   size;
};

static size_t pack(void *dest, void *arg)
{
    const struct packing *packing = arg;

    fill(dest, packing->seed, 0, packing->size);
    return packing->size;
}

static ucs_status_t post_bcopy(struct burst *burst, unsigned i)
{
    struct packing packing = {begin(burst, i), burst->size};
    ssize_t        sent    = uct_ep_am_bcopy(burst->ep, AM_ID, pack, &packing, 0);

    if (sent < 0) {
        return (ucs_status_t)sent;
    }
    (void)expect((size_t)sent == burst->size, "am_bcopy says %zd", sent);
    return UCS_OK;
}

/* `header` bytes of it in the header, the rest in `pieces`. Sources stay until the completion. */
static ucs_status_t post_parts(struct burst *burst, unsigned i, size_t header, size_t pieces)
{
    unsigned     seed   = begin(burst, i);
    size_t       stride = am.source.length / BURST_MAX, rest = burst->size - header;
    uint8_t     *bytes = am.source.bytes + i * stride;
    uint8_t     *head  = malloc(header + 1);
    uct_iov_t    iov[64];
    ucs_status_t status;

    fill(head, seed, 0, header);
    fill(bytes, seed, header, rest);
    status = uct_ep_am_zcopy(burst->ep, AM_ID, head, (unsigned)header, iov,
                             split(iov, bytes, rest, pieces, am.source.memh), 0, &burst->done[i].comp);
    free(head);
    return status;
}

static ucs_status_t post_zcopy(struct burst *burst, unsigned i)
{
    size_t header = burst->size < 8 ? 0 : 8;

    return post_parts(burst, i, header, 1);
}

/* The size is that of the header; 16 bytes follow it, if they may. */
static ucs_status_t post_header(struct burst *burst, unsigned i)
{
    size_t       most = world.tx->attr.cap.am.max_zcopy, header = burst->size, rest = 16;
    ucs_status_t status;

    if (header + rest > most) {
        rest = header > most ? 0 : most - header;
    }
    burst->size = header + rest;
    status      = post_parts(burst, i, header, rest > 0);
    burst->size = header;
    return status;
}

/* The size is the number of pieces. */
static ucs_status_t post_pieces(struct burst *burst, unsigned i)
{
    size_t       pieces = burst->size;
    ucs_status_t status;

    burst->size = 8 + 24 * pieces;
    status      = post_parts(burst, i, 8, pieces);
    burst->size = pieces;
    return status;
}

static void check_kinds(void)
{
    const uct_iface_attr_t *attr         = &world.tx->attr;
    int                     bound        = strncmp(settings.transport, "ha_", 3) == 0;
    size_t                  zcopy        = attr->cap.am.max_zcopy < 65536 ? attr->cap.am.max_zcopy : 65536;
    size_t                  bcopy        = attr->cap.am.max_bcopy < 65536 ? attr->cap.am.max_bcopy : 65536;
    size_t                  header       = attr->cap.am.max_hdr < zcopy ? attr->cap.am.max_hdr : zcopy;
    const struct operation  operations[] = {
         {"am short", UCT_IFACE_FLAG_AM_SHORT, 0, 8, attr->cap.am.max_short, bound, post_short, expect_messages},
         {"am short, pieces together", UCT_IFACE_FLAG_AM_SHORT, 0, 0, attr->cap.am.max_short, bound, post_short_iov,
          expect_messages},
         {"am bcopy", UCT_IFACE_FLAG_AM_BCOPY, 0, 0, bcopy, 0, post_bcopy, expect_messages},
         {"am zcopy", UCT_IFACE_FLAG_AM_ZCOPY, 0, attr->cap.am.min_zcopy, zcopy, bound, post_zcopy, expect_messages},
         {"am zcopy, header", UCT_IFACE_FLAG_AM_ZCOPY, 0, 0, header, bound, post_header, expect_messages},
         {"am zcopy, pieces", UCT_IFACE_FLAG_AM_ZCOPY, 0, 0, attr->cap.am.max_iov, bound, post_pieces, expect_messages},
    };

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        check_operation(&operations[i]);
    }
}

/* ---- ids and handlers ------------------------------------------------------------------------- */

#define IDS 32

static struct {
    unsigned called[IDS];
} ids;

static ucs_status_t on_id(void *arg, void *data, size_t length, unsigned flags)
{
    uint8_t *said = data;

    (void)flags;
    (void)expect(length == 1 && *said == (uint8_t)(uintptr_t)arg, "a message of another id came to handler %u",
                 (unsigned)(uintptr_t)arg);
    ids.called[(uintptr_t)arg]++;
    return UCS_OK;
}

static size_t pack_id(void *dest, void *arg)
{
    *(uint8_t *)dest = *(uint8_t *)arg;
    return 1;
}

static void send_id(uint8_t id)
{
    struct patience wait = patience("room for a message");

    while (uct_ep_am_bcopy(world.tx->ep, id, pack_id, &id, 0) == UCS_ERR_NO_RESOURCE) {
        progress_wait(&wait);
    }
}

static void check_ids(void)
{
    struct patience wait = patience("a message of each id");
    unsigned        here = 0;

    report_matter("am ids 0 to 31, each its own handler; 32 is refused", 0);
    for (uintptr_t id = 0; id < IDS; id++) {
        (void)expect_status(uct_iface_set_am_handler(world.rx->iface, (uint8_t)id, on_id, (void *)id, 0), UCS_OK,
                            "setting a handler");
    }
    (void)expect(uct_iface_set_am_handler(world.rx->iface, IDS, on_id, NULL, 0) == UCS_ERR_INVALID_PARAM,
                 "a handler for id 32");
    for (unsigned id = 0; id < IDS; id++) {
        send_id((uint8_t)id);
    }
    while (here < IDS) {
        progress_wait(&wait);
        here = 0;
        for (unsigned id = 0; id < IDS; id++) {
            here += ids.called[id];
        }
    }
    for (unsigned id = 0; id < IDS; id++) {
        (void)expect(ids.called[id] == 1, "handler %u was called %u times", id, ids.called[id]);
    }

    report_matter("am without a handler is dropped, the next one arrives", 0);
    (void)expect_status(uct_iface_set_am_handler(world.rx->iface, 3, NULL, NULL, 0), UCS_OK, "taking a handler away");
    send_id(3);
    send_id(4);
    wait = patience("the message behind one without a handler");
    while (ids.called[4] < 2) {
        progress_wait(&wait);
    }
    (void)expect(ids.called[3] == 1, "a handler that was taken away was called");
}

static struct {
    unsigned received, held;
    void    *desc[8];
    int      offered;
} held;

#define KEPT_BYTES 1000u /* worth to be kept, not copied */

/* With UCT_CB_PARAM_FLAG_DESC the message may be kept, with room in front of it. */
static ucs_status_t on_kept(void *arg, void *data, size_t length, unsigned flags)
{
    (void)arg;
    (void)expect(length == KEPT_BYTES, "%zu bytes came", length);
    (void)same(data, held.received++, length);
    if (!(flags & UCT_CB_PARAM_FLAG_DESC) || held.held == 8) {
        return UCS_OK;
    }
    memset((uint8_t *)data - 40, 0xee, 40); /* rx_headroom */
    held.desc[held.held++] = data;
    return UCS_INPROGRESS;
}

static void check_descriptors(void)
{
    struct patience wait = patience("messages to be kept");

    report_matter("am handler keeps what it is offered (UCT_CB_PARAM_FLAG_DESC)", 0);
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_kept, NULL, 0);
    for (unsigned i = 0; i < 64; i++) {
        struct packing packing = {i, KEPT_BYTES};

        while (uct_ep_am_bcopy(world.tx->ep, AM_ID, pack, &packing, 0) == UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
    }
    while (held.received < 64) {
        progress_wait(&wait);
    }
    for (unsigned i = 0; i < held.held; i++) {
        (void)same(held.desc[i], i, KEPT_BYTES);
        uct_iface_release_desc((uint8_t *)held.desc[i] - 40);
    }
    report_result(held.held > 0 ? "ok" : "never offered");
}

void check_messages(void)
{
    if (memory_usable(world.tx)) {
        am.source = memory_open(world.tx, NULL, BURST_MAX * 65600);
    }
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_message, NULL, 0);
    check_kinds();
    if (has(UCT_IFACE_FLAG_AM_BCOPY)) {
        check_ids();
        check_descriptors();
    }
    if (am.source.bytes != NULL) {
        memory_close(&am.source, world.tx, NULL);
    }
}
