/* SPDX-License-Identifier: BSD-3-Clause */
#include "sc_test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int plays_role;

struct sc_fabric *fabric_now(void)
{
    static struct sc_fabric *fabric;

    if (fabric == NULL || fabric->gone) {
        fabric = sc_fabric_open(1);
        assert_non_null(fabric);
    }
    return fabric;
}

static int option(int wanted, int normal)
{
    return wanted != 0 ? wanted : normal;
}

void end_make_qp(struct end *end, const struct options *options)
{
    unsigned                depth = options->depth != 0 ? options->depth : 64;
    struct ibv_qp_init_attr attr  = {.send_cq = end->cq,
                                     .recv_cq = end->cq,
                                     .srq     = end->srq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap     = {depth, depth, 2, 2, 64}};
    struct ibv_qp_attr      init  = {.qp_state        = IBV_QPS_INIT,
                                     .port_num        = 1,
                                     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                        IBV_ACCESS_REMOTE_ATOMIC};

    end->qp = ibv_create_qp(end->pd, &attr);
    assert_non_null(end->qp);
    assert_int_equal(
        ibv_modify_qp(end->qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), 0);
}

void end_open(struct end *end, const struct options *options)
{
    struct ibv_srq_init_attr srq  = {.attr = {.max_wr = 64, .max_sge = 1}};
    struct ibv_device      **list = ibv_get_device_list(NULL);

    memset(end, 0, sizeof(*end));
    assert_non_null(list);
    end->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(end->context);
    end->pd      = ibv_alloc_pd(end->context);
    end->channel = ibv_create_comp_channel(end->context);
    end->cq      = ibv_create_cq(end->context, 256, NULL, end->channel, 0);
    end->memory  = aligned_alloc(4096, BYTES);
    assert_non_null(end->memory);
    memset(end->memory, 0, BYTES);
    end->mr = ibv_reg_mr(end->pd, end->memory, BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(end->mr);
    end->srq = options->srq ? ibv_create_srq(end->pd, &srq) : NULL;
    end_make_qp(end, options);
}

void end_close(struct end *end)
{
    assert_int_equal(ibv_destroy_qp(end->qp), 0);
    assert_int_equal(end->srq == NULL ? 0 : ibv_destroy_srq(end->srq), 0);
    assert_int_equal(ibv_destroy_cq(end->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
    assert_int_equal(ibv_dereg_mr(end->mr), 0);
    assert_int_equal(ibv_dealloc_pd(end->pd), 0);
    assert_int_equal(ibv_close_device(end->context), 0);
    free(end->memory);
}

struct address end_address(const struct end *end)
{
    struct ibv_port_attr port;

    assert_int_equal(ibv_query_port(end->context, 1, &port), 0);
    return (struct address){end->qp->qp_num, end->mr->rkey, (uintptr_t)end->memory, port.lid};
}

void end_connect(struct end *end, const struct address *peer, const struct options *options)
{
    struct ibv_qp_attr attr = {.qp_state           = IBV_QPS_RTR,
                               .path_mtu           = IBV_MTU_1024,
                               .dest_qp_num        = peer->qpn,
                               .rq_psn             = 0xfffff0,
                               .max_dest_rd_atomic = 4,
                               .min_rnr_timer      = 1,
                               .ah_attr            = {.dlid = peer->lid, .port_num = 1}};

    assert_int_equal(ibv_modify_qp(end->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                     0);
    attr = (struct ibv_qp_attr){.qp_state      = IBV_QPS_RTS,
                                .timeout       = (uint8_t)option(options->timeout, 14),
                                .retry_cnt     = (uint8_t)option(options->retry_cnt, 6),
                                .sq_psn        = 0xfffff0,
                                .rnr_retry     = (uint8_t)option(options->rnr_retry, 7),
                                .max_rd_atomic = 4};
    assert_int_equal(ibv_modify_qp(end->qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                       IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

void pair_open(struct end ends[2], const struct options *options)
{
    struct address addresses[2];

    for (int i = 0; i < 2; i++) {
        end_open(&ends[i], options);
        addresses[i] = end_address(&ends[i]);
    }
    for (int i = 0; i < 2; i++) {
        end_connect(&ends[i], &addresses[!i], options);
    }
}

void pair_close(struct end ends[2])
{
    end_close(&ends[0]);
    end_close(&ends[1]);
}

void end_fill(uint8_t *to, uint32_t length, unsigned seed)
{
    for (uint32_t i = 0; i < length; i++) {
        to[i] = (uint8_t)(seed + i * 7 + i / 251);
    }
}

void end_post_recv(struct end *end, uint64_t id, uint32_t at, uint32_t length)
{
    struct ibv_sge     sge = {(uintptr_t)end->memory + at, length, end->mr->lkey};
    struct ibv_recv_wr wr  = {id, NULL, &sge, 1}, *bad;

    assert_int_equal(end->srq != NULL ? ibv_post_srq_recv(end->srq, &wr, &bad) : ibv_post_recv(end->qp, &wr, &bad), 0);
}

int end_post(struct end *end, uint64_t id, enum ibv_wr_opcode opcode, uint32_t at, uint32_t length,
             const struct address *peer, uint32_t remote_at)
{
    struct ibv_sge     sge = {(uintptr_t)end->memory + at, length, end->mr->lkey};
    struct ibv_send_wr wr  = {.wr_id      = id,
                              .sg_list    = &sge,
                              .num_sge    = 1,
                              .opcode     = opcode,
                              .imm_data   = (uint32_t)id,
                              .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = peer->memory + remote_at;
        wr.wr.atomic.rkey        = peer->rkey;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.swap        = 77;
    } else if (peer != NULL) {
        wr.wr.rdma.remote_addr = peer->memory + remote_at;
        wr.wr.rdma.rkey        = peer->rkey;
    }
    return ibv_post_send(end->qp, &wr, &bad);
}

uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void still_not(const char *what)
{
    if (plays_role) {
        fprintf(stderr, "process %d: still not: %s\n", (int)getpid(), what);
        exit(ROLE_WAITED);
    }
    mend(); /* its faults are not for the tests that follow */
    fail_msg("still not: %s", what);
}

void wait_readable(int fd, const char *what)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int           ready   = poll(&waiting, 1, PATIENCE_MS);

    if (ready == 0) {
        still_not(what);
    }
    assert_int_equal(ready, 1);
}

struct ibv_wc end_wait(struct end *end)
{
    uint64_t      deadline = now_ms() + PATIENCE_MS;
    struct ibv_wc wc       = {0};
    int           count    = 0;

    while (count == 0 && now_ms() < deadline) {
        count = ibv_poll_cq(end->cq, 1, &wc);
    }
    if (count == 0) {
        still_not("a completion");
    }
    assert_int_equal(count, 1);
    return wc;
}

void end_expect(struct end *end, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = end_wait(end);

    assert_int_equal(wc.wr_id, id);
    assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

int end_is_quiet(struct end *end)
{
    struct ibv_wc wc;

    return ibv_poll_cq(end->cq, 1, &wc) == 0;
}

enum ibv_event_type end_event(struct end *end)
{
    struct ibv_async_event event;

    wait_readable(end->context->async_fd, "an asynchronous event");
    assert_int_equal(ibv_get_async_event(end->context, &event), 0);
    ibv_ack_async_event(&event);
    return event.event_type;
}

void break_rule(uint32_t action, uint32_t ops, uint64_t nth, uint64_t times)
{
    struct sc_fabric *fabric = fabric_now();

    fabric->rule[0] = (struct sc_rule){.port = SC_NO_PORT, .ops = ops, .nth = nth, .times = times, .delay_ms = 3};
    __atomic_store_n(&fabric->rule[0].action, action, __ATOMIC_RELEASE);
    __atomic_store_n(&fabric->faulty, 1, __ATOMIC_RELEASE);
}

void delay_rule(unsigned place, uint32_t qpn, uint32_t ops, uint64_t nth, uint32_t ms)
{
    struct sc_fabric *fabric = fabric_now();

    fabric->rule[place] = (struct sc_rule){
        .port = SC_NO_PORT, .qpn = qpn, .ops = ops, .nth = nth, .times = 1, .delay_ms = ms};
    __atomic_store_n(&fabric->rule[place].action, SC_RULE_DELAY, __ATOMIC_RELEASE);
    __atomic_store_n(&fabric->faulty, 1, __ATOMIC_RELEASE);
}

void break_port(unsigned place, uint32_t trouble)
{
    struct sc_fabric *fabric = fabric_now();

    __atomic_store_n(&fabric->port[place].trouble, trouble, __ATOMIC_RELEASE);
    __atomic_store_n(&fabric->faulty, 1, __ATOMIC_RELEASE);
    sc_fabric_tell_all(fabric);
}

void mend(void)
{
    struct sc_fabric *fabric = fabric_now();

    memset(fabric->port, 0, sizeof(fabric->port));
    memset(fabric->rule, 0, sizeof(fabric->rule));
    memset(fabric->verb, 0, sizeof(fabric->verb));
    fabric->faulty = fabric->bad_verbs = 0;
    sc_fabric_tell_all(fabric);
}
