/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/include/hte.h"

struct order {
    char     what;
    uint32_t index, seed;
    size_t   offset, length;
};

struct answer {
    int64_t value;
    char    text[1024];
};

struct place {
    const char *name; /* host or host:port */
    uint64_t    addr; /* where the first buffer had best be; 0: anywhere */
};

struct hello {
    char     name[256];
    uint64_t addr[TARGET_BUFFERS_MAX];
};

unsigned char pattern(uint32_t seed, size_t offset)
{
    uint32_t x = (seed + (uint32_t)(offset >> 3)) * 2654435761u;

    return (unsigned char)((x >> 8) + (offset & 7) * 31 + seed);
}

void pattern_fill(void *buffer, size_t offset, size_t length, uint32_t seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        ((unsigned char *)buffer)[i] = pattern(seed, offset + i);
    }
}

int pattern_verify(const void *buffer, size_t offset, size_t length, uint32_t seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (((const unsigned char *)buffer)[i] != pattern(seed, offset + i)) {
            return 0;
        }
    }
    return 1;
}

/* ---- in the target's process ---- */

static void must(int error, const char *what)
{
    if (error != HTE_OK) {
        fprintf(stderr, "target: %s: %s (%s)\n", what, hte_error_string(error), hte_error_detail());
        _exit(2);
    }
}

static void put(int fd, const void *bytes, size_t length)
{
    if (write(fd, bytes, length) != (ssize_t)length) {
        _exit(3);
    }
}

static size_t get(int fd, void *bytes, size_t length)
{
    size_t  done = 0;
    ssize_t n;

    while (done < length) {
        n = read(fd, (char *)bytes + done, length - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        done += (size_t)n;
    }
    return done;
}

static int64_t drain(struct hte_engine *engine, char *text, size_t size)
{
    struct hte_notification *notifications;
    size_t                   count;

    must(hte_notify_drain(engine, &notifications, &count), "drain");
    if (count > 0) {
        snprintf(text, size, "%s/%s", notifications[count - 1].name, notifications[count - 1].text);
    }
    hte_notify_free(notifications, count);
    return (int64_t)count;
}

static void obey(struct hte_engine *engine, struct hte_memory *memories, const struct order *order,
                 struct answer *answer)
{
    char *at = (char *)memories[order->index].addr + order->offset;

    switch (order->what) {
    case 'v':
        answer->value = pattern_verify(at, order->offset, order->length, order->seed);
        break;
    case 'f':
        pattern_fill(at, order->offset, order->length, order->seed);
        break;
    case 'r':
        must(hte_memory_register(engine, &memories[order->index]), "register");
        break;
    case 'u':
        must(hte_memory_unregister(engine, memories[order->index].addr), "unregister");
        break;
    case 'p':
        mprotect(at, order->length, PROT_NONE);
        break;
    case 'n':
        answer->value = drain(engine, answer->text, sizeof(answer->text));
        break;
    }
}

/* TARGET_ALLOC: of hte_memory_alloc(). */
static void *memory_of(struct hte_engine *engine, const struct place *place, size_t total)
{
    void *memory;

    if (getenv("TARGET_ALLOC") == NULL) {
        return mmap((void *)place->addr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    must(hte_memory_alloc(engine, total, &memory), "alloc");
    return memory;
}

/* TARGET_HIDDEN: nobody may look into it. TARGET_USER: it is another one's. */
static void change_process(void)
{
    const char *user = getenv("TARGET_USER");

    if (user != NULL && setuid((uid_t)atoi(user)) != 0) {
        _exit(4);
    }
    if (getenv("TARGET_HIDDEN") != NULL) {
        prctl(PR_SET_DUMPABLE, 0);
    }
}

static void run(const struct target_buffer *buffers, unsigned count, const struct place *place, int orders, int answers)
{
    struct hte_config  config = {.size = sizeof(config), .name = place->name};
    struct hte_memory  memories[TARGET_BUFFERS_MAX];
    struct hello       hello = {.name = ""};
    struct hte_engine *engine;
    struct answer      answer;
    struct order       order;
    size_t             total = 0;
    unsigned           i, n_kept_back = buffers[count - 1].permission < 0;
    char              *memory;

    must(hte_create(&config, &engine), "create");
    for (i = 0; i < count; ++i) {
        total += buffers[i].length;
    }
    memory = memory_of(engine, place, total);
    for (i = 0; i < count; ++i) {
        memories[i]   = (struct hte_memory){.addr       = memory,
                                            .length     = buffers[i].length,
                                            .location   = "*",
                                            .permission = buffers[i].permission < 0 ? HTE_PERM_GLOBAL_RW
                                                                                    : buffers[i].permission};
        hello.addr[i] = (uint64_t)memory;
        memory += buffers[i].length;
    }
    must(hte_memory_register_batch(engine, memories, count - n_kept_back), "register");
    must(hte_local_name(engine, hello.name, sizeof(hello.name)), "name");
    put(answers, &hello, sizeof(hello));
    while (get(orders, &order, sizeof(order)) == sizeof(order)) {
        memset(&answer, 0, sizeof(answer));
        obey(engine, memories, &order, &answer);
        put(answers, &answer, sizeof(answer));
    }
    hte_destroy(engine);
    if (getenv("TARGET_ALLOC") == NULL) {
        munmap(memories[0].addr, total);
    }
}

/* argv: program "target" orders answers name addr {length permission}... */
void target_main(int argc, char **argv)
{
    struct target_buffer buffers[TARGET_BUFFERS_MAX];
    struct place         place;
    unsigned             i, count;

    if (argc < 8 || strcmp(argv[1], "target") != 0) {
        if (argc == 2) {
            cmocka_set_test_filter(argv[1]);
        }
        return;
    }
    change_process();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* forgotten when the user changes */
    count = (unsigned)(argc - 6) / 2;
    for (i = 0; i < count; ++i) {
        buffers[i].length     = strtoull(argv[6 + 2 * i], NULL, 10);
        buffers[i].permission = atoi(argv[7 + 2 * i]);
    }
    place = (struct place){.name = argv[4], .addr = strtoull(argv[5], NULL, 10)};
    run(buffers, count, &place, atoi(argv[2]), atoi(argv[3]));
    exit(0);
}

/* ---- in the test's process ---- */

static void die(const char *what)
{
    fprintf(stderr, "target: %s\n", what);
    abort();
}

static void execute(const struct target_buffer *buffers, unsigned count, const struct place *place, int orders,
                    int answers)
{
    char     text[4 + 2 * TARGET_BUFFERS_MAX][256], *argv[7 + 2 * TARGET_BUFFERS_MAX] = {"target", "target"};
    unsigned i;

    snprintf(text[0], sizeof(text[0]), "%d", orders);
    snprintf(text[1], sizeof(text[1]), "%d", answers);
    snprintf(text[2], sizeof(text[2]), "%s", place->name);
    snprintf(text[3], sizeof(text[3]), "%llu", (unsigned long long)place->addr);
    for (i = 0; i < count; ++i) {
        snprintf(text[4 + 2 * i], sizeof(text[0]), "%zu", buffers[i].length);
        snprintf(text[5 + 2 * i], sizeof(text[0]), "%d", buffers[i].permission);
    }
    for (i = 0; i < 4 + 2 * count; ++i) {
        argv[2 + i] = text[i];
    }
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* exec: a process that forked with UCX in use is no good ground for another UCX. */
static void start(struct target *target, const struct target_buffer *buffers, unsigned count, const struct place *place)
{
    int          orders[2], answers[2];
    struct hello hello;
    unsigned     i;

    if (pipe(orders) != 0 || pipe(answers) != 0) {
        die("pipe");
    }
    fcntl(orders[1], F_SETFD, FD_CLOEXEC);
    fcntl(answers[0], F_SETFD, FD_CLOEXEC);
    target->pid = fork();
    if (target->pid == 0) {
        execute(buffers, count, place, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    target->orders  = orders[1];
    target->answers = answers[0];
    target->count   = count;
    if (get(target->answers, &hello, sizeof(hello)) != sizeof(hello)) {
        die("did not start");
    }
    memcpy(target->name, hello.name, sizeof(target->name));
    for (i = 0; i < count; ++i) {
        target->addr[i]   = hello.addr[i];
        target->length[i] = buffers[i].length;
    }
}

void target_start(struct target *target, const struct target_buffer *buffers, unsigned count)
{
    start(target, buffers, count, &(const struct place){.name = "127.0.0.1"});
}

int target_start_again(struct target *target, const struct target_buffer *buffers, unsigned count)
{
    uint64_t addr = target->addr[0];
    char     name[sizeof(target->name)];

    snprintf(name, sizeof(name), "%s", target->name);
    start(target, buffers, count, &(const struct place){.name = name, .addr = addr});
    return target->addr[0] == addr;
}

static int reap(struct target *target)
{
    int status = 0;

    close(target->orders);
    close(target->answers);
    waitpid(target->pid, &status, 0);
    return status;
}

void target_kill(struct target *target)
{
    kill(target->pid, SIGKILL);
    reap(target);
}

void target_pause(struct target *target)
{
    int status;

    kill(target->pid, SIGSTOP);
    waitpid(target->pid, &status, WUNTRACED);
}

void target_resume(struct target *target)
{
    kill(target->pid, SIGCONT);
}

void target_stop(struct target *target)
{
    int status = reap(target);

    if (status != 0) {
        fprintf(stderr, "target: wait status 0x%x\n", (unsigned)status);
        die("did not end well");
    }
}

static int64_t ask(struct target *target, const struct order *order, struct answer *answer)
{
    if (write(target->orders, order, sizeof(*order)) != sizeof(*order) ||
        get(target->answers, answer, sizeof(*answer)) != sizeof(*answer)) {
        die("does not answer");
    }
    return answer->value;
}

static int64_t ask_range(struct target *target, char what, unsigned index, size_t offset, size_t length, uint32_t seed)
{
    struct order  order = {.what = what, .index = index, .offset = offset, .length = length, .seed = seed};
    struct answer answer;

    return ask(target, &order, &answer);
}

int target_verify(struct target *target, unsigned index, size_t offset, size_t length, uint32_t seed)
{
    return (int)ask_range(target, 'v', index, offset, length, seed);
}

void target_fill(struct target *target, unsigned index, size_t offset, size_t length, uint32_t seed)
{
    ask_range(target, 'f', index, offset, length, seed);
}

void target_register_more(struct target *target)
{
    ask_range(target, 'r', target->count - 1, 0, 0, 0);
}

void target_unregister(struct target *target, unsigned index)
{
    ask_range(target, 'u', index, 0, 0, 0);
}

void target_protect(struct target *target, unsigned index, size_t offset, size_t length)
{
    ask_range(target, 'p', index, offset, length, 0);
}

int target_notifications(struct target *target, char *text, size_t size)
{
    struct order  order = {.what = 'n'};
    struct answer answer;
    int64_t       count = ask(target, &order, &answer);

    snprintf(text, size, "%s", answer.text);
    return (int)count;
}
