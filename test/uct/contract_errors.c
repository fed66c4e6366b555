/* SPDX-License-Identifier: BSD-3-Clause */

/* Health of the peer, and what happens when it is gone. The last group: it closes the other side. */

#include "contract.h"
#include "contract_cut.h"

#include <string.h>

#define AM_ID 15

static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    (void)arg;
    (void)data;
    (void)length;
    (void)flags;
    return UCS_OK;
}

static size_t pack_nothing(void *dest, void *arg)
{
    (void)arg;
    memset(dest, 0, 8);
    return 8;
}

static void healthy(int cut)
{
    unsigned        errors = world.tx->errors;
    struct patience wait   = patience("an answer to a check");
    struct counted  done;
    ucs_status_t    status;

    report_matter("ep_check: a peer that is there is not an error", cut);
    for (unsigned i = 0; cut && i < 8; i++) {
        if (i == 0) {
            cut_arm();
        } else if (i == 4) {
            cut_strike();
        }
        while (uct_ep_am_bcopy(world.tx->ep, AM_ID, pack_nothing, NULL, 0) == UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        status = uct_ep_check(world.tx->ep, 0, NULL);
        (void)expect(status == UCS_OK || status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE, "ep_check: %s",
                     ucs_status_string(status));
        progress_ms(2);
    }
    if (cut) {
        cut_over();
    }
    while ((status = uct_ep_flush(world.tx->ep, 0, NULL)) == UCS_INPROGRESS) {
        progress_wait(&wait);
    }
    (void)counted(&done);
    (void)expect(world.tx->errors == errors, "the error handler was called");
    if (cut) {
        cut_repair();
    }
}

static ucs_status_t put_gone(uct_ep_h ep, const uct_iov_t *iov, const struct memory *gone, struct counted *done)
{
    if (done == NULL) {
        return uct_ep_put_short(ep, iov->buffer, 8, (uintptr_t)gone->bytes, gone->rkey.rkey);
    }
    return uct_ep_put_zcopy(ep, iov, 1, (uintptr_t)gone->bytes, gone->rkey.rkey, counted(done));
}

/* Memory that is not there any more. Who asked for the completion hears of it there; nobody may believe
 * that it was written: else the endpoint ends, which is told once. */
static void bad_key(int completion)
{
    struct memory   own = memory_open(world.tx, NULL, 4096), far = memory_open(world.rx, world.tx, 4096);
    uct_iov_t       iov    = {.buffer = own.bytes, .length = 4096, .memh = own.memh, .count = 1};
    struct patience wait   = patience("a PUT to memory that is gone");
    unsigned        errors = world.tx->errors;
    struct counted  done;
    ucs_status_t    status;
    uct_ep_h        ep[2];

    report_matter(completion ? "PUT to memory that is gone: its completion fails"
                             : "PUT to memory that is gone, no completion: the endpoint ends, told once",
                  0);
    ep_open_pair(ep);
    (void)expect_status(uct_md_mem_dereg(world.rx->md, far.memh), UCS_OK, "mem_dereg");
    while ((status = put_gone(ep[0], &iov, &far, completion ? &done : NULL)) == UCS_ERR_NO_RESOURCE) {
        progress_wait(&wait);
    }
    if (completion) {
        while (status == UCS_INPROGRESS && done.called == 0) {
            progress_wait(&wait);
        }
        (void)expect(UCS_STATUS_IS_ERR(status == UCS_INPROGRESS ? done.status : status), "it succeeded");
    } else {
        while (world.tx->errors == errors) {
            progress_wait(&wait);
        }
        (void)expect(UCS_STATUS_IS_ERR(put_gone(ep[0], &iov, &far, NULL)), "the endpoint still takes operations");
    }
    progress_ms(5);
    (void)expect(world.tx->errors <= errors + 1, "the error was told %u times", world.tx->errors - errors);
    ep_close_pair(ep);
    (void)expect_status(uct_md_mem_reg(world.rx->md, far.bytes, far.length, UCT_MD_MEM_ACCESS_ALL, &far.memh), UCS_OK,
                        "mem_reg");
    memory_close(&own, world.tx, NULL);
    memory_close(&far, world.rx, world.tx);
}

/* The other side closes in the middle of work. */
static void peer_leaves(void)
{
    struct patience wait   = patience("the loss of the peer to be noticed");
    unsigned        errors = world.tx->errors;
    ssize_t         sent   = 0;
    ucs_status_t    flushed;

    report_matter("peer closes: the error handler is called once, work ends, no more is taken", 0);
    side_close(world.rx);
    while (world.tx->errors == errors) {
        sent = uct_ep_am_bcopy(world.tx->ep, AM_ID, pack_nothing, NULL, 0);
        if (has(UCT_IFACE_FLAG_EP_CHECK)) {
            (void)uct_ep_check(world.tx->ep, 0, NULL);
        }
        progress_wait(&wait);
    }
    (void)expect(UCS_STATUS_IS_ERR(world.tx->error), "error '%s'", ucs_status_string(world.tx->error));
    wait = patience("work to end on an endpoint without a peer");
    while ((flushed = uct_ep_flush(world.tx->ep, UCT_FLUSH_FLAG_CANCEL, NULL)) == UCS_INPROGRESS) {
        progress_wait(&wait);
    }
    sent = uct_ep_am_bcopy(world.tx->ep, AM_ID, pack_nothing, NULL, 0);
    (void)expect(sent < 0, "it still takes messages");
    progress_ms(20);
    (void)expect(world.tx->errors == errors + 1, "the error was told %u times", world.tx->errors - errors);
}

void check_errors(void)
{
    if (!has(UCT_IFACE_FLAG_AM_BCOPY)) {
        return;
    }
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_message, NULL, 0);
    if (has(UCT_IFACE_FLAG_EP_CHECK)) {
        for (int cut = 0; cut <= cut_available(); cut++) {
            healthy(cut);
        }
    }
    if (has(UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM | UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT) &&
        memory_usable(world.rx)) {
        bad_key(1);
        bad_key(0);
    }
    if (has(UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE) && world.tx != world.rx &&
        strncmp(settings.transport, "ha_", 3) == 0) {
        peer_leaves();
    }
}
