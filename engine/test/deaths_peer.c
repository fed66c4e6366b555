/* SPDX-License-Identifier: BSD-3-Clause */
/* One process of deaths_matrix: an engine with memory, which does what is said to it in lines and answers each with
 * one. Times are of the system's monotonic clock, which all processes of a machine have in common. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "engine/include/hte.h"

#define M             (1024ull * 1024)
#define SIZE          (8 * M)
#define TRAFFIC       (4 * M) /* at the target: bytes of requests without end; below, those that are compared */
#define SERVED        (2 * M) /* here */
#define REQUESTS_MAX  4096
#define BATCHES_MAX   4
#define WORDS_MAX     8
#define WORD_MAX      96
#define TRIES         100
#define CONNECTING_MS 20000

static FILE *answers;

struct peer {
    struct hte_engine *engine;
    char              *memory;
    hte_batch_t        batches[BATCHES_MAX]; /* under way */
    unsigned           counts[BATCHES_MAX];
    unsigned           n_batches;
    bool               is_spoiler; /* for the self-test */
};

struct order { /* of a submission */
    hte_segment_t segment;
    uint64_t      addr;
    int           opcode;
    unsigned      count, stride;
    uint64_t      length;
};

struct words {
    char     text[WORDS_MAX][WORD_MAX];
    unsigned counts[WORDS_MAX], n;
};

static void must(int error, const char *what)
{
    if (error != HTE_OK) {
        fprintf(stderr, "deaths_peer: %s: %s (%s)\n", what, hte_error_string(error), hte_error_detail());
        exit(3);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- requests ---- */

static int submit(struct peer *peer, const struct order *order, hte_batch_t *batch)
{
    static struct hte_request requests[REQUESTS_MAX];
    uint64_t                  at;
    unsigned                  i;
    int                       error;

    for (i = 0; i < order->count; ++i) {
        at          = i * order->stride * order->length;
        requests[i] = (struct hte_request){.opcode        = order->opcode,
                                           .target        = order->segment,
                                           .local         = peer->memory + at % SERVED,
                                           .target_offset = order->addr + TRAFFIC + at % (SIZE - TRAFFIC),
                                           .length        = order->length};
    }
    must(hte_batch_alloc(peer->engine, REQUESTS_MAX, batch), "batch");
    error = hte_batch_submit(peer->engine, *batch, requests, order->count);
    if (error != HTE_OK) {
        must(hte_batch_free(peer->engine, *batch), "free");
    }
    return error;
}

static void count_word(struct words *words, const char *text)
{
    unsigned i;

    for (i = 0; i < words->n && strcmp(words->text[i], text) != 0; ++i) {
    }
    if (i == WORDS_MAX) {
        return;
    }
    if (i == words->n) {
        snprintf(words->text[words->n++], WORD_MAX, "%s", text);
    }
    words->counts[i]++;
}

static void word_of(const struct hte_status *status, char *text)
{
    static const char *const names[] = {"WAITING", "PENDING", "INVALID", "CANCELED", "COMPLETED", "TIMEOUT", "FAILED"};

    if (status->error == HTE_OK) {
        snprintf(text, WORD_MAX, "%s", names[status->code]);
    } else {
        snprintf(text, WORD_MAX, "%s: %s", names[status->code], hte_error_string(status->error));
    }
}

/* Waits for the oldest batch and says when it ended, and each request's word. */
static void say_end(struct peer *peer, int timeout_ms)
{
    struct words      words = {.n = 0};
    struct hte_status status;
    char              text[WORD_MAX];
    unsigned          i;
    int               error;

    error = hte_batch_wait(peer->engine, peer->batches[0], timeout_ms, NULL);
    fprintf(answers, "ended %.6f %s", now(), error == HTE_OK ? "intime" : "late");
    for (i = 0; i < peer->counts[0]; ++i) {
        must(hte_request_status(peer->engine, peer->batches[0], i, &status), "status");
        word_of(&status, text);
        count_word(&words, text);
    }
    for (i = 0; i < words.n; ++i) {
        fprintf(answers, "|%u|%s", words.counts[i], words.text[i]);
    }
    fprintf(answers, "\n");
    if (error != HTE_OK) {
        must(hte_batch_cancel(peer->engine, peer->batches[0]), "cancel");
        must(hte_batch_wait(peer->engine, peer->batches[0], timeout_ms, NULL), "wait for the canceled");
    }
    must(hte_batch_free(peer->engine, peer->batches[0]), "free");
    peer->n_batches--;
    memmove(peer->batches, peer->batches + 1, peer->n_batches * sizeof(peer->batches[0]));
    memmove(peer->counts, peer->counts + 1, peer->n_batches * sizeof(peer->counts[0]));
}

/* Until the first batch has moved something, or has ended. */
static void say_moving(struct peer *peer)
{
    struct hte_batch_status status;
    unsigned                i;

    for (i = 0; i < CONNECTING_MS * 5; ++i) {
        must(hte_batch_status(peer->engine, peer->batches[0], &status), "batch status");
        if (status.transferred > 0 || status.finished == status.submitted) {
            break;
        }
        usleep(200);
    }
    fprintf(answers, "moving %llu\n", (unsigned long long)status.transferred);
}

/* Traffic without end, for one that is going to be killed. */
static void loop(struct peer *peer, const struct order *order)
{
    hte_batch_t batch;
    bool        has_begun = false;

    for (;;) {
        must(submit(peer, order, &batch), "submit");
        must(hte_batch_wait(peer->engine, batch, -1, NULL), "wait");
        must(hte_batch_free(peer->engine, batch), "free");
        if (!has_begun) {
            fprintf(answers, "looping\n");
            has_begun = true;
        }
    }
}

/* ---- bytes that are compared ---- */

static int move(struct peer *peer, const struct order *order, int opcode, struct hte_batch_status *status)
{
    struct hte_request request = {.opcode        = opcode,
                                  .target        = order->segment,
                                  .local         = peer->memory + SERVED,
                                  .target_offset = order->addr,
                                  .length        = M};
    hte_batch_t        batch;
    int                error, i;

    for (i = 0; i < TRIES; ++i) { /* with a short slice_timeout_ms a busy machine may fail several */
        must(hte_batch_alloc(peer->engine, 1, &batch), "batch");
        error = hte_batch_submit(peer->engine, batch, &request, 1);
        if (error == HTE_OK) {
            error = hte_batch_wait(peer->engine, batch, CONNECTING_MS, status);
        }
        must(hte_batch_cancel(peer->engine, batch), "cancel");
        must(hte_batch_wait(peer->engine, batch, CONNECTING_MS, NULL), "wait for the canceled");
        must(hte_batch_free(peer->engine, batch), "free");
        if (error != HTE_OK || status->code == HTE_COMPLETED) {
            return error;
        }
    }
    return status->error;
}

static uint32_t scramble(uint32_t seed, uint32_t at)
{
    return (seed ^ at) * 2654435761u + at;
}

/* A MiB that nobody has written before arrives there, and comes back as it was. */
static void serve(struct peer *peer, const struct order *order, uint32_t seed)
{
    uint32_t               *words = (uint32_t *)(peer->memory + SERVED);
    struct hte_batch_status status;
    uint32_t                i;
    int                     error;

    for (i = 0; i < M / 4; ++i) {
        words[i] = scramble(seed, i);
    }
    error = move(peer, order, HTE_WRITE, &status);
    if (error == HTE_OK) {
        memset(words, 0, M);
        error = move(peer, order, HTE_READ, &status);
    }
    if (error != HTE_OK) {
        fprintf(answers, "refused %s\n", hte_error_string(error));
        return;
    }
    words[77] ^= peer->is_spoiler;
    for (i = 0; i < M / 4 && words[i] == scramble(seed, i); ++i) {
    }
    fprintf(answers, i == M / 4 ? "right\n" : "wrong at %u\n", i * 4);
}

/* ---- orders ---- */

static void open_segment(struct peer *peer, const char *name, bool is_warm)
{
    hte_segment_t segment;
    int           error     = hte_segment_open(peer->engine, name, &segment);
    char          text[200] = "";
    int           way;

    if (error == HTE_OK && is_warm) {
        error = hte_segment_warm(peer->engine, segment, CONNECTING_MS);
    }
    if (error != HTE_OK) {
        fprintf(answers, "refused %s\n", hte_error_string(error));
        return;
    }
    must(hte_segment_way(peer->engine, segment, &way, text, sizeof(text)), "way");
    fprintf(answers, "opened %d %d %s\n", segment, way, text);
}

static void go(struct peer *peer, const struct order *order)
{
    int error = submit(peer, order, &peer->batches[peer->n_batches]);

    if (error != HTE_OK) {
        fprintf(answers, "refused %s\n", hte_error_string(error));
        return;
    }
    peer->counts[peer->n_batches++] = order->count;
    fprintf(answers, "gone %.6f\n", now());
}

static bool read_order(const char *line, char *verb, struct order *order)
{
    unsigned long long addr, length;
    char               opcode;
    int                segment;

    if (sscanf(line, "%15s %d %llu %c %u %u %llu", verb, &segment, &addr, &opcode, &order->count, &order->stride,
               &length) != 7 ||
        order->count == 0 || order->count > REQUESTS_MAX || length == 0 || length > M) {
        return false;
    }
    order->segment = segment;
    order->addr    = addr;
    order->opcode  = opcode == 'w' ? HTE_WRITE : HTE_READ;
    order->length  = length;
    return true;
}

static bool obey(struct peer *peer, const char *line)
{
    struct order       order;
    unsigned long long addr;
    unsigned           seed;
    char               verb[16] = "", name[300];
    int                number;

    if (sscanf(line, "open %299s", name) == 1 || sscanf(line, "dial %299s", name) == 1) {
        open_segment(peer, name, line[0] == 'o');
    } else if (sscanf(line, "close %d", &number) == 1) {
        fprintf(answers, "closed %d\n", hte_segment_close(peer->engine, number));
    } else if (sscanf(line, "end %d", &number) == 1 && peer->n_batches > 0) {
        say_end(peer, number);
    } else if (strcmp(line, "moving\n") == 0 && peer->n_batches > 0) {
        say_moving(peer);
    } else if (sscanf(line, "serve %d %llu %u", &number, &addr, &seed) == 3) {
        serve(peer, &(struct order){.segment = number, .addr = addr}, seed);
    } else if (strcmp(line, "spoil\n") == 0) {
        peer->is_spoiler = true;
        fprintf(answers, "spoiled\n");
    } else if (strcmp(line, "abort\n") == 0) {
        abort();
    } else if (read_order(line, verb, &order) && strcmp(verb, "go") == 0 && peer->n_batches < BATCHES_MAX) {
        go(peer, &order);
    } else if (strcmp(verb, "loop") == 0) {
        loop(peer, &order);
    } else {
        return false;
    }
    return true;
}

/* UCX prints to standard output, too. */
static void keep_answers_apart(void)
{
    answers = fdopen(dup(STDOUT_FILENO), "w");
    setvbuf(answers, NULL, _IOLBF, 0);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* argv: "-" or "alloc" (memory of hte_memory_alloc()), then options KEY=VALUE. */
int main(int argc, char **argv)
{
    struct hte_option options[16];
    struct hte_config config = {.size = sizeof(config), .name = "127.0.0.1", .options = options};
    struct hte_memory memory = {.length = SIZE};
    struct peer       peer   = {.n_batches = 0};
    char              name[HTE_NAME_MAX + 1], line[512];
    int               i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    keep_answers_apart();
    for (i = 2; i < argc && i < 18; ++i) {
        options[config.n_options].key     = strtok(argv[i], "=");
        options[config.n_options++].value = strtok(NULL, "");
    }
    must(hte_create(&config, &peer.engine), "create");
    if (argc > 1 && strcmp(argv[1], "alloc") == 0) {
        must(hte_memory_alloc(peer.engine, SIZE, &memory.addr), "alloc");
    } else {
        memory.addr = aligned_alloc(4096, SIZE);
        memset(memory.addr, 0, SIZE);
    }
    peer.memory = memory.addr;
    must(hte_memory_register(peer.engine, &memory), "register");
    must(hte_local_name(peer.engine, name, sizeof(name)), "name");
    fprintf(answers, "ready %s %llu\n", name, (unsigned long long)(uintptr_t)peer.memory);
    while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "quit\n") != 0) {
        if (!obey(&peer, line)) {
            fprintf(stderr, "deaths_peer: what is '%s'?\n", line);
            exit(4);
        }
    }
    must(hte_memory_unregister(peer.engine, peer.memory), "unregister");
    hte_destroy(peer.engine);
    if (argc < 2 || strcmp(argv[1], "alloc") != 0) {
        free(peer.memory);
    }
    fclose(answers);
    return 0;
}
