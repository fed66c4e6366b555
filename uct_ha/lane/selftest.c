/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/selftest.h"

#include "core/ha_psn.h"
#include "verbs/ha_qp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MTU         256u
#define START       0xfffffau /* the numbers wrap while it is tried */
#define WRITES      16u
#define WRITE_LEN   (64 * MTU)
#define SOURCE_LEN  WRITE_LEN
#define TARGET_LEN  (WRITES * WRITE_LEN)
#define RECEIVES    4u
#define ROUNDS      2
#define PATIENCE_NS 2000000000ull
#define STILL_NS    1000000ull /* between two reads that must be equal */
#define MODELS_MAX  16

enum { TAG_SEND = 1, TAG_RECV = 2 };

/* One queue pair sends, the other one answers. */
struct selftest {
    struct ha_rail *rail;
    struct ha_cq   *cq;
    struct ha_rc   *from, *to;
    struct ha_mr   *mr;
    uint8_t        *memory; /* what is sent, then what is written */
    unsigned        sent, send_errors, received, flushed;
    uint32_t        psn; /* what the responder must expect next */
};

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint8_t *target(const struct selftest *t)
{
    return t->memory + SOURCE_LEN;
}

/* ---- two queue pairs of one rail ------------------------------------------------ */

static int create_rc(struct selftest *t, struct ha_rc **rc)
{
    struct ha_rc_caps caps = {.send_depth = WRITES + 8, .recv_depth = RECEIVES, .max_sge = 1, .max_inline = 0};

    return ha_rc_create(t->rail, t->cq, NULL, NULL, &caps, rc);
}

static unsigned most_reads(const struct ha_rail *rail)
{
    const struct ha_rail_limits *limits = ha_rail_limits(rail);

    return limits->max_rd_init < limits->max_rd_resp ? limits->max_rd_init : limits->max_rd_resp;
}

static int connect_to(struct selftest *t, struct ha_rc *rc, const struct ha_rc *other)
{
    const struct ha_rail_opts *opts  = ha_rail_opts(t->rail);
    unsigned                   reads = most_reads(t->rail) < 4 ? most_reads(t->rail) : 4;
    struct ha_rc_path          path  = {
                  .remote        = ha_rail_addr(t->rail),
                  .qpn           = ha_rc_qpn(other),
                  .recv_psn      = START,
                  .send_psn      = START,
                  .mtu           = MTU,
                  .timeout       = 14,
                  .retry_count   = 3,
                  .rnr_retry     = 3,
                  .min_rnr_timer = 12,
                  .rd_init       = reads,
                  .rd_resp       = reads,
                  .sl            = opts->sl,
                  .traffic_class = opts->traffic_class,
    };

    return ha_rc_connect(rc, &path);
}

static void close_pair(struct selftest *t)
{
    if (t->from != NULL) {
        ha_rc_destroy(t->from);
    }
    if (t->to != NULL) {
        ha_rc_destroy(t->to);
    }
    if (t->mr != NULL) {
        ha_mr_dereg(t->mr);
    }
    if (t->cq != NULL) {
        ha_cq_destroy(t->cq);
    }
    free(t->memory);
}

static int open_pair(struct selftest *t, struct ha_rail *rail)
{
    void *memory;
    int   status;

    memset(t, 0, sizeof(*t));
    t->rail = rail;
    t->psn  = START;
    if (posix_memalign(&memory, 4096, SOURCE_LEN + TARGET_LEN) != 0) {
        return -ENOMEM;
    }
    t->memory = memory;
    memset(t->memory, 0x5a, SOURCE_LEN + TARGET_LEN);
    status = ha_cq_create(rail, 2 * (WRITES + 8 + RECEIVES), 0, &t->cq);
    if (status == 0) {
        status = ha_mr_reg(rail, t->memory, SOURCE_LEN + TARGET_LEN, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET,
                           &t->mr);
    }
    if (status == 0) {
        status = create_rc(t, &t->from);
    }
    if (status == 0) {
        status = create_rc(t, &t->to);
    }
    if (status == 0) {
        status = connect_to(t, t->to, t->from);
    }
    return status == 0 ? connect_to(t, t->from, t->to) : status;
}

/* ---- traffic ------------------------------------------------------------------------ */

static int post_receives(struct selftest *t)
{
    struct ha_sge  sge    = {.addr = (uintptr_t)target(t), .length = WRITE_LEN, .lkey = ha_mr_lkey(t->mr)};
    struct ha_recv recv   = {.wr_id = TAG_RECV, .sge = &sge, .num_sge = 1};
    int            status = 0;

    for (unsigned i = 0; i < RECEIVES && status == 0; i++) {
        status = ha_rc_post_recv(t->to, &recv);
    }
    return status;
}

static int post(struct selftest *t, enum ha_send_op op, uint32_t length, uint8_t *remote)
{
    struct ha_sge  sge  = {.addr = (uintptr_t)t->memory, .length = length, .lkey = ha_mr_lkey(t->mr)};
    struct ha_send send = {.wr_id       = TAG_SEND,
                           .sge         = &sge,
                           .num_sge     = length > 0,
                           .remote_addr = (uintptr_t)remote,
                           .rkey        = ha_mr_rkey(t->mr),
                           .op          = op,
                           .flags       = HA_SEND_TELL};

    t->psn = ha_psn_add(t->psn, ha_psn_count(length, MTU));
    return ha_rc_error(ha_rc_post_send(t->from, &send));
}

static void poll_once(struct selftest *t)
{
    struct ha_wc wc[8];
    int          count = ha_cq_poll(t->cq, wc, 8);

    for (int i = 0; i < count; i++) {
        if (wc[i].wr_id == TAG_RECV) {
            t->received += wc[i].status == HA_WC_OK;
            t->flushed += wc[i].status != HA_WC_OK;
        } else {
            t->sent += wc[i].status == HA_WC_OK;
            t->send_errors += wc[i].status != HA_WC_OK;
        }
    }
}

/* Until the counter has got there; 0 in time. A send that fails ends the wait,
 * except for flushes, which come after it. */
static int wait_for(struct selftest *t, const unsigned *counter, unsigned value)
{
    uint64_t start = now_ns();

    while (*counter < value) {
        poll_once(t);
        if (now_ns() - start > PATIENCE_NS || (counter == &t->sent && t->send_errors > 0)) {
            return -ETIMEDOUT;
        }
    }
    return 0;
}

/* ---- what is tried ------------------------------------------------------------------- */

static enum uct_ha_selftest_verdict say(struct uct_ha_selftest_result *result, enum uct_ha_selftest_verdict verdict,
                                        const char *why)
{
    result->verdict = verdict;
    snprintf(result->why, sizeof(result->why), "%s", why);
    return verdict;
}

/* Operations of every kind, all acknowledged: the number moved by just that. */
static enum uct_ha_selftest_verdict try_running(struct selftest *t, struct uct_ha_selftest_result *result)
{
    unsigned reads = most_reads(t->rail) > 0;
    uint32_t psn;
    int      status;

    status = post_receives(t);
    status = status != 0 ? status : post(t, HA_SEND_IMM, 2 * MTU + 1, NULL);
    status = status != 0 ? status : post(t, HA_SEND_IMM, 0, NULL);
    status = status != 0 ? status : post(t, HA_WRITE, 2 * MTU, target(t));
    status = status != 0 ? status : post(t, HA_WRITE, 0, target(t));
    if (reads) {
        status = status != 0 ? status : post(t, HA_READ, 3 * MTU, target(t));
    }
    status = status != 0 ? status : post(t, HA_WRITE, 1, target(t));
    status = status != 0 ? status : wait_for(t, &t->sent, 5 + reads);
    if (status != 0) {
        return say(result, UCT_HA_SELFTEST_NOT_RUN, "the device does not talk to itself");
    }
    if (ha_rc_expected_psn(t->to, &psn) != 0) {
        return say(result, UCT_HA_SELFTEST_FAILED, "the device does not tell the packet number");
    }
    if (psn != t->psn) {
        return say(result, UCT_HA_SELFTEST_FAILED, "the packet number did not move by what was sent");
    }
    return UCT_HA_SELFTEST_PASSED;
}

static uint32_t packets_in_memory(const struct selftest *t)
{
    uint32_t n = 0;

    while (n < TARGET_LEN / MTU && target(t)[n * MTU] == 0x5a && target(t)[n * MTU + MTU - 1] == 0x5a) {
        n++;
    }
    return n;
}

static int read_when_still(struct selftest *t, uint32_t *psn)
{
    struct timespec still = {0, (long)STILL_NS};
    uint32_t        before;
    int             status = ha_rc_final_psn(t->to, &before);

    for (int tries = 0; status == 0 && tries < 10; tries++) {
        nanosleep(&still, NULL);
        status = ha_rc_final_psn(t->to, psn);
        if (status == 0 && *psn == before) {
            return 0;
        }
        before = *psn;
    }
    return status != 0 ? status : -EAGAIN;
}

/* Stopped in the middle of a burst: the number says what memory says, and goes
 * on saying it in the error state. `first`: wait for so many successes before. */
static enum uct_ha_selftest_verdict try_stopped(struct selftest *t, unsigned first,
                                                struct uct_ha_selftest_result *result)
{
    uint32_t from   = t->psn, psn;
    unsigned sent   = t->sent;
    int      status = 0;

    memset(t->memory, 0x5a, SOURCE_LEN);
    memset(target(t), 0, TARGET_LEN);
    for (unsigned i = 0; i < WRITES && status == 0; i++) {
        status = post(t, HA_WRITE, WRITE_LEN, target(t) + (size_t)i * WRITE_LEN);
    }
    status = status != 0 ? status : wait_for(t, &t->sent, sent + first);
    status = status != 0 ? status : ha_rc_fence(t->to);
    status = status != 0 ? status : ha_rc_fence(t->from);
    /* A receive that comes back flushed: nothing executes behind it. */
    status = status != 0 ? status : wait_for(t, &t->flushed, 1);
    if (status != 0) {
        return say(result, UCT_HA_SELFTEST_NOT_RUN, "a queue pair could not be stopped");
    }
    if (read_when_still(t, &psn) != 0) {
        return say(result, UCT_HA_SELFTEST_FAILED,
                   "the device does not tell the packet number of a stopped queue pair");
    }
    if (ha_psn_distance(from, psn) != packets_in_memory(t)) {
        return say(result, UCT_HA_SELFTEST_FAILED,
                   "the packet number of a stopped queue pair is not what was executed");
    }
    return UCT_HA_SELFTEST_PASSED;
}

static enum uct_ha_selftest_verdict try_round(struct ha_rail *rail, int round, struct uct_ha_selftest_result *result)
{
    enum uct_ha_selftest_verdict verdict;
    struct selftest              t;

    if (open_pair(&t, rail) != 0) {
        verdict = say(result, UCT_HA_SELFTEST_NOT_RUN, "no queue pair could be connected to itself");
    } else {
        verdict = try_running(&t, result);
        if (verdict == UCT_HA_SELFTEST_PASSED) {
            verdict = try_stopped(&t, round % 2 ? 2 : 0, result);
        }
    }
    close_pair(&t);
    return verdict;
}

static void run(struct ha_rail *rail, struct uct_ha_selftest_result *result)
{
    uint64_t start = now_ns();

    say(result, UCT_HA_SELFTEST_PASSED, "packet numbers are live and exact");
    if (!ha_rail_up(rail)) {
        say(result, UCT_HA_SELFTEST_NOT_RUN, "the port is down");
        return;
    }
    for (int round = 0; round < ROUNDS && result->verdict == UCT_HA_SELFTEST_PASSED; round++) {
        (void)try_round(rail, round, result);
    }
    result->ns = now_ns() - start;
}

/* ---- once per model -------------------------------------------------------------------- */

struct model {
    char                          name[sizeof(((struct ha_rail_limits *)0)->model)];
    struct uct_ha_selftest_result result;
    uint64_t                      until; /* tried again then */
};

static struct {
    pthread_mutex_t lock;
    unsigned        count;
    struct model    model[MODELS_MAX];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct model *model_of(const char *name)
{
    for (unsigned i = 0; i < known.count; i++) {
        if (strcmp(known.model[i].name, name) == 0) {
            return &known.model[i];
        }
    }
    if (known.count == MODELS_MAX) {
        return NULL;
    }
    snprintf(known.model[known.count].name, sizeof(known.model[0].name), "%s", name);
    return &known.model[known.count++];
}

/* A verdict holds for ever. That there is none does so for a while if it took
 * long to find out. */
static uint64_t holds_until(const struct uct_ha_selftest_result *result)
{
    if (result->verdict != UCT_HA_SELFTEST_NOT_RUN) {
        return UINT64_MAX;
    }
    return result->ns < PATIENCE_NS ? 0 : now_ns() + 30 * PATIENCE_NS;
}

struct uct_ha_selftest_result uct_ha_selftest(struct ha_rail *rail)
{
    struct uct_ha_selftest_result result;
    struct model                 *model;

    pthread_mutex_lock(&known.lock);
    model = model_of(ha_rail_limits(rail)->model);
    if (model != NULL && now_ns() < model->until) {
        result    = model->result;
        result.ns = 0;
    } else {
        memset(&result, 0, sizeof(result));
        run(rail, &result);
        if (model != NULL) {
            model->result = result;
            model->until  = holds_until(&result);
        }
    }
    pthread_mutex_unlock(&known.lock);
    return result;
}
