/* SPDX-License-Identifier: BSD-3-Clause */

/* Flush, fence, cancel, progress switched off and on. */

#include "contract.h"
#include "contract_cut.h"

#include <string.h>

#define AM_ID 9
#define BLOCK 4000

static struct {
    unsigned      received;
    struct memory own, far;
} flow;

static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    uint32_t number = 0;

    (void)arg;
    (void)flags;
    memcpy(&number, data, length < sizeof(number) ? length : sizeof(number));
    (void)expect(length == sizeof(number) && number == flow.received, "message %u came in place of %u", number,
                 flow.received);
    flow.received++;
    return UCS_OK;
}

static size_t pack_number(void *dest, void *arg)
{
    memcpy(dest, arg, sizeof(uint32_t));
    return sizeof(uint32_t);
}

static ucs_status_t send_number(uct_ep_h ep, uint32_t number)
{
    ssize_t sent = uct_ep_am_bcopy(ep, AM_ID, pack_number, &number, 0);

    return sent < 0 ? (ucs_status_t)sent : UCS_OK;
}

/* The strike comes in the middle. */
static void send_some(uct_ep_h ep, uint32_t count, int cut)
{
    struct patience wait = patience("room for a message");

    flow.received = 0;
    if (cut) {
        cut_arm();
    }
    for (uint32_t i = 0; i < count; i++) {
        if (cut && i == count / 2) {
            cut_strike();
        }
        while (send_number(ep, i) == UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
    }
}

static void expect_received(unsigned count)
{
    struct patience wait = patience("messages that were flushed");

    while (flow.received < count) {
        progress_wait(&wait);
    }
    (void)expect(flow.received == count, "%u messages came of %u", flow.received, count);
}

/* ---- flush ------------------------------------------------------------------------------------ */

static void flush_with_completion(int cut)
{
    struct patience wait = patience("the completion of a flush");
    struct counted  done;
    ucs_status_t    status;

    report_matter("ep flush with completion: called once, after all before it", cut);
    send_some(world.tx->ep, 12, cut);
    (void)counted(&done);
    while ((status = uct_ep_flush(world.tx->ep, 0, &done.comp)) == UCS_ERR_NO_RESOURCE) {
        progress_wait(&wait);
    }
    (void)expect(status == UCS_OK || status == UCS_INPROGRESS, "flush: %s", ucs_status_string(status));
    if (cut) {
        cut_over();
    }
    while (status == UCS_INPROGRESS && done.called == 0) {
        progress_wait(&wait);
    }
    expect_received(12);
    progress_ms(1);
    (void)expect(done.called == (status == UCS_INPROGRESS), "the completion was called %u times", done.called);
    (void)expect_status(done.status, UCS_OK, "the completion");
    (void)expect_status(uct_ep_flush(world.tx->ep, 0, NULL), UCS_OK, "a flush of nothing");
    if (cut) {
        cut_repair();
    }
}

static void flush_interface(int cut)
{
    struct patience wait = patience("a flush of the interface");
    struct counted  done;
    ucs_status_t    status;

    report_matter("iface flush: done when every endpoint's work is", cut);
    send_some(world.tx->ep, 12, cut);
    if (cut) {
        cut_over();
    }
    while ((status = uct_iface_flush(world.tx->iface, 0, NULL)) == UCS_INPROGRESS) {
        progress_wait(&wait);
    }
    (void)expect_status(status, UCS_OK, "iface flush");
    expect_received(12);
    status = uct_iface_flush(world.tx->iface, 0, counted(&done));
    (void)expect(status == UCS_OK || status == UCS_ERR_UNSUPPORTED, "iface flush with completion: %s",
                 ucs_status_string(status));
    if (cut) {
        cut_repair();
    }
}

/* What a sleeper of the other side sees first must not be the word behind the fence. */
static void fence_order(int cut, int whole)
{
    struct patience    wait = patience("words behind a fence");
    volatile uint32_t *flag = (volatile uint32_t *)(void *)flow.far.bytes;
    uct_iov_t          iov  = {.buffer = flow.own.bytes, .length = BLOCK, .memh = flow.own.memh, .count = 1};
    struct counted     done;
    ucs_status_t       status;

    report_matter(whole ? "iface fence: a PUT behind it is not seen before one ahead"
                        : "ep fence: a PUT behind it is not seen before one ahead",
                  cut);
    for (uint32_t round = 1; round <= 12; round++) {
        memset(flow.own.bytes, (int)round, BLOCK);
        if (cut && round == 6) {
            cut_arm();
        }
        while ((status = uct_ep_put_zcopy(world.tx->ep, &iov, 1, (uintptr_t)flow.far.bytes + 64, flow.far.rkey.rkey,
                                          counted(&done))) == UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
        if (cut && round == 6) {
            cut_strike();
        }
        (void)expect_status(whole ? uct_iface_fence(world.tx->iface, 0) : uct_ep_fence(world.tx->ep, 0), UCS_OK,
                            "fence");
        while (uct_ep_put_short(world.tx->ep, &round, sizeof(round), (uintptr_t)flow.far.bytes, flow.far.rkey.rkey) ==
               UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round) {
            progress_wait(&wait);
        }
        (void)expect(flow.far.bytes[64] == (uint8_t)round && flow.far.bytes[64 + BLOCK - 1] == (uint8_t)round,
                     "round %u: the word came before the block", round);
        while (status == UCS_INPROGRESS && done.called == 0) {
            progress_wait(&wait);
        }
    }
    if (cut) {
        cut_over();
        cut_repair();
    }
}

static void check_fences(void)
{
    if (!has(UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT) || !memory_usable(world.rx)) {
        return;
    }
    flow.own = memory_open(world.tx, NULL, 8192);
    flow.far = memory_open(world.rx, world.tx, 8192);
    for (int cut = 0; cut <= cut_available(); cut++) {
        memset(flow.far.bytes, 0, 8192);
        fence_order(cut, 0);
        memset(flow.far.bytes, 0, 8192);
        fence_order(cut, 1);
    }
    memory_close(&flow.own, world.tx, NULL);
    memory_close(&flow.far, world.rx, world.tx);
}

/* ---- cancel -------------------------------------------------------------------------------------- */

#define CANCELED 8

/* The endpoint is for nothing any more but to be destroyed; its completions have been called. */
static void cancel(int cut)
{
    struct patience wait = patience("a canceling flush");
    struct counted  sent[CANCELED], flush;
    uct_iov_t       iov = {.buffer = flow.own.bytes, .length = 64, .memh = flow.own.memh, .count = 1};
    ucs_status_t    status[CANCELED], flushed;
    uct_ep_h        ep[2];

    report_matter("ep flush CANCEL: every completion called once, nothing sent later", cut);
    ep_open_pair(ep);
    send_some(ep[0], 4, 0);
    expect_received(4);
    if (cut) {
        cut_arm();
    }
    for (unsigned i = 0; i < CANCELED; i++) {
        uint32_t number = 4 + i;

        memcpy(flow.own.bytes + 4 * i, &number, sizeof(number));
        iov.buffer = flow.own.bytes + 4 * i;
        iov.length = sizeof(number);
        status[i]  = uct_ep_am_zcopy(ep[0], AM_ID, NULL, 0, &iov, 1, 0, counted(&sent[i]));
    }
    if (cut) {
        cut_strike();
    }
    flushed = uct_ep_flush(ep[0], UCT_FLUSH_FLAG_CANCEL, counted(&flush));
    while (flushed == UCS_INPROGRESS && flush.called == 0) {
        progress_wait(&wait);
    }
    for (unsigned i = 0; i < CANCELED; i++) {
        (void)expect(sent[i].called == (status[i] == UCS_INPROGRESS), "completion %u was called %u times", i,
                     sent[i].called);
        (void)expect(sent[i].called == 0 || sent[i].status == UCS_OK || sent[i].status == UCS_ERR_CANCELED,
                     "a canceled message: %s", ucs_status_string(sent[i].status));
    }
    if (has(UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE) && strncmp(settings.transport, "ha_", 3) == 0) {
        (void)expect(UCS_STATUS_IS_ERR(send_number(ep[0], 99)), "a canceled endpoint sends");
    }
    ep_close_pair(ep);
    if (cut) {
        cut_moved();
    }
    progress_ms(5);
    (void)expect(flow.received <= 4 + CANCELED, "more came than was sent");
    if (cut) {
        cut_repair();
    }
}

/* ---- progress ---------------------------------------------------------------------------------------- */

static void switch_progress(void)
{
    report_matter("progress disabled: nothing is delivered; enabled: all of it", 0);
    uct_iface_progress_disable(world.rx->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    send_some(world.tx->ep, 4, 0);
    progress_ms(20);
    (void)expect(flow.received == 0, "%u messages came while progress was off", flow.received);
    uct_iface_progress_enable(world.rx->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    expect_received(4);
}

void check_flow(void)
{
    if (!has(UCT_IFACE_FLAG_AM_BCOPY)) {
        return;
    }
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_message, NULL, 0);
    for (int cut = 0; cut <= cut_available(); cut++) {
        flush_with_completion(cut);
        flush_interface(cut);
    }
    check_fences();
    if (world.tx != world.rx) {
        switch_progress();
    }
    if (has(UCT_IFACE_FLAG_AM_ZCOPY) && memory_usable(world.tx)) {
        flow.own = memory_open(world.tx, NULL, 8192);
        for (int cut = 0; cut <= cut_available(); cut++) {
            cancel(cut);
        }
        memory_close(&flow.own, world.tx, NULL);
    }
}
