/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lab's cable: carries Ethernet frames between two guests on rails a, b and the management network m, and loses
 * them on demand.
 *
 *   cable        works in the current directory; sockets (unix datagram):
 *     <rail>.<n>.in   written by guest n          <rail>.<n>   read by guest n          cable.ctl   commands
 *
 * The kernel holds only a few datagrams per unix socket and QEMU stops sending when its peer does not read; so the
 * cable reads at once, whatever happens, and keeps the frames in queues of its own.
 *
 * Commands, each answered with "ok ..." when in force, or "error ...":
 *   set RAIL FROM drop N acks N loss PERCENT delay MS after N control PERCENT     what happens to frames that guest
 * FROM sends on RAIL (drop: all, those under way too; acks: RoCE acknowledgements and read responses; after: let N more
 * RoCE frames pass, then all; -1 none; control: loss of RoCE datagrams only) count        frames passed and lost, per
 * rail and direction
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define RAILS     3
#define LANES     (RAILS * 2) /* a lane is one direction of a rail */
#define QUEUE     8192        /* frames; a power of two */
#define BURST     64
#define FRAME_MAX 65536
#define ROCE_PORT 4791

static const char rail_names[RAILS + 1] = "abm";

struct frame {
    int64_t  due; /* ns */
    uint32_t length;
    uint8_t *data;
};

struct lane {
    int                in, out;
    struct sockaddr_un to;
    int                connected;
    int                drop, acks;
    double             loss;
    int64_t            delay; /* ns */
    long               after;
    double             control;
    uint64_t           passed, lost, overflown;
    unsigned           head, tail;
    struct frame       queue[QUEUE];
};

static struct lane lanes[LANES];

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int dgram_bind(const char *path)
{
    struct sockaddr_un sa   = {.sun_family = AF_UNIX};
    int                fd   = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int                room = 4 << 20;

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    unlink(path);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        fprintf(stderr, "cable: cannot bind %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return fd;
}

static void lane_open(struct lane *lane, char rail, int from)
{
    char path[32];
    int  room = 4 << 20;

    snprintf(path, sizeof(path), "%c.%d.in", rail, from);
    lane->in  = dgram_bind(path);
    lane->out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(lane->out, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    lane->to.sun_family = AF_UNIX;
    snprintf(lane->to.sun_path, sizeof(lane->to.sun_path), "%c.%d", rail, 3 - from);
    lane->after = -1;
}

/* The opcode of a RoCE v2 frame, -1 for any other. */
static int roce_opcode(const uint8_t *p, size_t length)
{
    size_t udp;

    if (length < 62) {
        return -1;
    }
    if (p[12] == 0x08 && p[13] == 0x00 && p[23] == 17) {
        udp = 14 + (size_t)(p[14] & 15) * 4;
    } else if (p[12] == 0x86 && p[13] == 0xdd && p[20] == 17) {
        udp = 54;
    } else {
        return -1;
    }
    if (udp + 9 > length || (p[udp + 2] << 8 | p[udp + 3]) != ROCE_PORT) {
        return -1;
    }
    return p[udp + 8];
}

/* RC read responses (0x0d .. 0x10), acknowledge (0x11), atomic acknowledge (0x12). */
static int opcode_is_ack(int opcode)
{
    return opcode >= 0x0d && opcode <= 0x12;
}

/* Unreliable datagrams (0x60 and on): what the transport's control packets are. */
static int opcode_is_datagram(int opcode)
{
    return opcode >= 0x60 && opcode < 0x80;
}

static int lane_loses(struct lane *lane, const uint8_t *data, size_t length)
{
    int opcode = -1;

    if (lane->drop) {
        return 1;
    }
    if (lane->acks || lane->after >= 0 || lane->control > 0) {
        opcode = roce_opcode(data, length);
    }
    if (lane->acks && opcode_is_ack(opcode)) {
        return 1;
    }
    if (lane->control > 0 && opcode_is_datagram(opcode) && drand48() * 100 < lane->control) {
        return 1;
    }
    if (lane->after == 0) {
        return 1;
    }
    if (lane->after > 0 && opcode >= 0) {
        lane->after--;
    }
    return lane->loss > 0 && drand48() * 100 < lane->loss;
}

static void lane_take(struct lane *lane, const uint8_t *data, size_t length)
{
    struct frame *f;

    if (lane_loses(lane, data, length)) {
        lane->lost++;
        return;
    }
    if (lane->head - lane->tail >= QUEUE) {
        lane->overflown++;
        return;
    }
    f         = &lane->queue[lane->head % QUEUE];
    f->data   = malloc(length);
    f->length = (uint32_t)length;
    f->due    = lane->delay > 0 ? now_ns() + lane->delay : 0;
    if (f->data == NULL) {
        lane->overflown++;
        return;
    }
    memcpy(f->data, data, length);
    lane->head++;
}

static void lane_discard(struct lane *lane)
{
    while (lane->tail != lane->head) {
        free(lane->queue[lane->tail++ % QUEUE].data);
        lane->lost++;
    }
}

/* Sends what is due. Returns ns until the next frame is due, 0 when the receiver is full, -1 when nothing waits. */
static int64_t lane_send(struct lane *lane)
{
    while (lane->tail != lane->head) {
        struct frame *f    = &lane->queue[lane->tail % QUEUE];
        int64_t       left = f->due > 0 ? f->due - now_ns() : 0;
        if (left > 0) {
            return left;
        }
        if (!lane->connected) {
            lane->connected = connect(lane->out, (struct sockaddr *)&lane->to, sizeof(lane->to)) == 0;
        }
        if (send(lane->out, f->data, f->length, 0) >= 0) {
            lane->passed++;
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            return 0;
        } else { /* the guest is not there: nobody to deliver to */
            lane->connected = 0;
            lane->lost++;
        }
        free(f->data);
        lane->tail++;
    }
    return -1;
}

static int lane_set(char *words, char *reply, size_t size)
{
    char   rail = 0, *r;
    int    from = 0, drop, acks;
    double loss, delay, control = 0;
    long   after;

    if (sscanf(words, "set %c %d drop %d acks %d loss %lf delay %lf after %ld control %lf", &rail, &from, &drop, &acks,
               &loss, &delay, &after, &control) < 7 ||
        (r = strchr(rail_names, rail)) == NULL || from < 1 || from > 2) {
        snprintf(reply, size, "error: not understood: %s", words);
        return -1;
    }
    struct lane *lane = &lanes[(r - rail_names) * 2 + from - 1];
    lane->drop        = drop;
    lane->acks        = acks;
    lane->loss        = loss;
    lane->delay       = (int64_t)(delay * 1e6);
    lane->after       = after;
    lane->control     = control;
    if (drop) {
        lane_discard(lane);
    }
    snprintf(reply, size, "ok");
    return 0;
}

static void lanes_count(char *reply, size_t size)
{
    size_t at = (size_t)snprintf(reply, size, "ok");

    for (int i = 0; i < LANES && at < size; i++) {
        at += (size_t)snprintf(reply + at, size - at, " %c%d=%llu/%llu/%llu", rail_names[i / 2], i % 2 + 1,
                               (unsigned long long)lanes[i].passed, (unsigned long long)lanes[i].lost,
                               (unsigned long long)lanes[i].overflown);
    }
}

static void control_serve(int fd)
{
    struct sockaddr_un from;
    socklen_t          length = sizeof(from);
    char               words[256], reply[512];
    ssize_t            n = recvfrom(fd, words, sizeof(words) - 1, 0, (struct sockaddr *)&from, &length);

    if (n <= 0) {
        return;
    }
    words[n] = '\0';
    if (strncmp(words, "count", 5) == 0) {
        lanes_count(reply, sizeof(reply));
    } else {
        lane_set(words, reply, sizeof(reply));
    }
    sendto(fd, reply, strlen(reply), 0, (struct sockaddr *)&from, length);
}

static void lane_receive(struct lane *lane)
{
    static uint8_t data[FRAME_MAX];

    for (int i = 0; i < BURST; i++) {
        ssize_t n = recv(lane->in, data, sizeof(data), 0);
        if (n <= 0) {
            break;
        }
        lane_take(lane, data, (size_t)n);
        lane_send(lane);
    }
}

int main(void)
{
    struct pollfd set[1 + 2 * LANES];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    set[0].fd     = dgram_bind("cable.ctl");
    set[0].events = POLLIN;
    for (int i = 0; i < LANES; i++) {
        lane_open(&lanes[i], rail_names[i / 2], i % 2 + 1);
        set[1 + i].fd             = lanes[i].in;
        set[1 + i].events         = POLLIN;
        set[1 + LANES + i].events = POLLOUT;
    }
    for (;;) {
        int64_t wait = -1;
        for (int i = 0; i < LANES; i++) {
            int64_t left          = lane_send(&lanes[i]);
            set[1 + LANES + i].fd = left == 0 ? lanes[i].out : -1; /* woken when the receiver has room again */
            if (left > 0 && (wait < 0 || left < wait)) {
                wait = left;
            }
        }
        struct timespec timeout = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        if (ppoll(set, 1 + 2 * LANES, wait < 0 ? NULL : &timeout, NULL) < 0) {
            continue;
        }
        if (set[0].revents != 0) {
            control_serve(set[0].fd);
        }
        for (int i = 0; i < LANES; i++) {
            if (set[1 + i].revents != 0) {
                lane_receive(&lanes[i]);
            }
        }
    }
}
