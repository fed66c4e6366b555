/* SPDX-License-Identifier: BSD-3-Clause */

/* A burst: operations of one kind, as many at once as the transport takes, and the end of all. */

#include "contract.h"
#include "contract_cut.h"

#include <string.h>

static void on_completion(uct_completion_t *comp)
{
    struct counted *counted = (struct counted *)(void *)comp;

    counted->called++;
    counted->status = comp->status;
}

uct_completion_t *counted(struct counted *counted)
{
    memset(counted, 0, sizeof(*counted));
    counted->comp.func   = on_completion;
    counted->comp.count  = 1;
    counted->comp.status = UCS_OK;
    return &counted->comp;
}

static void post_one(struct burst *burst, unsigned i)
{
    struct patience wait = patience("room for an operation");
    ucs_status_t    status;

    (void)counted(&burst->done[i]);
    while ((status = burst->post(burst, i)) == UCS_ERR_NO_RESOURCE) {
        progress_wait(&wait);
    }
    burst->started[i] = status == UCS_INPROGRESS;
    (void)expect(status == UCS_OK || status == UCS_INPROGRESS, "operation %u of the burst: %s", i,
                 ucs_status_string(status));
}

static int all_called(const struct burst *burst)
{
    for (unsigned i = 0; i < burst->count; i++) {
        if (burst->started[i] && burst->done[i].called == 0) {
            return 0;
        }
    }
    return 1;
}

static void wait_end(struct burst *burst)
{
    struct patience wait = patience("the completions of a burst");
    ucs_status_t    status;

    while (!all_called(burst)) {
        progress_wait(&wait);
    }
    wait = patience("a flush");
    while ((status = uct_ep_flush(burst->ep, UCT_FLUSH_FLAG_LOCAL, NULL)) == UCS_INPROGRESS ||
           status == UCS_ERR_NO_RESOURCE) {
        progress_wait(&wait);
    }
    (void)expect_status(status, UCS_OK, "the flush");
    for (unsigned i = 0; i < burst->count; i++) {
        (void)expect(burst->done[i].called == burst->started[i], "completion of operation %u was called %u times", i,
                     burst->done[i].called);
        (void)expect_status(burst->done[i].status, UCS_OK, "a completion");
    }
}

void burst_run(struct burst *burst, int cut)
{
    unsigned errors = world.tx->errors + world.rx->errors;

    if (cut) {
        cut_arm();
    }
    for (unsigned i = 0; i < burst->count; i++) {
        if (cut && i == burst->count / 2) {
            cut_strike();
        }
        post_one(burst, i);
    }
    if (cut) {
        cut_over();
    }
    wait_end(burst);
    burst->check(burst);
    (void)expect(world.tx->errors + world.rx->errors == errors, "the error handler was called: %s",
                 ucs_status_string(world.tx->errors ? world.tx->error : world.rx->error));
    if (cut) {
        cut_repair();
    }
}

/* ---- every size of an operation ------------------------------------------------------------- */

static void run_size(const struct operation *operation, enum column column, size_t size)
{
    static unsigned seed;
    struct burst    burst;

    for (int cut = 0; cut <= (cut_available() && !(operation->idle && size == 0)); cut++) {
        memset(&burst, 0, sizeof(burst));
        burst.post  = operation->post;
        burst.check = operation->check;
        burst.count = size > 65536 ? 4 : BURST_MAX;
        burst.size  = size;
        burst.seed  = seed++;
        burst.ep    = world.tx->ep;
        report_operation(operation->name, operation->limit, column, size, cut);
        burst_run(&burst, cut);
    }
}

static void refuse(const struct operation *operation)
{
    struct burst burst = {
        .post = operation->post, .check = operation->check, .size = operation->limit + 1, .ep = world.tx->ep};
    ucs_status_t status;

    report_operation(operation->name, operation->limit, COL_ABOVE, burst.size, 0);
    (void)counted(&burst.done[0]);
    status = operation->post(&burst, 0);
    (void)expect(status == UCS_ERR_INVALID_PARAM, "beyond the limit: %s, and not refused", ucs_status_string(status));
    wait_end(&burst); /* of nothing */
    burst.check(&burst);
    (void)expect(burst.done[0].called == 0, "the completion of a refused operation was called");
    report_result("refused");
}

void check_operation(const struct operation *operation)
{
    size_t limit = operation->limit;

    if (!has(operation->flag)) {
        return;
    }
    run_size(operation, COL_ZERO, operation->least);
    if (operation->least + 1 < limit) {
        run_size(operation, COL_ONE, operation->least + 1);
    }
    if (limit - 1 > operation->least + 1) {
        run_size(operation, COL_BELOW, limit - 1);
    }
    if (limit > operation->least) {
        run_size(operation, COL_LIMIT, limit);
    }
    if (operation->bounded) {
        refuse(operation);
    }
}
