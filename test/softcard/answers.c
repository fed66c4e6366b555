/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * answers DEVICE [SEED...]: what the device answers to a list of verbs, a line each: traffic drawn from each seed,
 * and each fault alone. The same on two devices: they behave alike. test/lab_tests/v_answers.sh compares the kernel's
 * Soft-RoCE with the software card that plays it.
 *
 *   ANSWERS_GID_INDEX   of the device's port (0)
 */

#include "answers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALED IBV_SEND_SIGNALED

static struct ibv_context *context;

static const char *errno_word(int status)
{
    return status == 0 ? "accepted" : status == EINVAL ? "EINVAL" : status == ENOMEM ? "ENOMEM" : strerror(status);
}

/* ---- traffic of a seed ---- */

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (uint32_t)(drawn >> 11) % below;
}

/* No IBV_SEND_FENCE: Soft-RoCE may forget a request with that flag for ever after a retransmission. */
static struct answers_ask draw_ask(void)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
    struct answers_ask ask = {.opcode = opcodes[draw(9)], .flags = SIGNALED};

    if (ask.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        ask.length = 8;
        ask.add    = draw(3);
        ask.swap   = draw(1000);
    } else {
        static const uint32_t lengths[] = {0, 1, 8, 64, 1023, 1024, 1025, 4096, 9000, 20000};

        ask.length = lengths[draw(10)];
        ask.flags |= ask.opcode != IBV_WR_RDMA_READ && ask.length <= 64 && draw(2) ? IBV_SEND_INLINE : 0;
    }
    ask.offset = draw(200) * 1024;
    return ask;
}

/* One after the other, then several at once: without the second, nothing would be in flight together. */
static void traffic(uint64_t seed)
{
    struct answers_wish wish = {.rnr_retry = 6};
    struct answers_pair pair;
    char                name[64];

    drawn = seed * 0x9e3779b97f4a7c15ull + 1;
    answers_open(&pair, context, &wish);
    for (unsigned i = 0; i < ANSWERS_BYTES; i++) {
        pair.end[0].bytes[i] = (uint8_t)draw(256);
    }
    for (unsigned n = 0; n < 64; n++) {
        (void)answers_recv(&pair, 1, 1000 + n, (220 + n % 16) * 1024, 20 * 1024);
    }
    for (unsigned n = 0; n < 40; n += n < 20 ? 1 : 5) {
        unsigned burst = n < 20 ? 1 : 5;

        for (unsigned i = 0; i < burst; i++) {
            struct answers_ask ask    = draw_ask();
            int                status = answers_post(&pair, 0, n + i, &ask);

            printf("seed %llu: %u opcode %d, %u bytes at %u, flags %#x: %s\n", (unsigned long long)seed, n + i,
                   (int)ask.opcode, ask.length, ask.offset, ask.flags, errno_word(status));
        }
        snprintf(name, sizeof(name), "seed %llu, sent", (unsigned long long)seed);
        answers_completions(name, pair.end[0].send_cq, burst);
    }
    snprintf(name, sizeof(name), "seed %llu, received", (unsigned long long)seed);
    answers_completions(name, pair.end[1].recv_cq, 0);
    snprintf(name, sizeof(name), "seed %llu", (unsigned long long)seed);
    answers_states(name, &pair, 1);
    printf("%s: memory %#llx %#llx\n", name, (unsigned long long)answers_sum(&pair, 0),
           (unsigned long long)answers_sum(&pair, 1));
    answers_close(&pair);
}

/* ---- one fault each ---- */

static void finish(const char *name, struct answers_pair *pair, int numbers)
{
    char what[96];

    snprintf(what, sizeof(what), "%s, sent", name);
    answers_completions(what, pair->end[0].send_cq, 0);
    snprintf(what, sizeof(what), "%s, received", name);
    answers_completions(what, pair->end[1].recv_cq, 0);
    answers_states(name, pair, numbers);
    answers_close(pair);
}

/* A good WRITE, the bad request, a good WRITE and a SEND behind it. */
static void bad_request(const char *name, const struct answers_wish *wish, const struct answers_ask *bad,
                        uint32_t receive)
{
    struct answers_ask  good  = {.opcode = IBV_WR_RDMA_WRITE, .length = 64, .flags = SIGNALED};
    struct answers_ask  other = {.opcode = IBV_WR_SEND, .length = 64, .flags = SIGNALED};
    struct answers_pair pair;

    answers_open(&pair, context, wish);
    for (unsigned n = 0; receive > 0 && n < 3; n++) {
        (void)answers_recv(&pair, 1, 100 + n, n * 32768, receive);
    }
    if (!wish->no_remote_access && wish->stop_at == 0) {
        (void)answers_post(&pair, 0, 1, &good);
        answers_completions(name, pair.end[0].send_cq, 1);
    }
    printf("%s: %s\n", name, errno_word(answers_post(&pair, 0, 2, bad)));
    printf("%s: behind it %s\n", name, errno_word(answers_post(&pair, 0, 3, &good)));
    printf("%s: behind it %s\n", name, errno_word(answers_post(&pair, 0, 4, &other)));
    finish(name, &pair, 0);
}

static void bad_requests(void)
{
    static const struct answers_wish plain = {.rnr_retry = 1};
    static const struct answers_wish shut  = {.rnr_retry = 1, .no_remote_access = 1};
    static const struct answers_wish reset = {.rnr_retry = 1, .stop_at = IBV_QPS_RESET + 1};
    static const struct answers_wish init  = {.rnr_retry = 1, .stop_at = IBV_QPS_INIT + 1};
    struct answers_ask               ask   = {.opcode = IBV_WR_RDMA_WRITE, .length = 64, .flags = SIGNALED};

    ask.rkey_wrong = 1;
    bad_request("write, wrong key", &plain, &ask, 4096);
    ask.opcode = IBV_WR_RDMA_READ;
    bad_request("read, wrong key", &plain, &ask, 4096);
    ask.rkey_wrong = 0;
    ask.far        = 1;
    bad_request("read beyond the memory", &plain, &ask, 4096);
    ask.opcode = IBV_WR_RDMA_WRITE;
    bad_request("write beyond the memory", &plain, &ask, 4096);
    ask.far        = 0;
    ask.lkey_wrong = 1;
    bad_request("write from a wrong key", &plain, &ask, 4096);
    ask.lkey_wrong = 0;
    bad_request("write without permission", &shut, &ask, 4096);
    ask.opcode = IBV_WR_SEND;
    ask.length = 5000;
    bad_request("message too long", &plain, &ask, 4096);
    bad_request("no receive", &plain, &ask, 0);
    bad_request("peer was never connected", &reset, &ask, 0);
    bad_request("peer cannot receive yet", &init, &ask, 0);
    ask.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    ask.length = 8;
    ask.offset = 4;
    bad_request("atomic, odd address", &plain, &ask, 4096);
    ask.offset     = 0;
    ask.rkey_wrong = 1;
    bad_request("atomic, wrong key", &plain, &ask, 4096);
}

/* Nothing is sent that is not signaled, but an error always tells. */
static void signals(void)
{
    static const struct answers_wish wish = {.rnr_retry = 1};
    struct answers_ask               ask  = {.opcode = IBV_WR_RDMA_WRITE, .length = 64};
    struct answers_pair              pair;

    answers_open(&pair, context, &wish);
    for (unsigned n = 0; n < 6; n++) {
        ask.flags = n == 3 ? SIGNALED : 0;
        (void)answers_post(&pair, 0, n, &ask);
    }
    answers_completions("unsignaled", pair.end[0].send_cq, 1);
    ask.flags      = 0;
    ask.rkey_wrong = 1;
    (void)answers_post(&pair, 0, 10, &ask);
    ask.rkey_wrong = 0;
    (void)answers_post(&pair, 0, 11, &ask);
    finish("unsignaled", &pair, 0);
}

/* ---- life of a queue pair ---- */

static void posts_in(const char *name, int stop_at)
{
    struct answers_wish wish = {.stop_at = stop_at, .both = 1};
    struct answers_ask  ask  = {.opcode = IBV_WR_SEND, .length = 8, .flags = SIGNALED};
    struct answers_pair pair;

    answers_open(&pair, context, &wish);
    printf("%s: send %s\n", name, errno_word(answers_post(&pair, 0, 1, &ask)));
    printf("%s: receive %s\n", name, errno_word(answers_recv(&pair, 1, 2, 0, 64)));
    finish(name, &pair, 0);
}

static void flushes(void)
{
    struct answers_wish wish = {.rnr_retry = 1};
    struct answers_ask  ask  = {.opcode = IBV_WR_SEND, .length = 8, .flags = SIGNALED};
    struct answers_pair pair;

    answers_open(&pair, context, &wish);
    for (unsigned n = 0; n < 3; n++) {
        (void)answers_recv(&pair, 1, 100 + n, 0, 64);
        (void)answers_recv(&pair, 0, 200 + n, 0, 64);
    }
    (void)answers_post(&pair, 0, 1, &ask);
    answers_completions("flush, sent", pair.end[0].send_cq, 1);
    answers_completions("flush, received", pair.end[1].recv_cq, 1);
    printf("flush: %s\n", errno_word(answers_move(&pair, 0, IBV_QPS_ERR)));
    printf("flush: %s\n", errno_word(answers_move(&pair, 1, IBV_QPS_ERR)));
    ask.flags = 0;
    printf("flush: send %s\n", errno_word(answers_post(&pair, 0, 2, &ask)));
    printf("flush: receive %s\n", errno_word(answers_recv(&pair, 1, 110, 0, 64)));
    answers_completions("flush, end 0 received", pair.end[0].recv_cq, 3);
    finish("flush", &pair, 1);
}

/* Completions that nobody has polled when their queue pair is reset, or destroyed. */
static void forgets(int destroy)
{
    const char         *name = destroy ? "unpolled, destroyed" : "unpolled, reset";
    struct answers_wish wish = {.rnr_retry = 1};
    struct answers_ask  ask  = {.opcode = IBV_WR_RDMA_WRITE, .length = 8, .flags = SIGNALED};
    struct answers_ask  read = {.opcode = IBV_WR_RDMA_READ, .length = 8, .flags = SIGNALED};
    struct answers_pair pair;

    answers_open(&pair, context, &wish);
    for (unsigned n = 0; n < 3; n++) {
        (void)answers_post(&pair, 0, n, &ask);
    }
    (void)answers_post(&pair, 0, 3, &read);
    (void)poll(NULL, 0, 500); /* all have executed */
    if (destroy) {
        (void)ibv_destroy_qp(pair.end[0].qp);
        pair.end[0].qp = NULL;
    } else {
        printf("%s: %s\n", name, errno_word(answers_move(&pair, 0, IBV_QPS_RESET)));
    }
    answers_completions(name, pair.end[0].send_cq, 0);
    answers_close(&pair);
}

static void shared(void)
{
    struct answers_wish    wish = {.rnr_retry = 1, .srq = 1};
    struct answers_ask     ask  = {.opcode = IBV_WR_SEND, .length = 8, .flags = SIGNALED};
    struct pollfd          fd   = {.fd = context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    struct answers_pair    pair;

    answers_open(&pair, context, &wish);
    for (unsigned n = 0; n < 3; n++) {
        (void)answers_recv(&pair, 1, 100 + n, 0, 64);
    }
    (void)answers_post(&pair, 0, 1, &ask);
    answers_completions("shared, received", pair.end[1].recv_cq, 1);
    (void)answers_move(&pair, 1, IBV_QPS_ERR);
    while (poll(&fd, 1, 1500) == 1 && ibv_get_async_event(context, &event) == 0) {
        printf("shared: event %s\n", ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
    finish("shared", &pair, 0);
}

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list  = ibv_get_device_list(NULL);
    struct ibv_context *found = NULL;

    for (int i = 0; list != NULL && list[i] != NULL && found == NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            found = ibv_open_device(list[i]);
        }
    }
    ibv_free_device_list(list);
    return found;
}

int main(int argc, char **argv)
{
    if (argc < 2 || (context = open_device(argv[1])) == NULL) {
        fprintf(stderr, "answers DEVICE [SEED...]: %s\n", argc < 2 ? "no device given" : "no such device");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        traffic(strtoull(argv[i], NULL, 0));
    }
    bad_requests();
    signals();
    posts_in("in RESET", IBV_QPS_RESET + 1);
    posts_in("in INIT", IBV_QPS_INIT + 1);
    flushes();
    forgets(0);
    forgets(1);
    shared();
    ibv_close_device(context);
    return 0;
}
