/* SPDX-License-Identifier: BSD-3-Clause */

/* The card itself: what the InfiniBand specification says that a card does, and each fault it can be told to have. */

#include "sc_test.h"
#include "sc_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct options normal, quick = {.timeout = 10, .retry_cnt = 2, .rnr_retry = 1};

static uint32_t rq_psn(struct end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr      attr;

    assert_int_equal(ibv_query_qp(end->qp, &attr, IBV_QP_RQ_PSN, &init), 0);
    return attr.rq_psn;
}

static void to_error(struct end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    assert_int_equal(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}

static void test_messages(void **state)
{
    struct end    ends[2];
    struct ibv_wc wc;

    (void)state;
    pair_open(ends, &normal);
    end_fill(ends[0].memory, 5000, 3);
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
    end_fill(ends[0].memory, 300000, 5);
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
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
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

/* A queue pair that failed by itself: its ibv_qp says so when the program has asked, not before. */
static void test_told_state(void **state)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr      attr;
    struct end              ends[2];
    struct address          peer;

    (void)state;
    pair_open(ends, &normal);
    peer = end_address(&ends[1]);
    peer.rkey ^= 1;
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_RDMA_WRITE, 0, 8, &peer, 0), 0);
    end_expect(&ends[0], 1, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ends[0].qp->state, IBV_QPS_RTS);
    assert_int_equal(ibv_query_qp(ends[0].qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    assert_int_equal(ends[0].qp->state, IBV_QPS_ERR);
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
    pair_open(ends, &(struct options){.timeout = 14, .retry_cnt = 2}); /* 3 * 67 ms */
    break_port(0, SC_PORT_NOACK);
    end_post_recv(&ends[1], 5, 0, 64);
    began = now_ms();
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[1], 5, IBV_WC_SUCCESS); /* executed once, though never acknowledged */
    end_expect(&ends[0], 1, IBV_WC_RETRY_EXC_ERR);
    assert_in_range(now_ms() - began, 190, 10000); /* no earlier; a busy machine is late */
    assert_int_equal(rq_psn(&ends[1]), 0xfffff1);
    mend();
    pair_close(ends);
}

/* Each kind of packet is lost, twice there, and late: executed once all the same. */
static void test_once(void **state)
{
    static const uint32_t actions[] = {SC_RULE_DROP, SC_RULE_DUPLICATE, SC_RULE_DELAY};
    struct end            ends[2];
    struct address        peer;
    uint64_t              added = 0;

    (void)state;
    for (unsigned a = 0; a < 3; a++) {
        for (uint32_t op = SC_OP_SEND; op <= SC_OP_ATOMIC_RESP; op++) {
            pair_open(ends, &(struct options){.timeout = 8});
            peer = end_address(&ends[1]);
            end_fill(ends[0].memory, 6000, op);
            for (uint64_t id = 0; id < 8; id++) {
                end_post_recv(&ends[1], id, 8192 * (uint32_t)(id + 1), 8192);
            }
            break_rule(actions[a], 1u << op, 2, 1);
            for (uint64_t id = 0; id < 4; id++) {
                assert_int_equal(end_post(&ends[0], 10 * id, IBV_WR_SEND, 0, 6000, NULL, 0), 0);
                assert_int_equal(
                    end_post(&ends[0], 10 * id + 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 16384 + 8 * (uint32_t)id, 8, &peer, 0),
                    0);
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
            assert_true(op == SC_OP_CMP_SWAP || fabric_now()->rule[0].done >= 1); /* it did strike */
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

static void *destroy(void *qp)
{
    return (void *)(uintptr_t)ibv_destroy_qp(qp);
}

/* Who has read an event of a queue pair may look at that until the event is acknowledged. */
static void expect_drained(struct end *end)
{
    struct ibv_async_event event;
    struct timespec        soon;
    pthread_t              thread;
    void                  *status;

    assert_int_equal(ibv_get_async_event(end->context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    assert_int_equal(pthread_create(&thread, NULL, destroy, end->qp), 0);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1;
    assert_int_equal(pthread_timedjoin_np(thread, &status, &soon), ETIMEDOUT);
    ibv_ack_async_event(&event);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_null(status);
}

static void test_shared_receives(void **state)
{
    const struct options shared = {.srq = 1};
    struct ibv_srq_attr  limit  = {.srq_limit = 2};
    struct end           ends[2];

    (void)state;
    pair_open(ends, &shared);
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
    expect_drained(&ends[1]);
    assert_true(end_is_quiet(&ends[1])); /* what is in the shared queue stays there */
    end_make_qp(&ends[1], &shared);
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
    fabric_now()->verb[SC_VERB_REG_MR] = (struct sc_verb_fault){.skip = 1, .times = 1, .error = ENOMEM, .hang_ms = 30};
    fabric_now()->bad_verbs            = 1;
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
    struct ibv_sge     sge      = {(uintptr_t)text, sizeof(text), 0};
    struct ibv_send_wr wr       = {.wr_id      = 1,
                                   .sg_list    = &sge,
                                   .num_sge    = 1,
                                   .opcode     = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
                       *bad;

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
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;

    (void)state;
    pair_open(ends, &(struct options){.depth = 4});
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

/* NULL where the device has no reliable connections. */
static struct ibv_qp *rc_queue_pair(void)
{
    struct ibv_device     **list    = ibv_get_device_list(NULL);
    struct ibv_context     *context = ibv_open_device(list[0]);
    struct ibv_pd          *pd      = ibv_alloc_pd(context);
    struct ibv_cq          *cq      = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr    = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp          *qp      = ibv_create_qp(pd, &attr);

    assert_int_equal(qp == NULL ? 0 : ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(context), 0);
    ibv_free_device_list(list);
    return qp;
}

/* Each kind does what its line in the table says. */
static void test_personalities(void **state)
{
    static const char *const names[] = {"plain", "mlx5", "irdma", "bnxt_re", "hns", "rxe", "rxe-old"};
    struct end               ends[2];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int soft = strncmp(names[i], "rxe", 3) == 0;

        setenv("SOFTCARD_PERSONALITY", names[i], 1);
        sc_device_forget();
        pair_open(ends, &normal);
        end_post_recv(&ends[1], 5, 0, 64);
        assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
        end_expect(&ends[0], 1, IBV_WC_SUCCESS);
        assert_int_equal(rq_psn(&ends[1]), strcmp(names[i], "irdma") == 0 ? 0xfffff0 : 0xfffff1);
        to_error(&ends[1]);
        /* what has not been polled may go */
        assert_int_equal(ibv_modify_qp(ends[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
        assert_int_equal(end_is_quiet(&ends[1]), !soft && strcmp(names[i], "irdma") != 0);
        break_port(0, SC_PORT_DOWN);
        assert_int_equal(end_post(&ends[0], 2, IBV_WR_SEND, 0, 8, NULL, 0), 0);
        if (soft) {
            end_expect(&ends[0], 2, strcmp(names[i], "rxe") == 0 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR);
        }
        assert_true(end_is_quiet(&ends[0]));
        mend();
        pair_close(ends);
    }
    setenv("SOFTCARD_PERSONALITY", "efa", 1);
    sc_device_forget();
    assert_null(rc_queue_pair());
    unsetenv("SOFTCARD_PERSONALITY");
    sc_device_forget();
}

int main(int argc, char **argv)
{
    static char             dir[]   = "/tmp/test_softcard.XXXXXX";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),      cmocka_unit_test(test_processes_lossy),
        cmocka_unit_test(test_events),         cmocka_unit_test(test_computing_target),
        cmocka_unit_test(test_killed),         cmocka_unit_test(test_messages),
        cmocka_unit_test(test_inline),         cmocka_unit_test(test_silent),
        cmocka_unit_test(test_remote_memory),  cmocka_unit_test(test_access),
        cmocka_unit_test(test_too_long),       cmocka_unit_test(test_states),
        cmocka_unit_test(test_flush),          cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_window),         cmocka_unit_test(test_once),
        cmocka_unit_test(test_exact_point),    cmocka_unit_test(test_shared_receives),
        cmocka_unit_test(test_ports),          cmocka_unit_test(test_broken_verbs),
        cmocka_unit_test(test_personalities),  cmocka_unit_test(test_thousands),
        cmocka_unit_test(test_told_state),     cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_overtaken), cmocka_unit_test(test_late_and_cut),
        cmocka_unit_test(test_processes_late),
    };

    if (argc == 4) {
        return test_play(argv[1], atoi(argv[2]), atoi(argv[3]));
    }
    if (mkdtemp(dir) == NULL || setenv("SOFTCARD_DIR", dir, 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
