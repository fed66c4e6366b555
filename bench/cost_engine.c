/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * cost_engine WAY SHAPE: an engine of libhte submits batches of small WRITEs to another process, which it starts itself
 * and which is not counted. Run by bench/cost under callgrind, which is told where the counted part begins and ends.
 *
 *     WAY    near     same host, process_vm_writev          SHAPE  apart       no request continues another
 *            mapped   same host, memory of hte_memory_alloc        prepared    the same, and they are a prepared list
 *            letters  messages of the engine's own over tcp        neighbours  each continues the one before it
 */

#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

#include "engine/include/hte.h"

enum { BATCH = 128, LENGTH = 4096, WARM_UP = 20, ROUNDS = 50, SIZE = 2 * BATCH * LENGTH };

extern char **environ;

static void ok(int error, const char *what)
{
    if (error != HTE_OK) {
        fprintf(stderr, "cost_engine: %s: %s (%s)\n", what, hte_error_string(error), hte_error_detail());
        exit(1);
    }
}

/* One thread, which sleeps as soon as it has nothing to do: how often it looks in vain is a matter of time. */
static struct hte_engine *create(const char *way)
{
    const struct hte_option options[] = {{"threads", "1"},     {"poll_us", "0"},      {"devices", ""},
                                         {"same_host", "off"}, {"moves", "messages"}, {"UCX_TLS", "tcp,self"}};
    struct hte_config       config    = {.size      = sizeof(config),
                                         .name      = "127.0.0.1",
                                         .options   = options,
                                         .n_options = strcmp(way, "letters") == 0 ? 6 : 3};
    struct hte_engine      *engine;

    ok(hte_create(&config, &engine), "create");
    return engine;
}

static char *memory_of(struct hte_engine *engine, const char *way)
{
    struct hte_memory memory = {.length = SIZE};

    if (strcmp(way, "mapped") == 0) {
        ok(hte_memory_alloc(engine, SIZE, &memory.addr), "memory");
    } else {
        memory.addr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    }
    ok(hte_memory_register(engine, &memory), "register");
    return memory.addr;
}

/* Until its standard input ends. */
static int be_target(const char *way)
{
    struct hte_engine *engine = create(way);
    char              *memory = memory_of(engine, way);
    char               name[HTE_NAME_MAX + 1], end;

    ok(hte_local_name(engine, name, sizeof(name)), "name");
    printf("%s %llu\n", name, (unsigned long long)memory);
    fflush(stdout);
    while (read(0, &end, 1) > 0) {
    }
    hte_destroy(engine);
    return 0;
}

/* Its orders; *answers: what it says. */
static int start_target(char *self, char *way, FILE **answers)
{
    char                      *argv[] = {self, way, "target", NULL};
    int                        orders[2], said[2];
    posix_spawn_file_actions_t actions;
    pid_t                      pid;

    if (pipe(orders) != 0 || pipe(said) != 0) {
        exit(1);
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, orders[0], 0);
    posix_spawn_file_actions_adddup2(&actions, said[1], 1);
    posix_spawn_file_actions_addclose(&actions, orders[1]);
    if (posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0) {
        exit(1);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(orders[0]);
    close(said[1]);
    *answers = fdopen(said[0], "r");
    return orders[1];
}

/* The list, or where it is NONE the requests. */
static void run(struct hte_engine *engine, const struct hte_request *requests, hte_list_t list, int rounds)
{
    struct hte_batch_status status;
    hte_batch_t             batch;

    for (int i = 0; i < rounds; i++) {
        ok(hte_batch_alloc(engine, BATCH, &batch), "alloc");
        ok(list == HTE_LIST_NONE ? hte_batch_submit(engine, batch, requests, BATCH)
                                 : hte_list_submit(engine, batch, list),
           "submit");
        ok(hte_batch_wait(engine, batch, 60000, &status), "wait");
        if (status.code != HTE_COMPLETED) {
            ok(status.error, "batch");
        }
        ok(hte_batch_free(engine, batch), "free");
    }
}

static void measure(struct hte_engine *engine, const char *way, const char *name, uint64_t remote, size_t step,
                    bool is_prepared)
{
    struct hte_request requests[BATCH];
    hte_list_t         list   = HTE_LIST_NONE;
    char              *memory = memory_of(engine, way);
    hte_segment_t      segment;

    ok(hte_segment_open(engine, name, &segment), "open");
    for (size_t i = 0; i < BATCH; i++) {
        requests[i] = (struct hte_request){
            .opcode        = HTE_WRITE,
            .target        = segment,
            .local         = memory + i * step,
            .target_offset = remote + i * step,
            .length        = LENGTH,
        };
    }
    if (is_prepared) {
        ok(hte_list_prepare(engine, requests, BATCH, &list), "prepare");
    }
    run(engine, requests, list, WARM_UP);
    CALLGRIND_ZERO_STATS;
    run(engine, requests, list, ROUNDS);
    CALLGRIND_DUMP_STATS_AT("requests");
    printf("requests %d\n", ROUNDS * BATCH);
}

int main(int argc, char **argv)
{
    struct hte_engine *engine;
    unsigned long long remote;
    char               name[HTE_NAME_MAX + 1];
    FILE              *answers;
    int                orders;

    if (argc == 3 && strcmp(argv[2], "target") == 0) {
        return be_target(argv[1]);
    }
    if (argc != 3 ||
        (strcmp(argv[2], "apart") != 0 && strcmp(argv[2], "prepared") != 0 && strcmp(argv[2], "neighbours") != 0)) {
        fprintf(stderr, "usage: cost_engine near|mapped|letters apart|prepared|neighbours\n");
        return 2;
    }
    orders = start_target(argv[0], argv[1], &answers);
    if (answers == NULL || fscanf(answers, "%255s %llu", name, &remote) != 2) {
        fprintf(stderr, "cost_engine: the target says nothing\n");
        return 1;
    }
    engine = create(argv[1]);
    measure(engine, argv[1], name, remote, strcmp(argv[2], "neighbours") == 0 ? LENGTH : 2 * LENGTH,
            strcmp(argv[2], "prepared") == 0);
    hte_destroy(engine);
    close(orders);
    wait(NULL);
    return 0;
}
