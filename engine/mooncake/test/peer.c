/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transfer_engine_c.h"

#define GUARD 0xa5

struct order {
    char     what;
    uint32_t seed;
    size_t   offset, length;
    char     text[64];
};

struct answer {
    int64_t value;
    char    text[256];
};

struct hello {
    char     name[64];
    uint64_t addr;
};

/* ---- bytes ---- */

static unsigned char pattern(uint32_t seed, size_t offset)
{
    uint32_t x = (seed + (uint32_t)(offset >> 3)) * 2654435761u;

    return (unsigned char)((x >> 8) + (offset & 7) * 31 + seed);
}

void pattern_fill(void *buffer, uint32_t seed)
{
    size_t i;

    for (i = 0; i < PEER_SIZE; ++i) {
        ((unsigned char *)buffer)[i] = pattern(seed, i);
    }
}

int pattern_verify(const void *buffer, size_t offset, size_t length, uint32_t seed)
{
    const unsigned char *bytes = buffer;
    size_t               i;

    for (i = offset; i < offset + length; ++i) {
        if (bytes[i] != pattern(seed, i)) {
            return 0;
        }
    }
    for (i = PEER_SIZE; i < PEER_SIZE + PEER_GUARD; ++i) {
        if (bytes[i] != GUARD) {
            return 0;
        }
    }
    return 1;
}

void *buffer_new(void)
{
    void *buffer = aligned_alloc(4096, PEER_SIZE + PEER_GUARD);

    if (buffer == NULL) {
        abort();
    }
    memset(buffer, GUARD, PEER_SIZE + PEER_GUARD);
    return buffer;
}

/* ---- both sides of the pipes ---- */

static void die(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(errno), hteMooncakeError());
    _exit(2);
}

static void put(int fd, const void *bytes, size_t length)
{
    if (write(fd, bytes, length) != (ssize_t)length) {
        die("write");
    }
}

static size_t get(int fd, void *bytes, size_t length)
{
    size_t  done = 0;
    ssize_t n;

    while (done < length) {
        n = read(fd, (char *)bytes + done, length - done);
        if (n <= 0 && errno != EINTR) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

/* ---- in the peer's process ---- */

static int64_t take_notifications(transfer_engine_t engine, char *text, size_t size)
{
    int           count    = 0;
    notify_msg_t *messages = getNotifsFromEngine(engine, &count);

    if (count > 0) {
        snprintf(text, size, "%s/%s", messages[count - 1].name, messages[count - 1].msg);
    }
    freeNotifsMsgBuf(messages, count);
    return count;
}

static int64_t send_notification(transfer_engine_t engine, const char *name)
{
    notify_msg_t message = {.name = (char *)"peer", .msg = (char *)"hello"};
    segment_id_t segment = openSegment(engine, name);

    return segment < 0 ? -1000 : genNotifyInEngine(engine, (uint64_t)segment, message);
}

static struct answer obey(transfer_engine_t engine, void *buffer, const struct order *order)
{
    struct answer answer = {0};

    switch (order->what) {
    case 'f':
        pattern_fill(buffer, order->seed);
        break;
    case 'v':
        answer.value = pattern_verify(buffer, order->offset, order->length, order->seed);
        break;
    case 'n':
        answer.value = take_notifications(engine, answer.text, sizeof(answer.text));
        break;
    case 's':
        answer.value = send_notification(engine, order->text);
        break;
    }
    return answer;
}

void peer_main(int argc, char **argv)
{
    struct hello      hello = {0};
    transfer_engine_t engine;
    struct answer     answer;
    struct order      order;
    void             *buffer;

    if (argc != 2 || strcmp(argv[1], "peer") != 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
    if (engine == NULL || getLocalIpAndPort(engine, hello.name, sizeof(hello.name)) != 0) {
        die("engine of the peer");
    }
    buffer = buffer_new();
    if (registerLocalMemory(engine, buffer, PEER_SIZE, "*", 1) != 0) {
        die("memory of the peer");
    }
    hello.addr = (uintptr_t)buffer;
    put(STDOUT_FILENO, &hello, sizeof(hello));
    while (get(STDIN_FILENO, &order, sizeof(order)) == sizeof(order)) {
        answer = obey(engine, buffer, &order);
        put(STDOUT_FILENO, &answer, sizeof(answer));
    }
    if (unregisterLocalMemory(engine, buffer) != 0) {
        die("end of the peer");
    }
    destroyTransferEngine(engine);
    free(buffer);
    exit(0);
}

/* ---- in the test's process ---- */

void peer_start(struct peer *peer)
{
    int          orders[2], answers[2];
    struct hello hello;

    if (pipe(orders) != 0 || pipe(answers) != 0) {
        die("pipe");
    }
    peer->pid = fork();
    if (peer->pid == 0) {
        dup2(orders[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        close(orders[1]); /* else its end is never seen there */
        close(answers[0]);
        execl("/proc/self/exe", "peer", "peer", (char *)NULL);
        die("exec");
    }
    close(orders[0]);
    close(answers[1]);
    peer->orders  = orders[1];
    peer->answers = answers[0];
    if (get(peer->answers, &hello, sizeof(hello)) != sizeof(hello)) {
        die("start of the peer");
    }
    memcpy(peer->name, hello.name, sizeof(peer->name));
    peer->addr = hello.addr;
}

static void close_pipes(struct peer *peer)
{
    close(peer->orders);
    close(peer->answers);
}

void peer_stop(struct peer *peer)
{
    int status;

    close_pipes(peer);
    if (waitpid(peer->pid, &status, 0) != peer->pid || status != 0) {
        die("the peer did not end well");
    }
}

void peer_signal(struct peer *peer, int signal)
{
    int status;

    kill(peer->pid, signal);
    if (waitpid(peer->pid, &status, WUNTRACED) != peer->pid) {
        die("waitpid");
    }
    if (signal == SIGKILL) {
        close_pipes(peer);
    }
}

static struct answer ask(struct peer *peer, const struct order *order)
{
    struct answer answer;

    put(peer->orders, order, sizeof(*order));
    if (get(peer->answers, &answer, sizeof(answer)) != sizeof(answer)) {
        die("the peer does not answer");
    }
    return answer;
}

void peer_fill(struct peer *peer, uint32_t seed)
{
    ask(peer, &(struct order){.what = 'f', .seed = seed});
}

int peer_verify(struct peer *peer, size_t offset, size_t length, uint32_t seed)
{
    return (int)ask(peer, &(struct order){.what = 'v', .seed = seed, .offset = offset, .length = length}).value;
}

int peer_notifications(struct peer *peer, char *text, size_t size)
{
    struct answer answer = ask(peer, &(struct order){.what = 'n'});

    snprintf(text, size, "%s", answer.text);
    return (int)answer.value;
}

int peer_notify(struct peer *peer, const char *segment)
{
    struct order order = {.what = 's'};

    snprintf(order.text, sizeof(order.text), "%s", segment);
    return (int)ask(peer, &order).value;
}
