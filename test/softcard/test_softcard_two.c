/* SPDX-License-Identifier: BSD-3-Clause */

/* Two processes on one fabric. Each end is this program once more, playing a role. */

#include "sc_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* 8 * 268 ms: so long may the other process be kept from its work. */
static const struct options normal = {.timeout = 16, .retry_cnt = 7};

static void swap(int fd, const void *mine, void *theirs, size_t size)
{
    if (send(fd, mine, size, MSG_NOSIGNAL) == (ssize_t)size && read(fd, theirs, size) == (ssize_t)size) {
        return;
    }
    if (plays_role) {
        exit(ROLE_ALONE);
    }
    fail_msg("%s", "the other process is gone");
}

static void meet(int fd, struct end *end, struct address *peer, const struct options *options)
{
    struct address mine;
    char           ready = 1;

    end_open(end, options);
    mine = end_address(end);
    swap(fd, &mine, peer, sizeof(mine));
    end_connect(end, peer, options);
    swap(fd, &ready, &ready, 1);
}

/* Sends and writes of many sizes one way, while packets are lost. */
static void carry(int fd, int sender)
{
    struct end     end;
    struct address peer;
    uint64_t       word, expected;
    char           done = 1;

    meet(fd, &end, &peer, &normal);
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t length = 1 + i * 977 % 30000;

        if (!sender) {
            end_post_recv(&end, i, 400000, 32768);
            swap(fd, &done, &done, 1);
            end_expect(&end, i, IBV_WC_SUCCESS);
            end_fill(end.memory + 200000, length, i);
            assert_memory_equal(end.memory + 200000, end.memory + 400000, length);
            assert_memory_equal(end.memory + 200000, end.memory + 1024, length);
            swap(fd, &done, &done, 1);
            continue;
        }
        end_fill(end.memory, length, i);
        swap(fd, &done, &done, 1);
        assert_int_equal(end_post(&end, 1, IBV_WR_RDMA_WRITE, 0, length, &peer, 1024), 0);
        assert_int_equal(end_post(&end, 2, IBV_WR_SEND, 0, length, NULL, 0), 0);
        assert_int_equal(end_post(&end, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 600000, 8, &peer, 0), 0);
        assert_int_equal(end_post(&end, 4, IBV_WR_RDMA_READ, 700000, length, &peer, 1024), 0);
        for (uint64_t id = 1; id <= 4; id++) {
            end_expect(&end, id, IBV_WC_SUCCESS);
        }
        memcpy(&word, end.memory + 600000, sizeof(word));
        expected = i;
        assert_int_equal(word, expected);
        assert_memory_equal(end.memory, end.memory + 700000, length);
        swap(fd, &done, &done, 1);
    }
    wait_for_late(&end); /* and it did nothing */
    swap(fd, &done, &done, 1);
    end_close(&end);
}

static void sleep_and_wake(int fd, int sender)
{
    struct end     end;
    struct address peer;
    char           done = 1;
    struct ibv_cq *cq;
    void          *context;

    meet(fd, &end, &peer, &normal);
    for (uint64_t id = 0; id < 50; id++) {
        if (sender) {
            swap(fd, &done, &done, 1);
            usleep(500);
            assert_int_equal(end_post(&end, id, IBV_WR_SEND, 0, 8, NULL, 0), 0);
            end_expect(&end, id, IBV_WC_SUCCESS);
        } else {
            end_post_recv(&end, id, 0, 64);
            assert_int_equal(ibv_req_notify_cq(end.cq, 0), 0);
            swap(fd, &done, &done, 1);
            wait_readable(end.channel->fd, "an event of the completion queue");
            assert_int_equal(ibv_get_cq_event(end.channel, &cq, &context), 0);
            ibv_ack_cq_events(cq, 1);
            end_expect(&end, id, IBV_WC_SUCCESS);
        }
        swap(fd, &done, &done, 1);
    }
    end_close(&end);
}

/* A target that computes: its card works for it. */
static void computing_target(int fd, int sender)
{
    struct end     end;
    struct address peer;
    char           done = 1;

    meet(fd, &end, &peer, &normal);
    if (sender) {
        for (uint64_t id = 0; id < 1000; id++) {
            assert_int_equal(end_post(&end, id, IBV_WR_RDMA_WRITE, 0, 8192, &peer, 0), 0);
            end_expect(&end, id, IBV_WC_SUCCESS);
        }
        swap(fd, &done, &done, 1);
    } else {
        swap(fd, &done, &done, 1); /* asleep in read() */
    }
    end_close(&end);
}

static void be_killed(int fd, int first)
{
    struct end     end;
    struct address peer;

    (void)first;
    meet(fd, &end, &peer, &normal);
    pause();
}

static const struct {
    const char *name;
    void (*run)(int fd, int first);
} roles[] = {{"carry", carry}, {"wake", sleep_and_wake}, {"compute", computing_target}, {"die", be_killed}};

/* One end of a test, in a process of its own: there a failed assertion is its status. */
int test_play(const char *name, int fd, int first)
{
    plays_role = 1;
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        if (strcmp(name, roles[i].name) == 0) {
            roles[i].run(fd, first);
            return 0;
        }
    }
    return 2;
}

static pid_t begin(const char *name, int fd, int other_fd, int first)
{
    char  number[16];
    pid_t child = fork();

    if (child == 0) {
        close(other_fd);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(200); /* two that wait for each other; later than either's own patience */
        snprintf(number, sizeof(number), "%d", fd);
        execl("/proc/self/exe", "test_softcard", name, number, first ? "1" : "0", (char *)NULL);
        _exit(127);
    }
    return child;
}

/* A wait in vain is said once, for both; anything else that failed goes first. */
static void judge(const int status[2])
{
    int waited = 0;

    for (int i = 0; i < 2; i++) {
        int code = WIFEXITED(status[i]) ? WEXITSTATUS(status[i]) : -1;

        if (code == ROLE_WAITED || (WIFSIGNALED(status[i]) && WTERMSIG(status[i]) == SIGALRM)) {
            waited = 1;
        } else if (code != ROLE_ALONE) {
            assert_int_equal(code, 0);
        }
    }
    if (waited) {
        still_not("the end of both processes");
    }
    assert_true(status[0] == 0 && status[1] == 0);
}

static void in_two_processes(const char *name)
{
    int   fds[2], status[2];
    pid_t child[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        child[i] = begin(name, fds[i], fds[!i], i == 0);
    }
    close(fds[0]);
    close(fds[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(child[i], &status[i], 0), child[i]);
    }
    judge(status);
}

void test_processes(void **state)
{
    (void)state;
    in_two_processes("carry");
}

void test_processes_lossy(void **state)
{
    struct sc_fabric *fabric = fabric_now();

    (void)state;
    fabric->kept          = 1;
    fabric->port[0].lossy = 3000;
    fabric->faulty        = 1;
    in_two_processes("carry");
    assert_true(fabric->port[0].dropped > 0);
    mend();
    fabric->kept = 0;
    sc_fabric_remove(fabric);
}

/* One packet of each kind comes late, after what the timeout of 268 ms does. */
void test_processes_late(void **state)
{
    struct sc_fabric *fabric = fabric_now();

    (void)state;
    fabric->kept = 1;
    for (uint32_t op = SC_OP_SEND; op <= SC_OP_ATOMIC_RESP; op++) {
        delay_rule(op, 0, 1u << op, 20 + 7 * op, 400);
    }
    in_two_processes("carry");
    for (uint32_t op = SC_OP_SEND; op <= SC_OP_ATOMIC_RESP; op++) {
        assert_true(op == SC_OP_CMP_SWAP || fabric->rule[op].done >= 1);
    }
    mend();
    fabric->kept = 0;
    sc_fabric_remove(fabric);
}

void test_events(void **state)
{
    (void)state;
    in_two_processes("wake");
}

void test_computing_target(void **state)
{
    (void)state;
    in_two_processes("compute");
}

/* One that is killed answers no more, and leaves nothing that disturbs those who come. */
void test_killed(void **state)
{
    struct end     end;
    struct address peer;
    int            fds[2];
    pid_t          child;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    child = begin("die", fds[1], fds[0], 0);
    meet(fds[0], &end, &peer, &normal);
    assert_int_equal(end_post(&end, 1, IBV_WR_RDMA_WRITE, 0, 64, &peer, 0), 0);
    end_expect(&end, 1, IBV_WC_SUCCESS);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(end_post(&end, 2, IBV_WR_RDMA_WRITE, 0, 64, &peer, 0), 0);
    end_expect(&end, 2, IBV_WC_RETRY_EXC_ERR);
    end_close(&end);
    close(fds[0]);
    close(fds[1]);
}
