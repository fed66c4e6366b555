/* SPDX-License-Identifier: BSD-3-Clause */

/* Sleeping on the event descriptor: nothing that was armed for is slept through. */

#include "contract.h"
#include "contract_cut.h"

#include <poll.h>
#include <string.h>

#define AM_ID  13
#define ROUNDS 12

static unsigned received;

static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    (void)arg;
    (void)data;
    (void)length;
    (void)flags;
    received++;
    return UCS_OK;
}

static size_t pack_nothing(void *dest, void *arg)
{
    (void)arg;
    memset(dest, 0, 8);
    return 8;
}

/* Progress until nothing is left that would have been missed. */
static void arm(struct side *side, unsigned events)
{
    struct patience wait = patience("an interface to be armed");
    ucs_status_t    status;

    while ((status = uct_iface_event_arm(side->iface, events)) == UCS_ERR_BUSY) {
        progress_wait(&wait);
    }
    (void)expect_status(status, UCS_OK, "event_arm");
}

static int readable(int fd, int ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    return poll(&poller, 1, ms) == 1;
}

/* The other side has to send meanwhile: its share of progress goes on. */
static void sleep_until(int fd, struct side *awake, const char *what)
{
    struct patience wait = patience(what);

    while (!readable(fd, 1)) {
        (void)uct_worker_progress(awake->worker);
        if (now_ns() > wait.until) {
            progress_wait(&wait);
        }
    }
}

static void sleep_for_messages(int cut)
{
    struct patience wait = patience("the message that woke");
    int             fd;

    report_matter("event fd: a message wakes who armed for it", cut);
    if (!expect_status(uct_iface_event_fd_get(world.rx->iface, &fd), UCS_OK, "event_fd_get")) {
        return;
    }
    received = 0;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        arm(world.rx, UCT_EVENT_RECV);
        if (cut && round == ROUNDS / 2) {
            cut_arm();
        }
        while (uct_ep_am_bcopy(world.tx->ep, AM_ID, pack_nothing, NULL, 0) == UCS_ERR_NO_RESOURCE) {
            progress_wait(&wait);
        }
        if (cut && round == ROUNDS / 2) {
            cut_strike();
        }
        while (received < round) { /* woken by what is no message, too: arm anew */
            sleep_until(fd, world.tx, "a message to wake");
            (void)uct_worker_progress(world.rx->worker);
            if (received < round) {
                arm(world.rx, UCT_EVENT_RECV);
            }
        }
    }
    (void)expect(received == ROUNDS, "%u messages came", received);
    if (cut) {
        cut_over();
        cut_repair();
    }
}

static void sleep_for_completion(void)
{
    struct memory  own = memory_open(world.tx, NULL, 4096), far = memory_open(world.rx, world.tx, 4096);
    uct_iov_t      iov = {.buffer = own.bytes, .length = 4096, .memh = own.memh, .count = 1};
    struct counted done;
    ucs_status_t   status;
    int            fd;

    report_matter("event fd: a completion wakes who armed for it", 0);
    fill(own.bytes, 5, 0, own.length);
    (void)expect_status(uct_iface_event_fd_get(world.tx->iface, &fd), UCS_OK, "event_fd_get");
    for (unsigned round = 0; round < ROUNDS; round++) {
        arm(world.tx, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        status = uct_ep_put_zcopy(world.tx->ep, &iov, 1, (uintptr_t)far.bytes, far.rkey.rkey, counted(&done));
        while (status == UCS_INPROGRESS && done.called == 0) {
            sleep_until(fd, world.rx, "a completion to wake");
            (void)uct_worker_progress(world.tx->worker);
            if (done.called == 0) {
                arm(world.tx, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
            }
        }
    }
    (void)same(far.bytes, 5, far.length);
    memory_close(&own, world.tx, NULL);
    memory_close(&far, world.rx, world.tx);
}

void check_events(void)
{
    uint64_t flags = world.tx->attr.cap.event_flags;

    if (!(flags & UCT_IFACE_FLAG_EVENT_FD) || world.tx == world.rx) {
        return;
    }
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_message, NULL, 0);
    if ((flags & UCT_IFACE_FLAG_EVENT_RECV) && has(UCT_IFACE_FLAG_AM_BCOPY)) {
        for (int cut = 0; cut <= cut_available(); cut++) {
            sleep_for_messages(cut);
        }
    }
    if ((flags & UCT_IFACE_FLAG_EVENT_SEND_COMP) && has(UCT_IFACE_FLAG_PUT_ZCOPY) && memory_usable(world.rx)) {
        sleep_for_completion();
    }
}
