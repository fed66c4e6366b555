/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shortest use of libhte in C: one process offers memory, another one writes into it.
 *
 *     $ hte_put                            prints its name, waits, prints what was written
 *     $ hte_put 192.0.2.2:15432 "a text"   writes it there
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep(), also with -std=c99 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hte.h>

#define SIZE       4096
#define TIMEOUT_MS 30000

static void check(int error, const char *what)
{
    if (error != HTE_OK) {
        fprintf(stderr, "hte_put: %s: %s: %s\n", what, hte_error_string(error), hte_error_detail());
        exit(1);
    }
}

/* Notifications arrive in a list, which is looked at now and then. */
static void wait_for_notification(struct hte_engine *engine)
{
    const struct timespec    pause = {.tv_nsec = 10000000};
    struct hte_notification *arrived;
    size_t                   count = 0;

    while (count == 0) {
        nanosleep(&pause, NULL);
        check(hte_notify_drain(engine, &arrived, &count), "notifications");
        hte_notify_free(arrived, count);
    }
}

static void offer(struct hte_engine *engine, const char *memory)
{
    char name[HTE_NAME_MAX + 1];

    check(hte_local_name(engine, name, sizeof(name)), "name");
    printf("%s\n", name);
    fflush(stdout);
    wait_for_notification(engine); /* it comes behind the bytes that it tells of */
    printf("%s\n", memory);
}

static void put(struct hte_engine *engine, const char *name, char *memory, const char *text)
{
    struct hte_request      request = {.opcode = HTE_WRITE, .local = memory, .length = strlen(text) + 1};
    struct hte_batch_status status;
    struct hte_buffer       buffer;
    hte_segment_t           segment;
    hte_batch_t             batch;
    size_t                  count = 1;

    snprintf(memory, SIZE, "%s", text);
    check(hte_segment_open(engine, name, &segment), name);
    check(hte_segment_buffers(engine, segment, &buffer, &count), "buffers");
    if (count == 0 || request.length > buffer.length) {
        fprintf(stderr, "hte_put: %s has no room for %zu bytes\n", name, (size_t)request.length);
        exit(1);
    }
    request.target        = segment;
    request.target_offset = buffer.addr;
    check(hte_batch_alloc(engine, 1, &batch), "batch");
    check(hte_batch_submit_notify(engine, batch, &request, 1, "put", ""), "submit");
    check(hte_batch_wait(engine, batch, TIMEOUT_MS, &status), "wait");
    check(status.error, "write");
    check(hte_batch_free(engine, batch), "free");
    check(hte_segment_close(engine, segment), "close");
}

int main(int argc, char **argv)
{
    char                   *memory = calloc(1, SIZE);
    const struct hte_memory region = {.addr = memory, .length = SIZE};
    struct hte_engine      *engine;

    if (memory == NULL || (argc != 1 && argc != 3) || (argc == 3 && strlen(argv[2]) >= SIZE)) {
        fprintf(stderr, "usage: hte_put [NAME TEXT]   (TEXT of less than %d bytes)\n", SIZE);
        return 2;
    }
    check(hte_create(NULL, &engine), "create");
    check(hte_memory_register(engine, &region), "register");
    if (argc == 1) {
        offer(engine, memory);
    } else {
        put(engine, argv[1], memory, argv[2]);
    }
    hte_destroy(engine);
    free(memory);
    return 0;
}
