/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests that wait for room: in order, each once; taken back: in order, each once, none sent. */

#include "contract.h"
#include "contract_cut.h"

#include <string.h>

#define AM_ID    11
#define REQUESTS 8
#define FILL_MAX 200000

static struct {
    uint64_t next, received; /* messages by number */
    unsigned purged;
} queue;

struct request {
    uct_pending_req_t super;
    unsigned          number, called;
};

static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    uint64_t number = 0;

    (void)arg;
    (void)flags;
    memcpy(&number, data, length < sizeof(number) ? length : sizeof(number));
    (void)expect(length >= sizeof(number) && number == queue.received, "message %llu came in place of %llu",
                 (unsigned long long)number, (unsigned long long)queue.received);
    queue.received++;
    return UCS_OK;
}

static size_t pack_number(void *dest, void *arg)
{
    (void)arg;
    memset(dest, 0, 1000);
    memcpy(dest, &queue.next, sizeof(queue.next));
    return 1000;
}

static ucs_status_t send_next(void)
{
    ssize_t sent = uct_ep_am_bcopy(world.tx->ep, AM_ID, pack_number, NULL, 0);

    if (sent < 0) {
        return (ucs_status_t)sent;
    }
    queue.next++;
    return UCS_OK;
}

static ucs_status_t on_room(uct_pending_req_t *self)
{
    struct request *request = (struct request *)(void *)self;
    ucs_status_t    status  = send_next();

    if (status == UCS_OK) {
        request->called++;
    }
    return status; /* NO_RESOURCE: stays in the queue */
}

static int fill_up(void)
{
    for (unsigned i = 0; i < FILL_MAX; i++) {
        ucs_status_t status = send_next();

        if (status == UCS_ERR_NO_RESOURCE) {
            return 1;
        }
        if (!expect_status(status, UCS_OK, "am_bcopy")) {
            return 0;
        }
    }
    return 0;
}

/* Whoever is told that there is room after all tries again. */
static unsigned add(struct request *requests, unsigned count)
{
    unsigned added = 0;

    for (unsigned i = 0; i < count; i++) {
        memset(&requests[i], 0, sizeof(requests[i]));
        requests[i].super.func = on_room;
        requests[i].number     = i;
        if (uct_ep_pending_add(world.tx->ep, &requests[i].super, 0) != UCS_OK) {
            break;
        }
        added++;
    }
    return added;
}

static void wait_received(void)
{
    struct patience wait = patience("messages that had to wait");

    while (queue.received < queue.next) {
        progress_wait(&wait);
    }
    while (uct_ep_flush(world.tx->ep, 0, NULL) != UCS_OK) {
        progress_wait(&wait);
    }
}

static void on_purge(uct_pending_req_t *self, void *arg)
{
    struct request *request = (struct request *)(void *)self;

    (void)expect(arg == &queue, "purge has another argument");
    (void)expect(request->number == queue.purged, "request %u was purged in place of %u", request->number,
                 queue.purged);
    queue.purged++;
}

/* The receiver may not have told yet that it has room: sooner or later it has. */
static void busy(void)
{
    struct request  request;
    struct patience wait = patience("room");

    report_matter("pending: BUSY while there is room", 0);
    while (add(&request, 1) == 1) {
        queue.purged = 0;
        uct_ep_pending_purge(world.tx->ep, on_purge, &queue);
        (void)expect(queue.purged == 1, "%u requests were given back", queue.purged);
        progress_wait(&wait);
    }
    (void)expect_status(uct_ep_pending_add(world.tx->ep, &request.super, 0), UCS_ERR_BUSY, "pending_add");
}

static void order(int cut)
{
    struct request  requests[REQUESTS];
    struct patience wait = patience("requests that wait for room");
    unsigned        added, sent;

    report_matter("pending: called in order, each until it could send", cut);
    if (cut) {
        cut_arm();
    }
    if (!fill_up()) {
        report_result("never full");
        return;
    }
    added = add(requests, REQUESTS);
    (void)expect(added == REQUESTS, "%u requests were taken of %u", added, REQUESTS);
    if (cut) {
        cut_strike();
        cut_over();
    }
    do {
        sent = 0;
        for (unsigned i = 0; i < added; i++) {
            (void)expect(i == 0 || requests[i].called <= requests[i - 1].called, "request %u before %u", i, i - 1);
            sent += requests[i].called;
        }
        progress_wait(&wait);
    } while (sent < added);
    wait_received();
    for (unsigned i = 0; i < added; i++) {
        (void)expect(requests[i].called == 1, "request %u was called %u times", i, requests[i].called);
    }
    if (cut) {
        cut_repair();
    }
}

static void purge(void)
{
    struct request requests[REQUESTS];
    unsigned       added, called = 0;

    report_matter("pending purge: each given back in order, none called later", 0);
    if (!fill_up()) {
        report_result("never full");
        return;
    }
    added        = add(requests, REQUESTS);
    queue.purged = 0;
    uct_ep_pending_purge(world.tx->ep, on_purge, &queue);
    (void)expect(queue.purged == added, "%u of %u requests were given back", queue.purged, added);
    wait_received();
    progress_ms(2);
    for (unsigned i = 0; i < added; i++) {
        called += requests[i].called;
    }
    (void)expect(called == 0, "%u requests were called after the purge", called);
}

void check_pending(void)
{
    if (!has(UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_AM_BCOPY)) {
        return;
    }
    (void)uct_iface_set_am_handler(world.rx->iface, AM_ID, on_message, NULL, 0);
    busy();
    for (int cut = 0; cut <= cut_available(); cut++) {
        order(cut);
    }
    purge();
}
