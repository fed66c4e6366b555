/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * cost_driver TRANSPORT [--time ENDPOINTS | --misses ENDPOINTS | --lines]: both ends of a connection in one process,
 * over the software card. Run by bench/cost, which also sets the environment.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cost_bare.h"
#include "cost_side.h"
#include "cost_work.h"

#define SHORT_BYTES 8
#define BCOPY_BYTES 1024
#define ZCOPY_BYTES 4096
#define DEVICE      "sc0:1"
#define OTHERS_MS   150 /* a while */
#define OTHERS_MAX  400 /* of them */

static struct cost_side side[2];
static unsigned         num_eps = 1;
static uct_completion_t completion;
static uint64_t         fetched;

static void done(uct_completion_t *self)
{
    (void)self;
}

/* The product's part of a buffered operation, not the user's copying, is what is to be seen. */
static size_t pack(void *to, void *arg)
{
    *(uint64_t *)to = 7;
    return (size_t)arg;
}

static void unpack(void *arg, const void *data, size_t length)
{
    (void)arg, (void)data, (void)length;
}

static ucs_status_t sent(ssize_t result)
{
    return result < 0 ? (ucs_status_t)result : UCS_OK;
}

static ucs_status_t post_one(enum cost_op op, uct_ep_h ep)
{
    uint64_t   remote = (uintptr_t)side[1].memory;
    uct_rkey_t rkey   = side[0].rkey.rkey;
    uct_iov_t  iov    = {.buffer = side[0].memory, .length = ZCOPY_BYTES, .memh = side[0].memh, .count = 1};

    switch (op) {
    case COST_AM_SHORT:
        return uct_ep_am_short(ep, COST_AM_ID, 42, side[0].memory, SHORT_BYTES);
    case COST_AM_BCOPY:
        return sent(uct_ep_am_bcopy(ep, COST_AM_ID, pack, (void *)BCOPY_BYTES, 0));
    case COST_AM_ZCOPY:
        iov.length = BCOPY_BYTES;
        return uct_ep_am_zcopy(ep, COST_AM_ID, side[0].memory, 8, &iov, 1, 0, &completion);
    case COST_PUT_SHORT:
        return uct_ep_put_short(ep, side[0].memory, SHORT_BYTES, remote, rkey);
    case COST_PUT_BCOPY:
        return sent(uct_ep_put_bcopy(ep, pack, (void *)BCOPY_BYTES, remote, rkey));
    case COST_PUT_ZCOPY:
        return uct_ep_put_zcopy(ep, &iov, 1, remote, rkey, &completion);
    case COST_GET_BCOPY:
        return uct_ep_get_bcopy(ep, unpack, NULL, BCOPY_BYTES, remote, rkey, &completion);
    case COST_GET_ZCOPY:
        return uct_ep_get_zcopy(ep, &iov, 1, remote, rkey, &completion);
    default:
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &fetched, remote, rkey, &completion);
    }
}

static int can(enum cost_op op)
{
    static const uint64_t flags[COST_OPS] = {
        UCT_IFACE_FLAG_AM_SHORT,  UCT_IFACE_FLAG_AM_BCOPY,  UCT_IFACE_FLAG_AM_ZCOPY,
        UCT_IFACE_FLAG_PUT_SHORT, UCT_IFACE_FLAG_PUT_BCOPY, UCT_IFACE_FLAG_PUT_ZCOPY,
        UCT_IFACE_FLAG_GET_BCOPY, UCT_IFACE_FLAG_GET_ZCOPY, 0,
    };

    if (op == COST_ATOMIC) {
        return (side[0].attr.cap.atomic64.fop_flags & UCS_BIT(UCT_ATOMIC_OP_ADD)) != 0;
    }
    return (side[0].attr.cap.flags & flags[op]) != 0;
}

static void post(enum cost_op op, unsigned count)
{
    static unsigned ep;
    ucs_status_t    status;

    for (unsigned i = 0; i < count; i++) {
        status = post_one(op, side[0].eps[ep]);
        if (status != UCS_OK && status != UCS_INPROGRESS) {
            cost_die("post", status);
        }
        ep = ep + 1 == num_eps ? 0 : ep + 1;
    }
}

static void progress(int receiver)
{
    uct_worker_progress(side[receiver].worker);
}

static void progress_both(int times)
{
    for (int i = 0; i < times; i++) {
        progress(0);
        progress(1);
    }
}

static void settle(void)
{
    while (uct_iface_flush(side[0].iface, 0, NULL) == UCS_INPROGRESS ||
           uct_iface_flush(side[1].iface, 0, NULL) == UCS_INPROGRESS) {
        progress_both(1);
    }
}

static void send_patiently(struct cost_side *from, uct_ep_h ep)
{
    ucs_status_t status;

    while ((status = uct_ep_am_short(ep, COST_AM_ID, 1, from->memory, SHORT_BYTES)) == UCS_ERR_NO_RESOURCE) {
        progress_both(1);
    }
    if (status != UCS_OK) {
        cost_die("first message", status);
    }
}

static double cpu_ns(clockid_t of)
{
    struct timespec t;

    clock_gettime(of, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Standbys are built by other threads, of thousands of connections for seconds: until these have slept for a while. */
static void wait_for_others(void)
{
    double   then  = 0, now;
    unsigned quiet = 0;

    for (int i = 0; quiet < 3 && i < OTHERS_MAX; i++) {
        for (int ms = 0; ms < OTHERS_MS; ms++) {
            progress_both(1);
            usleep(1000);
        }
        now   = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        quiet = now - then < OTHERS_MS * 1e6 / 100 ? quiet + 1 : 0;
        then  = now;
    }
}

/* Every endpoint has been used both ways, and every queue and window has its final size. */
static void warm_up(void)
{
    unsigned messages = num_eps == 1 ? 4096 : 256 * num_eps;

    for (unsigned i = 0; i < num_eps; i++) {
        send_patiently(&side[0], side[0].eps[i]);
        send_patiently(&side[1], side[1].eps[i]);
    }
    while (side[0].got < num_eps || side[1].got < num_eps) {
        progress_both(1);
    }
    wait_for_others();
    for (unsigned i = 0; i < messages; i++) {
        send_patiently(&side[0], side[0].eps[i % num_eps]);
        if (i % 8 == 7) {
            progress_both(2);
        }
    }
    progress_both(1000);
}

/* Processor time of a short message, from asking to delivery, endpoints in turn. */
static void measure_time(const struct cost_carrier *carrier, const char *name)
{
    const int rounds = 10000;
    double    best   = 0;

    for (int attempt = 0; attempt < 9; attempt++) {
        double begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID), ns;

        for (int i = 0; i < rounds; i++) {
            cost_batch(carrier, COST_AM_SHORT, COST_PHASES);
        }
        ns   = (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / ((double)rounds * COST_BATCH);
        best = attempt == 0 || ns < best ? ns : best;
    }
    printf("time %s %u %.1f\n", name, num_eps, best);
}

int main(int argc, char **argv)
{
    struct cost_carrier carrier = {can, post, progress, settle};
    const char         *name    = argc > 1 ? argv[1] : "";

    if (strcmp(name, "ha_rc") != 0 && strcmp(name, "rc_verbs") != 0 && strcmp(name, "bare") != 0) {
        fprintf(stderr, "usage: cost_driver ha_rc|rc_verbs|bare [--time ENDPOINTS | --misses ENDPOINTS | --lines]\n");
        return 2;
    }
    completion = (uct_completion_t){.func = done, .count = 1 << 30};
    if (argc > 3) {
        num_eps = (unsigned)strtoul(argv[3], NULL, 10);
    }
    if (num_eps < 1 || num_eps > COST_EPS_MAX) {
        fprintf(stderr, "cost_driver: %s endpoints: 1 to %d\n", argv[3], COST_EPS_MAX);
        return 2;
    }
    if (strcmp(name, "bare") == 0) {
        cost_bare(&carrier, num_eps);
    } else {
        cost_open(&side[0], name, DEVICE);
        cost_open(&side[1], name, DEVICE);
        cost_connect(&side[0], &side[1], num_eps);
        warm_up();
    }
    if (argc > 3 && strcmp(argv[2], "--misses") == 0) {
        cost_measure_misses(&carrier, name, num_eps);
    } else if (argc > 3) {
        measure_time(&carrier, name);
    } else if (argc > 2) {
        cost_measure_lines(&carrier, name);
    } else {
        cost_measure(&carrier, name);
    }
    fflush(stdout);
    _exit(0); /* closing is not measured, and takes its time */
}
