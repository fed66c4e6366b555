/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "real_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hte_net.h"
#include "meta_test.h"

#define PASSWORD "pass/word"
#define ARGS_MAX 24
#define START_MS 20000

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          length  = sizeof(address);
    int                fd      = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static bool is_installed(const char *program)
{
    char command[128];

    snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* ---- command lines ------------------------------------------------------------------- */

struct command {
    char text[ARGS_MAX][160];
    int  num_args;
};

static void add(struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct command *command, const char *format, ...)
{
    va_list args;

    assert_true(command->num_args < ARGS_MAX - 1);
    va_start(args, format);
    vsnprintf(command->text[command->num_args++], sizeof(command->text[0]), format, args);
    va_end(args);
}

static void make_http(const struct real_server *server, struct command *command)
{
    add(command, "%s", HTE_HTTP_STORE);
    add(command, "--listen=127.0.0.1");
    add(command, "--port=%u", server->port);
    if (server->keeps) {
        add(command, "--file=%s/store.json", server->folder);
    }
}

static void make_redis(const struct real_server *server, struct command *command)
{
    add(command, "redis-server");
    add(command, "--port");
    add(command, "%u", server->port);
    add(command, "--bind");
    add(command, "127.0.0.1");
    add(command, "--dir");
    add(command, "%s", server->folder);
    add(command, "--save");
    add(command, "%s", "");
    add(command, "--appendonly");
    add(command, server->keeps ? "yes" : "no");
    add(command, "--requirepass");
    add(command, "%s", PASSWORD);
}

static void make_etcd(const struct real_server *server, struct command *command)
{
    add(command, "etcd");
    add(command, "--data-dir=%s/data", server->folder);
    add(command, "--listen-client-urls=http://127.0.0.1:%u", server->port);
    add(command, "--advertise-client-urls=http://127.0.0.1:%u", server->port);
    add(command, "--listen-peer-urls=http://127.0.0.1:%u", server->peer_port);
    add(command, "--initial-advertise-peer-urls=http://127.0.0.1:%u", server->peer_port);
    add(command, "--initial-cluster=default=http://127.0.0.1:%u", server->peer_port);
    add(command, "--unsafe-no-fsync");
}

static void make_command(const struct real_server *server, struct command *command)
{
    memset(command, 0, sizeof(*command));
    if (strcmp(server->kind, "http") == 0) {
        make_http(server, command);
    } else if (strcmp(server->kind, "redis") == 0) {
        make_redis(server, command);
    } else {
        make_etcd(server, command);
    }
}

/* ---- life -------------------------------------------------------------------------------- */

static void run(const struct real_server *server, struct command *command)
{
    char *argv[ARGS_MAX + 1] = {NULL}, log[96];
    int   i, fd;

    snprintf(log, sizeof(log), "%s/log", server->folder);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (i = 0; i < command->num_args; i++) {
        argv[i] = command->text[i];
    }
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

static void show_log(const struct real_server *server)
{
    char command[128];

    snprintf(command, sizeof(command), "tail -n 20 %s/log", server->folder);
    if (system(command) != 0) {
        puts("(no log)");
    }
}

/* A listening socket is not yet an answer: etcd elects itself first. A put is one. */
static bool answers(const struct real_server *server)
{
    struct hte_store_options options = {.answer_ms = 1000};
    struct hte_store        *store   = NULL;
    bool                     good    = hte_store_open(server->url, &options, &store, NULL) == 0 &&
                hte_store_put(store, "started", "yes", NULL) == 0;

    hte_store_close(store);
    return good;
}

void real_server_start(struct real_server *server)
{
    int64_t        deadline = hte_net_now() + START_MS;
    struct command command;

    make_command(server, &command);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        run(server, &command);
    }
    while (!answers(server)) {
        if (hte_net_now() > deadline || waitpid(server->pid, NULL, WNOHANG) != 0) {
            show_log(server);
            fail_msg("%s does not start", server->kind);
        }
        usleep(50000);
    }
}

void real_server_stop(struct real_server *server)
{
    if (server->pid != 0) {
        kill(server->pid, SIGTERM);
        waitpid(server->pid, NULL, 0);
        server->pid = 0;
    }
}

bool real_server_create(struct real_server *server, const char *kind, bool keeps, char *reason, size_t reason_size)
{
    const char       *program = strcmp(kind, "http") == 0    ? HTE_HTTP_STORE
                                : strcmp(kind, "redis") == 0 ? "redis-server"
                                                             : kind;
    struct hte_store *store   = NULL;
    struct hte_why    why;

    memset(server, 0, sizeof(*server));
    server->kind  = kind;
    server->keeps = keeps;
    if (!is_installed(program)) {
        snprintf(reason, reason_size, "%s is not installed", program);
        return false;
    }
    snprintf(server->folder, sizeof(server->folder), "/tmp/hte_store.XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    server->port      = free_port();
    server->peer_port = free_port();
    if (strcmp(kind, "redis") == 0) {
        snprintf(server->url, sizeof(server->url), "redis://:pass%%2fword@127.0.0.1:%u/3", server->port);
    } else {
        snprintf(server->url, sizeof(server->url), "%s://127.0.0.1:%u", kind, server->port);
    }
    if (hte_store_open(server->url, NULL, &store, &why) == HTE_ERR_NOT_IMPLEMENTED) {
        snprintf(reason, reason_size, "%.100s", why.text);
        return false;
    }
    hte_store_close(store);
    real_server_start(server);
    return true;
}

void real_server_destroy(struct real_server *server)
{
    char command[128];

    real_server_stop(server);
    snprintf(command, sizeof(command), "rm -rf %s", server->folder);
    if (server->folder[0] != '\0' && system(command) != 0) {
        print_message("%s is left\n", server->folder);
    }
}
