/* SPDX-License-Identifier: BSD-3-Clause */

/* PUT and GET: every kind, size and number of pieces. Each operation of a burst has a place of its own
 * on the other side, with a margin that has to stay blank. */

#include "contract.h"

#include <stdlib.h>
#include <string.h>

#define MARGIN 64

static struct {
    struct memory own, far; /* of tx, and of rx as tx addresses it */
    size_t        stride;   /* of the present burst */
} rma;

static uint8_t *own(unsigned i)
{
    return rma.own.bytes + i * rma.stride;
}

static uint8_t *far(unsigned i)
{
    return rma.far.bytes + i * rma.stride;
}

static uint64_t far_addr(unsigned i)
{
    return (uintptr_t)far(i);
}

static unsigned seed_of(const struct burst *burst, unsigned i)
{
    return burst->seed * BURST_MAX + i;
}

static void begin(struct burst *burst, unsigned i, size_t size)
{
    if (i == 0) {
        rma.stride = (size + MARGIN + 7) / 8 * 8;
        memset(rma.own.bytes, 0, BURST_MAX * rma.stride < rma.own.length ? BURST_MAX * rma.stride : rma.own.length);
        memset(rma.far.bytes, 0, BURST_MAX * rma.stride < rma.far.length ? BURST_MAX * rma.stride : rma.far.length);
    }
    (void)burst;
}

/* ---- PUT ------------------------------------------------------------------------------------- */

static void check_put(struct burst *burst)
{
    if (planted("put") && burst->count > 2 && burst->size > 0) {
        far(2)[burst->size / 2] ^= 0x10;
    }
    for (unsigned i = 0; i < burst->count; i++) {
        (void)same(far(i), seed_of(burst, i), burst->size);
        (void)blank(far(i) + burst->size, MARGIN);
    }
    if (burst->count == 0) {
        (void)blank(far(0), MARGIN); /* refused */
    }
}

static ucs_status_t post_put_short(struct burst *burst, unsigned i)
{
    uint8_t     *bytes = malloc(burst->size + 1);
    ucs_status_t status;

    begin(burst, i, burst->size);
    fill(bytes, seed_of(burst, i), 0, burst->size);
    status = uct_ep_put_short(burst->ep, bytes, (unsigned)burst->size, far_addr(i), rma.far.rkey.rkey);
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

static ucs_status_t post_put_bcopy(struct burst *burst, unsigned i)
{
    struct packing packing = {seed_of(burst, i), burst->size};
    ssize_t        sent;

    begin(burst, i, burst->size);
    sent = uct_ep_put_bcopy(burst->ep, pack, &packing, far_addr(i), rma.far.rkey.rkey);
    if (sent < 0) {
        return (ucs_status_t)sent;
    }
    (void)expect((size_t)sent == burst->size, "put_bcopy says %zd", sent);
    return UCS_OK;
}

static size_t split(uct_iov_t *iov, uint8_t *bytes, size_t size, size_t pieces)
{
    size_t done = 0;

    for (size_t i = 0; i < pieces; i++) {
        size_t length = i == pieces - 1 ? size - done : size / pieces;

        iov[i] = (uct_iov_t){.buffer = bytes + done, .length = length, .memh = rma.own.memh, .count = 1};
        done += length;
    }
    return pieces;
}

static ucs_status_t put_pieces(struct burst *burst, unsigned i, size_t size, size_t pieces)
{
    uct_iov_t iov[64];

    begin(burst, i, size);
    fill(own(i), seed_of(burst, i), 0, size);
    return uct_ep_put_zcopy(burst->ep, iov, split(iov, own(i), size, pieces), far_addr(i), rma.far.rkey.rkey,
                            &burst->done[i].comp);
}

static ucs_status_t post_put_zcopy(struct burst *burst, unsigned i)
{
    return put_pieces(burst, i, burst->size, 1);
}

/* UCX's rc_verbs has a least length for a GET. */
static size_t piece(void)
{
    size_t least = world.tx->attr.cap.get.min_zcopy > world.tx->attr.cap.put.min_zcopy
                       ? world.tx->attr.cap.get.min_zcopy
                       : world.tx->attr.cap.put.min_zcopy;

    return least > 40 ? least : 40;
}

static ucs_status_t post_put_pieces(struct burst *burst, unsigned i)
{
    return put_pieces(burst, i, piece() * burst->size, burst->size);
}

/* Of pieces: the size is their number. */
static void in_bytes(struct burst *burst, void (*check)(struct burst *burst))
{
    burst->size *= piece();
    check(burst);
    burst->size /= piece();
}

static void check_put_pieces(struct burst *burst)
{
    in_bytes(burst, check_put);
}

/* ---- GET --------------------------------------------------------------------------------------- */

static void begin_get(struct burst *burst, unsigned i, size_t size)
{
    begin(burst, i, size);
    fill(far(i), seed_of(burst, i), 0, size);
}

static void check_get(struct burst *burst)
{
    for (unsigned i = 0; i < burst->count; i++) {
        (void)same(own(i), seed_of(burst, i), burst->size);
        (void)blank(own(i) + burst->size, MARGIN);
    }
}

static ucs_status_t post_get_short(struct burst *burst, unsigned i)
{
    begin_get(burst, i, burst->size);
    return uct_ep_get_short(burst->ep, own(i), (unsigned)burst->size, far_addr(i), rma.far.rkey.rkey);
}

static void unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t post_get_bcopy(struct burst *burst, unsigned i)
{
    begin_get(burst, i, burst->size);
    return uct_ep_get_bcopy(burst->ep, unpack, own(i), burst->size, far_addr(i), rma.far.rkey.rkey,
                            &burst->done[i].comp);
}

static ucs_status_t get_pieces(struct burst *burst, unsigned i, size_t size, size_t pieces)
{
    uct_iov_t iov[64];

    begin_get(burst, i, size);
    return uct_ep_get_zcopy(burst->ep, iov, split(iov, own(i), size, pieces), far_addr(i), rma.far.rkey.rkey,
                            &burst->done[i].comp);
}

static ucs_status_t post_get_zcopy(struct burst *burst, unsigned i)
{
    return get_pieces(burst, i, burst->size, 1);
}

static ucs_status_t post_get_pieces(struct burst *burst, unsigned i)
{
    return get_pieces(burst, i, piece() * burst->size, burst->size);
}

static void check_get_pieces(struct burst *burst)
{
    in_bytes(burst, check_get);
}

/* ---- all of them --------------------------------------------------------------------------------- */

/* What is tried when the limit is beyond what this program wants to move. */
static size_t most(size_t limit)
{
    return limit < settings.max_bytes ? limit : settings.max_bytes;
}

static size_t at_least_one(size_t least)
{
    return least > 1 ? least : 1;
}

void check_rma(void)
{
    const uct_iface_attr_t *attr  = &world.tx->attr;
    int                     bound = strncmp(settings.transport, "ha_", 3) == 0;
    size_t                  put = most(attr->cap.put.max_zcopy), get = most(attr->cap.get.max_zcopy);
    const struct operation  operations[] = {
         {"put short", UCT_IFACE_FLAG_PUT_SHORT, 0, 0, most(attr->cap.put.max_short), bound, post_put_short, check_put},
         {"put bcopy", UCT_IFACE_FLAG_PUT_BCOPY, 0, 0, most(attr->cap.put.max_bcopy), 0, post_put_bcopy, check_put},
         {"put zcopy", UCT_IFACE_FLAG_PUT_ZCOPY, 1, attr->cap.put.min_zcopy, put,
          bound && put == attr->cap.put.max_zcopy, post_put_zcopy, check_put},
         {"put zcopy, pieces", UCT_IFACE_FLAG_PUT_ZCOPY, 0, 1, attr->cap.put.max_iov, bound, post_put_pieces,
          check_put_pieces},
         {"get short", UCT_IFACE_FLAG_GET_SHORT, 0, 1, most(attr->cap.get.max_short), bound, post_get_short, check_get},
         {"get bcopy", UCT_IFACE_FLAG_GET_BCOPY, 0, 1, most(attr->cap.get.max_bcopy), bound, post_get_bcopy, check_get},
         {"get zcopy", UCT_IFACE_FLAG_GET_ZCOPY, 0, at_least_one(attr->cap.get.min_zcopy), get,
          bound && get == attr->cap.get.max_zcopy, post_get_zcopy, check_get},
         {"get zcopy, pieces", UCT_IFACE_FLAG_GET_ZCOPY, 0, 1, attr->cap.get.max_iov, bound, post_get_pieces,
          check_get_pieces},
    };

    if (!memory_usable(world.rx)) {
        return;
    }
    rma.own = memory_open(world.tx, NULL, 4 * (settings.max_bytes + 2 * MARGIN) + BURST_MAX * 65600);
    rma.far = memory_open(world.rx, world.tx, 4 * (settings.max_bytes + 2 * MARGIN) + BURST_MAX * 65600);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        check_operation(&operations[i]);
    }
    memory_close(&rma.own, world.tx, NULL);
    memory_close(&rma.far, world.rx, world.tx);
}
