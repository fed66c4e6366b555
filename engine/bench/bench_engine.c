/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine of either side, and the buffer that it registers. */
#include "bench_engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_base.h"

static struct hte_engine *create(const struct options *o, uint64_t threads)
{
    char               text[24];
    struct hte_option  options[OPTIONS_MAX + 1];
    struct hte_config  config = {.size      = sizeof(config),
                                 .metadata  = o->metadata,
                                 .name      = o->name,
                                 .bind_host = o->bind_host,
                                 .options   = options,
                                 .n_options = o->n_engine + 1};
    struct hte_engine *engine;

    threads = threads < ENGINE_THREADS_MAX ? threads : ENGINE_THREADS_MAX;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)(o->engine_threads != 0 ? o->engine_threads : threads));
    options[0] = (struct hte_option){.key = "threads", .value = text};
    memcpy(&options[1], o->engine, o->n_engine * sizeof(options[0]));
    must_do(hte_create(&config, &engine), "create the engine");
    return engine;
}

static struct hte_engine *open_engine(const struct options *o, uint64_t threads, char **buffer)
{
    struct hte_memory  memory = {.length = o->buffer_size};
    struct hte_engine *engine = create(o, threads);

    memory.addr = mmap(NULL, o->buffer_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.addr == MAP_FAILED) {
        die("no memory for --buffer_size=%llu", (unsigned long long)o->buffer_size);
    }
    memset(memory.addr, 1, o->buffer_size);
    must_do(hte_memory_register(engine, &memory), "register memory");
    *buffer = memory.addr;
    return engine;
}

struct hte_engine *initiator_open(const struct options *options, uint64_t threads, char **buffer)
{
    return open_engine(options, threads, buffer);
}

static void wait_for_signal(void)
{
    sigset_t set;
    int      number;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigwait(&set, &number);
}

static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

void run_target(const struct options *o, int ready_fd, int stop_fd)
{
    char               name[HTE_NAME_MAX + 1] = "", *buffer, byte;
    struct hte_engine *engine;

    if (stop_fd < 0) {
        block_signals(); /* before the engine's threads are made, which inherit it */
    }
    engine = open_engine(o, o->threads.values[o->threads.count - 1], &buffer);
    must_do(hte_local_name(engine, name, sizeof(name)), "name");
    if (stop_fd < 0) {
        printf("segment %s\n", name);
        flush_output();
        wait_for_signal();
    } else if (write(ready_fd, name, sizeof(name)) != sizeof(name) || read(stop_fd, &byte, 1) < 0) {
        die("the initiator is gone");
    }
    hte_destroy(engine);
}

void print_metrics(const struct options *o)
{
    struct hte_engine *engine = create(o, 1);
    hte_segment_t      segment;
    char              *text;

    must_do(hte_segment_open(engine, o->segment, &segment), "open the segment");
    must_do(hte_segment_metrics(engine, segment, &text), "ask for metrics");
    fputs(text, stdout);
    free(text);
    flush_output();
    hte_destroy(engine);
}
