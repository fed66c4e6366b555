/* SPDX-License-Identifier: BSD-3-Clause */

/* The card itself: what the InfiniBand specification says that a card does, and each fault it can be told to have. */

#include "sc_test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct options normal, quick = { .timeout = 10, .retry_cnt = 2, .rnr_retry = 1 },
                            patient = { .timeout = 15, .retry_cnt = 2 };

static void fill(uint8_t *to, uint32_t length, unsigned seed)
{
    for (uint32_t i = 0; i < length; i++) {
        to[i] = (uint8_t)(seed + i * 7 + i / 251);
    }
}

static uint32_t rq_psn(struct end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr      attr;

    assert_int_equal(ibv_query_qp(end->qp, &attr, IBV_QP_RQ_PSN, &init), 0);
    return attr.rq_psn;
}

static void to_error(struct end *end)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    assert_int_equal(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}

static void test_messages(void **state)
{
    struct end    ends[2];
    struct ibv_wc wc;

    (void)state;
    pair_open(ends, &normal);
    fill(ends[0].memory, 5000, 3);
    end_post_recv(&ends[1], 9, 8192, 8192);
    assert_int_equal(end_post(&ends[0], 4, IBV_WR_SEND_WITH_IMM, 0, 5000, NULL, 0), 0);
    end_expect(&ends[0], 4, IBV_WC_SUCCESS);
    wc = end_wait(&ends[1]);
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.byte_len, 5000);
    assert_int_equal(wc.imm_data, 4);
    assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
    assert_memory_equal(ends[0].memory, ends[1].memory + 8192, 5000);
    assert_int_equal(rq_psn(&ends[1]), (0xfffff0 + 5) & 0xffffff); /* 5 packets of 1024 */
    pair_close(ends);
}

static void test_remote_memory(void **state)
{
    struct end     ends[2];
    struct address peer;
    uint64_t      *word;

    (void)state;
    pair_open(ends, &normal);
    peer = end_address(&ends[1]);
    word = (uint64_t *)(void *)(ends[1].memory + 512);
    fill(ends[0].memory, 300000, 5);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_RDMA_WRITE, 0, 300000, &peer, 4096), 0);
    end_expect(&ends[0], 1, IBV_WC_SUCCESS);
    assert_memory_equal(ends[0].memory, ends[1].memory + 4096, 300000);
    assert_int_equal(end_post(&ends[0], 2, IBV_WR_RDMA_READ, 500000, 300000, &peer, 4096), 0);
    end_expect(&ends[0], 2, IBV_WC_SUCCESS);
    assert_memory_equal(ends[0].memory, ends[0].memory + 500000, 300000);
    *word = 1;
    assert_int_equal(end_post(&ends[0], 3, IBV_WR_ATOMIC_CMP_AND_SWP, 900000, 8, &peer, 512), 0);
    assert_int_equal(end_post(&ends[0], 4, IBV_WR_ATOMIC_FETCH_AND_ADD, 900008, 8, &peer, 512), 0);
    end_expect(&ends[0], 3, IBV_WC_SUCCESS);
    end_expect(&ends[0], 4, IBV_WC_SUCCESS);
    assert_int_equal(*word, 78);
    assert_int_equal(*(uint64_t *)(void *)(ends[0].memory + 900008), 77);
    pair_close(ends);
}

/* What may not be done fails at both ends, and what was posted behind it is flushed in order. */
static void test_access(void **state)
{
    struct end     ends[2];
    struct address peer;

    (void)state;
    pair_open(ends, &normal);
    peer = end_address(&ends[1]);
    peer.rkey += 256;
    end_post_recv(&ends[1], 50, 0, 64);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_RDMA_WRITE, 0, 100, &peer, 0), 0);
    end_expect(&ends[0], 1, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(end_post(&ends[0], 2, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[0], 2, IBV_WC_WR_FLUSH_ERR);
    end_expect(&ends[1], 50, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(end_event(&ends[1]), IBV_EVENT_QP_ACCESS_ERR);
    pair_close(ends);
}

static void test_too_long(void **state)
{
    struct end ends[2];

    (void)state;
    pair_open(ends, &normal);
    end_post_recv(&ends[1], 50, 0, 64);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 65, NULL, 0), 0);
    end_expect(&ends[0], 1, IBV_WC_REM_INV_REQ_ERR);
    end_expect(&ends[1], 50, IBV_WC_LOC_LEN_ERR);
    pair_close(ends);
}

static void test_states(void **state)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
    struct end         end;

    (void)state;
    end_open(&end, &normal);
    assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), EINVAL);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), EINVAL); /* lacks everything */
    assert_int_equal(end_post(&end, 1, IBV_WR_SEND, 0, 8, NULL, 0), EINVAL);
    end_close(&end);
}

static void test_flush(void **state)
{
    struct end ends[2];

    (void)state;
    pair_open(ends, &normal);
    break_port(0, SC_PORT_MUTE);
    end_post_recv(&ends[0], 20, 0, 64);
    end_post_recv(&ends[0], 21, 0, 64);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_equal(end_post(&ends[0], id, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    }
    assert_true(end_is_quiet(&ends[0]));
    to_error(&ends[0]);
    for (uint64_t id = 1; id <= 3; id++) {
        end_expect(&ends[0], id, IBV_WC_WR_FLUSH_ERR);
    }
    end_expect(&ends[0], 20, IBV_WC_WR_FLUSH_ERR);
    end_expect(&ends[0], 21, IBV_WC_WR_FLUSH_ERR);
    mend();
    pair_close(ends);
}

static void test_not_ready(void **state)
{
    struct end ends[2];

    (void)state;
    pair_open(ends, &quick);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[0], 1, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_close(ends);
    pair_open(ends, &normal);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    assert_true(end_is_quiet(&ends[0]));
    end_post_recv(&ends[1], 5, 0, 64);
    end_expect(&ends[0], 1, IBV_WC_SUCCESS);
    end_expect(&ends[1], 5, IBV_WC_SUCCESS);
    pair_close(ends);
}

static void test_window(void **state)
{
    uint64_t   began;
    struct end ends[2];

    (void)state;
    pair_open(ends, &(struct options){ .timeout = 14, .retry_cnt = 2 }); /* 3 * 67 ms */
    break_port(0, SC_PORT_NOACK);
    end_post_recv(&ends[1], 5, 0, 64);
    began = now_ms();
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[1], 5, IBV_WC_SUCCESS); /* executed once, though never acknowledged */
    end_expect(&ends[0], 1, IBV_WC_RETRY_EXC_ERR);
    assert_in_range(now_ms() - began, 190, 1500);
    assert_int_equal(rq_psn(&ends[1]), 0xfffff1);
    mend();
    pair_close(ends);
}

/* Each kind of packet is lost, and twice there: executed once all the same. */
static void test_once(void **state)
{
    static const uint32_t actions[] = { SC_RULE_DROP, SC_RULE_DUPLICATE };
    struct end            ends[2];
    struct address        peer;
    uint64_t              added = 0;

    (void)state;
    for (unsigned a = 0; a < 2; a++) {
        for (uint32_t op = SC_OP_SEND; op <= SC_OP_ATOMIC_RESP; op++) {
            pair_open(ends, &(struct options){ .timeout = 8 });
            peer = end_address(&ends[1]);
            fill(ends[0].memory, 6000, op);
            for (uint64_t id = 0; id < 8; id++) {
                end_post_recv(&ends[1], id, 8192 * (uint32_t)(id + 1), 8192);
            }
            break_rule(actions[a], 1u << op, 2, 1);
            for (uint64_t id = 0; id < 4; id++) {
                assert_int_equal(end_post(&ends[0], 10 * id, IBV_WR_SEND, 0, 6000, NULL, 0), 0);
                assert_int_equal(end_post(&ends[0], 10 * id + 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 16384 + 8 * (uint32_t)id, 8,
                                          &peer, 0), 0);
                assert_int_equal(end_post(&ends[0], 10 * id + 2, IBV_WR_RDMA_WRITE, 0, 6000, &peer, 500000), 0);
                assert_int_equal(end_post(&ends[0], 10 * id + 3, IBV_WR_RDMA_READ, 100000, 6000, &peer, 500000), 0);
            }
            for (uint64_t id = 0; id < 4; id++) {
                for (uint64_t kind = 0; kind < 4; kind++) {
                    end_expect(&ends[0], 10 * id + kind, IBV_WC_SUCCESS);
                }
                assert_int_equal(*(uint64_t *)(void *)(ends[0].memory + 16384 + 8 * id), id);
                end_expect(&ends[1], id, IBV_WC_SUCCESS);
            }
            memcpy(&added, ends[1].memory, sizeof(added));
            assert_int_equal(added, 4);
            assert_true(end_is_quiet(&ends[1]));
            assert_memory_equal(ends[0].memory, ends[0].memory + 100000, 6000);
            assert_true(op == SC_OP_CMP_SWAP || fabric_now()->rule[0].done >= 1 ||
                        actions[a] == SC_RULE_NONE);
            mend();
            pair_close(ends);
        }
    }
}

static void test_exact_point(void **state)
{
    struct end ends[2];

    (void)state;
    pair_open(ends, &quick);
    end_post_recv(&ends[1], 5, 0, 64);
    break_rule(SC_RULE_QP_ERROR, 1u << SC_OP_ACK, 1, 1); /* between execution and acknowledgement */
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[1], 5, IBV_WC_SUCCESS);
    assert_int_equal(end_event(&ends[1]), IBV_EVENT_QP_FATAL);
    end_expect(&ends[0], 1, IBV_WC_RETRY_EXC_ERR);
    mend();
    pair_close(ends);
}

static void test_shared_receives(void **state)
{
    struct ibv_srq_attr limit = { .srq_limit = 2 };
    struct end          ends[2];

    (void)state;
    pair_open(ends, &(struct options){ .srq = 1 });
    for (uint64_t id = 0; id < 3; id++) {
        end_post_recv(&ends[1], id, 0, 64);
    }
    assert_int_equal(ibv_modify_srq(ends[1].srq, &limit, IBV_SRQ_LIMIT), 0);
    for (uint64_t id = 0; id < 2; id++) {
        assert_int_equal(end_post(&ends[0], id, IBV_WR_SEND, 0, 8, NULL, 0), 0);
        end_expect(&ends[1], id, IBV_WC_SUCCESS);
    }
    assert_int_equal(end_event(&ends[1]), IBV_EVENT_SRQ_LIMIT_REACHED);
    to_error(&ends[1]);
    assert_int_equal(end_event(&ends[1]), IBV_EVENT_QP_LAST_WQE_REACHED);
    assert_true(end_is_quiet(&ends[1])); /* what is in the shared queue stays there */
    pair_close(ends);
}

static void test_ports(void **state)
{
    struct ibv_port_attr port;
    struct end           ends[2];

    (void)state;
    pair_open(ends, &normal);
    break_port(0, SC_PORT_DOWN);
    assert_int_equal(end_event(&ends[0]), IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_query_port(ends[0].context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_DOWN);
    mend();
    assert_int_equal(end_event(&ends[0]), IBV_EVENT_PORT_ACTIVE);
    break_port(0, SC_PORT_FATAL);
    assert_int_equal(end_event(&ends[0]), IBV_EVENT_DEVICE_FATAL);
    assert_int_equal(ibv_query_port(ends[0].context, 1, &port), EIO);
    mend();
    pair_close(ends);
}

static void test_broken_verbs(void **state)
{
    struct end end;
    uint64_t   began = now_ms();

    (void)state;
    end_open(&end, &normal);
    fabric_now()->verb[SC_VERB_REG_MR] = (struct sc_verb_fault){ .skip = 1, .times = 1, .error = ENOMEM, .hang_ms = 30 };
    fabric_now()->bad_verbs = 1;
    for (int i = 0; i < 3; i++) {
        struct ibv_mr *mr = ibv_reg_mr(end.pd, end.memory, 64, 0);

        assert_true((mr == NULL) == (i == 1));
        assert_true(mr != NULL || errno == ENOMEM);
        assert_int_equal(mr == NULL ? 0 : ibv_dereg_mr(mr), 0);
    }
    assert_true(now_ms() - began >= 30);
    mend();
    end_close(&end);
}

/* Bytes of a message that is not acknowledged belong to the card; inlined ones do not. */
static void test_inline(void **state)
{
    struct end         ends[2];
    char               text[16] = "before";
    struct ibv_sge     sge = { (uintptr_t)text, sizeof(text), 0 };
    struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE }, *bad;

    (void)state;
    pair_open(ends, &normal);
    assert_int_equal(ibv_post_send(ends[0].qp, &wr, &bad), 0); /* not ready: it waits */
    strcpy(text, "after");
    end_post_recv(&ends[1], 2, 0, 64);
    end_expect(&ends[1], 2, IBV_WC_SUCCESS);
    assert_string_equal((char *)ends[1].memory, "before");
    pair_close(ends);
}

/* Slots of the send queue come back by completions that are polled, not by the acknowledgement. */
static void test_silent(void **state)
{
    struct end         ends[2];
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

    (void)state;
    pair_open(ends, &(struct options){ .depth = 4 });
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 4; i++) {
            wr.wr_id      = 10 * round + i;
            wr.send_flags = i == 3 && round != 1 ? IBV_SEND_SIGNALED : 0;
            assert_int_equal(ibv_post_send(ends[0].qp, &wr, &bad), round == 2 ? ENOMEM : 0);
        }
        assert_int_equal(ibv_post_send(ends[0].qp, &wr, &bad), ENOMEM);
        if (round == 0) {
            end_expect(&ends[0], 3, IBV_WC_SUCCESS);
        }
        assert_true(end_is_quiet(&ends[0]));
    }
    to_error(&ends[0]);
    assert_true(end_is_quiet(&ends[0])); /* they had been acknowledged */
    pair_close(ends);
}

/* ---- two processes --------------------------------------------------------------------------- */

static void swap(int fd, const void *mine, void *theirs, size_t size)
{
    assert_int_equal(write(fd, mine, size), size);
    assert_int_equal(read(fd, theirs, size), size);
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

    meet(fd, &end, &peer, &(struct options){ .timeout = 12 });
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t length = 1 + i * 977 % 30000;

        if (!sender) {
            end_post_recv(&end, i, 400000, 32768);
            swap(fd, &done, &done, 1);
            end_expect(&end, i, IBV_WC_SUCCESS);
            fill(end.memory + 200000, length, i);
            assert_memory_equal(end.memory + 200000, end.memory + 400000, length);
            assert_memory_equal(end.memory + 200000, end.memory + 1024, length);
            swap(fd, &done, &done, 1);
            continue;
        }
        fill(end.memory, length, i);
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
    swap(fd, &done, &done, 1);
    end_close(&end);
}

static void sleep_and_wake(int fd, int sender)
{
    struct end      end;
    struct address  peer;
    char            done = 1;
    struct ibv_cq  *cq;
    void           *context;

    meet(fd, &end, &peer, &normal);
    for (uint64_t id = 0; id < 50; id++) {
        if (sender) {
            swap(fd, &done, &done, 1);
            usleep(500);
            assert_int_equal(end_post(&end, id, IBV_WR_SEND, 0, 8, NULL, 0), 0);
            end_expect(&end, id, IBV_WC_SUCCESS);
        } else {
            struct pollfd waiting = { .fd = end.channel->fd, .events = POLLIN };

            end_post_recv(&end, id, 0, 64);
            assert_int_equal(ibv_req_notify_cq(end.cq, 0), 0);
            swap(fd, &done, &done, 1);
            assert_int_equal(poll(&waiting, 1, 10000), 1);
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
    meet(fd, &end, &peer, &patient);
    pause();
}

static const struct {
    const char *name;
    void      (*run)(int fd, int first);
} roles[] = { { "carry", carry }, { "wake", sleep_and_wake }, { "compute", computing_target }, { "die", be_killed } };

/* One end of a test, in a process of its own: there a failed assertion is its status. */
static int play(const char *name, int fd, int first)
{
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
        alarm(100);
        snprintf(number, sizeof(number), "%d", fd);
        execl("/proc/self/exe", "test_softcard", name, number, first ? "1" : "0", (char *)NULL);
        _exit(127);
    }
    return child;
}

static void in_two_processes(const char *name)
{
    int   fds[2], status;
    pid_t child[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        child[i] = begin(name, fds[i], fds[!i], i == 0);
    }
    close(fds[0]);
    close(fds[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_processes(void **state)
{
    (void)state;
    in_two_processes("carry");
}

static void test_processes_lossy(void **state)
{
    struct sc_fabric *fabric = fabric_now();

    (void)state;
    fabric->kept = 1;
    fabric->port[0].lossy = 3000;
    fabric->faulty = 1;
    in_two_processes("carry");
    assert_true(fabric->port[0].dropped > 0);
    mend();
    fabric->kept = 0;
    sc_fabric_remove(fabric);
}

static void test_events(void **state)
{
    (void)state;
    in_two_processes("wake");
}

static void test_computing_target(void **state)
{
    (void)state;
    in_two_processes("compute");
}

/* One that is killed answers no more, and leaves nothing that disturbs those who come. */
static void test_killed(void **state)
{
    struct end     end;
    struct address peer;
    int            fds[2];
    pid_t          child;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    child = begin("die", fds[1], fds[0], 0);
    meet(fds[0], &end, &peer, &patient);
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

int main(int argc, char **argv)
{
    static char dir[] = "/tmp/test_softcard.XXXXXX";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_processes_lossy),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_computing_target),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_remote_memory),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_exact_point),
        cmocka_unit_test(test_shared_receives),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_broken_verbs),
    };

    if (argc == 4) {
        return play(argv[1], atoi(argv[2]), atoi(argv[3]));
    }
    if (mkdtemp(dir) == NULL || setenv("SOFTCARD_DIR", dir, 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
