/* SPDX-License-Identifier: BSD-3-Clause */
#include "glue_rma.h"

#include <string.h>

static struct {
    unsigned next; /* number of the next PUT */
    unsigned length[PLACES];
    unsigned written[PLACES]; /* under the fake's lock */
} puts_of[2];

uint8_t *rma_place(int s, unsigned place)
{
    return world.side[s].memory + (size_t)place * PLACE_LEN;
}

uint8_t *rma_source(int s, unsigned place)
{
    return rma_place(s, PLACES + place);
}

static uint8_t pattern(int s, unsigned number, unsigned i)
{
    return (uint8_t)(1 + s * 101 + (int)(number * 17 + i * 5 + (i >> 7)));
}

static void on_write(void *arg, uint64_t addr, uint64_t length)
{
    (void)arg;
    (void)length;
    for (int s = 0; s < 2; s++) {
        uint64_t base = (uintptr_t)world.side[!s].memory;

        if (addr >= base && addr < base + PLACES * PLACE_LEN) {
            puts_of[s].written[(addr - base) / PLACE_LEN]++;
        }
    }
}

void rma_open(void)
{
    memory_open(MEMORY);
    memset(puts_of, 0, sizeof(puts_of));
    fake_on_write(on_write, NULL);
}

struct packing {
    int      s;
    unsigned number, length;
};

static size_t pack(void *dest, void *arg)
{
    const struct packing *packing = arg;
    uint8_t              *to      = dest;

    for (unsigned i = 0; i < packing->length; i++) {
        to[i] = pattern(packing->s, packing->number, i);
    }
    return packing->length;
}

ucs_status_t rma_put_one(int s, int i, enum how how, uct_completion_t *comp)
{
    struct side   *side    = &world.side[s];
    unsigned       number  = puts_of[s].next;
    uint64_t       to      = (uintptr_t)rma_place(!s, number);
    uint8_t       *source  = rma_source(s, number);
    struct packing packing = {s, number, how == SHORT ? 1 + number % 48 : 1 + number * 97 % PLACE_LEN};
    uct_iov_t      iov     = {.buffer = source, .length = packing.length, .memh = side->memh, .count = 1};
    ucs_status_t   status;
    ssize_t        sent;

    assert_true(number < PLACES);
    pack(source, &packing);
    if (how == SHORT) {
        status = uct_ep_put_short(side->ep[i], source, packing.length, to, side->rkey.rkey);
    } else if (how == BCOPY) {
        sent   = uct_ep_put_bcopy(side->ep[i], pack, &packing, to, side->rkey.rkey);
        status = sent < 0 ? (ucs_status_t)sent : UCS_OK;
    } else {
        status = uct_ep_put_zcopy(side->ep[i], &iov, 1, to, side->rkey.rkey, comp);
        status = status == UCS_INPROGRESS ? UCS_OK : status;
    }
    if (status == UCS_OK) {
        puts_of[s].length[number] = packing.length;
        puts_of[s].next++;
    }
    return status;
}

void rma_put(int s, int i, unsigned count)
{
    uint64_t     start = now_ns();
    ucs_status_t status;

    while (count > 0) {
        status = rma_put_one(s, i, (enum how)(count % HOWS), NULL);
        if (status == UCS_OK) {
            count--;
            continue;
        }
        assert_int_equal(status, UCS_ERR_NO_RESOURCE);
        pump();
        if (now_ns() - start > PATIENCE_S * 1000000000ull) {
            world_print();
            fail_msg("still not: room for %u PUTs more", count);
        }
    }
}

unsigned rma_executions(int s, unsigned n)
{
    return puts_of[s].written[n];
}

void rma_forget(int s)
{
    memset(rma_place(!s, 0), 0, (size_t)PLACES * PLACE_LEN);
    memset(&puts_of[s], 0, sizeof(puts_of[s]));
}

void rma_check(int s)
{
    for (unsigned n = 0; n < puts_of[s].next; n++) {
        if (puts_of[s].written[n] != 1) {
            fail_msg("PUT %u of side %d was executed %u times", n, s, puts_of[s].written[n]);
        }
        for (unsigned i = 0; i < puts_of[s].length[n]; i++) {
            if (rma_place(!s, n)[i] != pattern(s, n, i)) {
                fail_msg("PUT %u of side %d differs at byte %u of %u", n, s, i, puts_of[s].length[n]);
            }
        }
    }
    rma_forget(s);
}

static void unpack(void *dest, const void *data, size_t length)
{
    memcpy(dest, data, length);
}

void rma_get_check(int s, int i, enum how how, unsigned place)
{
    struct side   *side   = &world.side[s];
    uint8_t       *to     = rma_source(s, PLACES - 1);
    uint64_t       from   = (uintptr_t)rma_place(!s, place);
    unsigned       length = puts_of[s].length[place];
    uct_iov_t      iov    = {.buffer = to, .length = length, .memh = side->memh, .count = 1};
    struct counted done;
    ucs_status_t   status;

    memset(to, 0, PLACE_LEN);
    if (how == ZCOPY) {
        status = uct_ep_get_zcopy(side->ep[i], &iov, 1, from, side->rkey.rkey, count_completion(&done));
    } else {
        status = uct_ep_get_bcopy(side->ep[i], unpack, to, length, from, side->rkey.rkey, count_completion(&done));
    }
    assert_int_equal(status, UCS_INPROGRESS);
    pump_until(done.called == 1);
    assert_int_equal(done.status, UCS_OK);
    for (unsigned b = 0; b < length; b++) {
        assert_int_equal(to[b], pattern(s, place, b));
    }
}

void rma_get_loose(int s, int i, unsigned count)
{
    struct side *side = &world.side[s];
    uct_iov_t    iov  = {.buffer = rma_source(s, PLACES - 2), .length = PLACE_LEN, .memh = side->memh, .count = 1};

    while (count > 0) {
        if (uct_ep_get_zcopy(side->ep[i], &iov, 1, (uintptr_t)rma_source(!s, PLACES - 3), side->rkey.rkey, NULL) ==
            UCS_INPROGRESS) {
            count--;
        } else {
            pump();
        }
    }
}

void redundant_open(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
}

void redundant_check(void)
{
    flush_all();
    pump_until(am_all_here());
    rma_check(0);
    rma_check(1);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}
