/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lab's agent: process 1 of a guest. It runs commands for the host side, which reaches it through a virtio serial
 * port, and for the other guests (mpirun's remote daemons), which reach it by TCP on the management network.
 *
 *   agent serve PORT [TCPADDR]     serve requests from the serial port (and TCP)
 *   agent rsh HOST COMMAND...      run COMMAND on HOST by its agent; for Open MPI's plm_rsh_agent
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define CHANNELS_MAX 32
#define JOBS_MAX     256
#define DRAIN_MS     200 /* leftover children of a finished command may keep its pipes open: wait so long */
#define CGROUP_ROOT  "/sys/fs/cgroup"

struct channel {
    int      fd; /* -1: free */
    size_t   fill;
    size_t   room;
    uint8_t *buffer;
};

struct job {
    int      used;
    int      channel;
    uint32_t id;
    unsigned serial;  /* names the cgroup */
    pid_t    pid;     /* 0 once reaped */
    int      pipe[2]; /* stdout, stderr; -1 once closed */
    int      status;
    int64_t  reaped;
};

static struct channel channels[CHANNELS_MAX];
static struct job     jobs[JOBS_MAX];
static unsigned       job_serial;
static int            serial_fd = -1; /* channel 0 */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- cgroups: the only thing that also catches a command's daemons ---- */

static void cgroup_path(char *path, size_t size, unsigned serial, const char *file)
{
    snprintf(path, size, CGROUP_ROOT "/job%u%s", serial, file);
}

static int file_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc;

    if (fd < 0) {
        return -1;
    }
    rc = write_all(fd, text, strlen(text));
    close(fd);
    return rc;
}

static void job_kill(const struct job *job)
{
    char path[64];

    cgroup_path(path, sizeof(path), job->serial, "/cgroup.kill");
    if (file_put(path, "1") != 0 && job->pid > 0) {
        kill(-job->pid, SIGKILL);
    }
}

/* ---- jobs ---- */

static void child_run(unsigned serial, const char *cwd, char **env, char **argv, const int out[2])
{
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    char          path[64];
    sigset_t      none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    cgroup_path(path, sizeof(path), serial, "/cgroup.procs");
    (void)file_put(path, "0");
    setrlimit(RLIMIT_MEMLOCK, &unlimited);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out[0], 1);
    dup2(out[1], 2);
    if (chdir(cwd) != 0 && chdir("/") != 0) {
        _exit(126);
    }
    execvpe(argv[0], argv, env);
    dprintf(2, "lab: cannot run '%s' in the guest: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Splits the payload's strings; returns their number or -1. */
static int strings_split(char *text, size_t length, char **out, int max)
{
    int n = 0;

    if (length == 0 || text[length - 1] != '\0') {
        return -1;
    }
    for (char *p = text; p < text + length; p += strlen(p) + 1) {
        if (n == max - 1) {
            return -1;
        }
        out[n++] = p;
    }
    out[n] = NULL;
    return n;
}

static void job_refuse(int channel, uint32_t id, const char *why)
{
    uint8_t code[4];

    put32(code, 125);
    frame_send(channels[channel].fd, 'E', id, why, strlen(why));
    frame_send(channels[channel].fd, 'Q', id, code, sizeof(code));
}

static void job_start(int channel, uint32_t id, char *payload, size_t length)
{
    static char *words[4096];
    static char *env[2048];
    struct job  *job = NULL;
    char         path[64];
    int          out[2], err[2], n, nenv;

    for (int i = 0; i < JOBS_MAX && job == NULL; i++) {
        job = jobs[i].used ? NULL : &jobs[i];
    }
    n    = strings_split(payload, length, words, 4096);
    nenv = n >= 2 ? atoi(words[1]) : -1;
    if (job == NULL || nenv < 0 || nenv >= 2048 || n < nenv + 3) {
        job_refuse(channel, id, job == NULL ? "lab: too many commands at once\n" : "lab: malformed request\n");
        return;
    }
    memcpy(env, words + 2, (size_t)nenv * sizeof(*env));
    env[nenv] = NULL;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        job_refuse(channel, id, "lab: no more pipes in the guest\n");
        return;
    }
    memset(job, 0, sizeof(*job));
    job->used    = 1;
    job->channel = channel;
    job->id      = id;
    job->serial  = ++job_serial;
    cgroup_path(path, sizeof(path), job->serial, "");
    (void)mkdir(path, 0755);
    for (char **v = env; *v != NULL; v++) { /* execvpe() searches our PATH, not the command's */
        if (strncmp(*v, "PATH=", 5) == 0) {
            setenv("PATH", *v + 5, 1);
        }
    }
    job->pid = fork();
    if (job->pid == 0) {
        int fds[2] = {out[1], err[1]};
        child_run(job->serial, words[0], env, words + 2 + nenv, fds);
    }
    close(out[1]);
    close(err[1]);
    job->pipe[0] = out[0];
    job->pipe[1] = err[0];
    if (job->pid < 0) {
        job->pid    = 0;
        job->status = 125 << 8;
        job->reaped = now_ms() - DRAIN_MS;
    }
}

static int job_exit_code(const struct job *job)
{
    return WIFSIGNALED(job->status) ? 128 + WTERMSIG(job->status) : WEXITSTATUS(job->status);
}

static void job_finish(struct job *job)
{
    char    path[64];
    uint8_t code[4];

    for (int k = 0; k < 2; k++) {
        if (job->pipe[k] >= 0) {
            close(job->pipe[k]);
        }
    }
    put32(code, (uint32_t)job_exit_code(job));
    if (job->channel >= 0) {
        frame_send(channels[job->channel].fd, 'Q', job->id, code, sizeof(code));
    }
    cgroup_path(path, sizeof(path), job->serial, "");
    (void)rmdir(path); /* fails while a daemon of the command lives on: so be it */
    job->used = 0;
}

static void job_read(struct job *job, int k)
{
    char    data[32768];
    ssize_t n = read(job->pipe[k], data, sizeof(data));

    if (n > 0) {
        if (job->channel >= 0) {
            frame_send(channels[job->channel].fd, k == 0 ? 'O' : 'E', job->id, data, (size_t)n);
        }
    } else if (n == 0 || errno != EINTR) {
        close(job->pipe[k]);
        job->pipe[k] = -1;
    }
}

static void jobs_reap(void)
{
    int   status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (int i = 0; i < JOBS_MAX; i++) {
            if (jobs[i].used && jobs[i].pid == pid) {
                jobs[i].pid    = 0;
                jobs[i].status = status;
                jobs[i].reaped = now_ms();
            }
        }
    }
}

static void jobs_finish_ready(void)
{
    for (int i = 0; i < JOBS_MAX; i++) {
        struct job *job = &jobs[i];
        if (job->used && job->pid == 0 &&
            ((job->pipe[0] < 0 && job->pipe[1] < 0) || now_ms() - job->reaped >= DRAIN_MS)) {
            job_finish(job);
        }
    }
}

/* ---- channels ---- */

static void channel_close(int c)
{
    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs[i].used && jobs[i].channel == c) {
            job_kill(&jobs[i]);
            jobs[i].channel = -1;
        }
    }
    close(channels[c].fd);
    channels[c].fd   = -1;
    channels[c].fill = 0;
}

static void frame_handle(int c, char type, uint32_t id, uint8_t *payload, size_t length)
{
    if (type == 'X') {
        job_start(c, id, (char *)payload, length);
    } else if (type == 'K') {
        for (int i = 0; i < JOBS_MAX; i++) {
            if (jobs[i].used && jobs[i].channel == c && jobs[i].id == id) {
                job_kill(&jobs[i]);
            }
        }
    } else if (type == 'T' && length == 8) {
        uint64_t        ns = get32(payload) | (uint64_t)get32(payload + 4) << 32;
        struct timespec t  = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
        clock_settime(CLOCK_REALTIME, &t);
    }
}

static void channel_read(int c)
{
    struct channel *ch = &channels[c];
    size_t          at = 0;
    ssize_t         n;

    if (ch->room - ch->fill < 65536) {
        ch->room   = ch->fill + 131072;
        ch->buffer = realloc(ch->buffer, ch->room);
    }
    n = ch->buffer == NULL ? -1 : read(ch->fd, ch->buffer + ch->fill, ch->room - ch->fill);
    if (n <= 0) {
        if (c == 0) {
            usleep(20000); /* the host end is not open (yet): a serial port has no end */
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            channel_close(c);
        }
        return;
    }
    ch->fill += (size_t)n;
    while (ch->fill - at >= FRAME_HEADER) {
        uint8_t *f      = ch->buffer + at;
        size_t   length = get32(f + 5);
        if (length > FRAME_MAX) {
            at = ch->fill;
            break;
        }
        if (ch->fill - at < FRAME_HEADER + length) {
            break;
        }
        frame_handle(c, (char)f[0], get32(f + 1), f + FRAME_HEADER, length);
        at += FRAME_HEADER + length;
    }
    memmove(ch->buffer, ch->buffer + at, ch->fill - at);
    ch->fill -= at;
}

static void channel_accept(int listener)
{
    int            fd      = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int            one     = 1;
    struct timeval timeout = {.tv_sec = 5};

    if (fd < 0) {
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    for (int c = 1; c < CHANNELS_MAX; c++) {
        if (channels[c].fd < 0) {
            channels[c].fd = fd;
            return;
        }
    }
    close(fd);
}

static int tcp_listen(const char *address)
{
    struct sockaddr_in sa  = {.sin_family = AF_INET, .sin_port = htons(AGENT_TCP_PORT)};
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int                one = 1;

    if (inet_pton(AF_INET, address, &sa.sin_addr) != 1) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, 16) != 0) {
        return -1;
    }
    return fd;
}

static int poll_add(struct pollfd *set, int n, int fd)
{
    set[n].fd     = fd;
    set[n].events = POLLIN;
    return n + 1;
}

static void serve_once(int signals, int listener)
{
    static struct pollfd    set[2 + CHANNELS_MAX + 2 * JOBS_MAX];
    static int              what[2 + CHANNELS_MAX + 2 * JOBS_MAX]; /* < 0: -1 - channel, else 2 * job + pipe */
    struct signalfd_siginfo info;
    int                     n = 0, waiting = 0;

    n = poll_add(set, n, signals);
    n = poll_add(set, n, listener); /* poll() skips a negative fd */
    for (int c = 0; c < CHANNELS_MAX; c++) {
        if (channels[c].fd >= 0) {
            what[n] = -1 - c;
            n       = poll_add(set, n, channels[c].fd);
        }
    }
    for (int i = 0; i < JOBS_MAX; i++) {
        waiting |= jobs[i].used && jobs[i].pid == 0;
        for (int k = 0; k < 2; k++) {
            if (jobs[i].used && jobs[i].pipe[k] >= 0) {
                what[n] = 2 * i + k;
                n       = poll_add(set, n, jobs[i].pipe[k]);
            }
        }
    }
    if (poll(set, (nfds_t)n, waiting ? 20 : -1) < 0) {
        return;
    }
    for (int i = 2; i < n; i++) { /* output first: it must be sent before the end of its command */
        if (set[i].revents == 0) {
            continue;
        }
        if (what[i] < 0) {
            channel_read(-1 - what[i]);
        } else if (jobs[what[i] / 2].used) {
            job_read(&jobs[what[i] / 2], what[i] % 2);
        }
    }
    if (set[0].revents != 0 && read(signals, &info, sizeof(info)) > 0) {
        jobs_reap();
    }
    if (set[1].revents != 0) {
        channel_accept(listener);
    }
    jobs_finish_ready();
}

static int serve(const char *port, const char *address)
{
    sigset_t mask;
    int      listener, signals;

    for (int c = 0; c < CHANNELS_MAX; c++) {
        channels[c].fd = -1;
    }
    serial_fd = open(port, O_RDWR | O_CLOEXEC);
    if (serial_fd < 0) {
        perror(port);
        return 1;
    }
    channels[0].fd = serial_fd;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signals  = signalfd(-1, &mask, SFD_CLOEXEC);
    listener = address == NULL ? -1 : tcp_listen(address);
    if (address != NULL && listener < 0) {
        perror(address);
    }
    const char *state = getenv("LAB_STATE");
    if (state == NULL) {
        state = "ready";
    }
    frame_send(serial_fd, 'S', 0, state, strlen(state));
    for (;;) {
        serve_once(signals, listener);
    }
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "serve") == 0) {
        return serve(argv[2], argc > 3 ? argv[3] : NULL);
    }
    if (argc >= 4 && strcmp(argv[1], "rsh") == 0) {
        return rsh(argv[2], argv + 3);
    }
    fprintf(stderr, "usage: agent serve PORT [ADDRESS] | agent rsh HOST COMMAND...\n");
    return 2;
}
