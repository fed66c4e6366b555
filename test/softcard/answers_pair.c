/* SPDX-License-Identifier: BSD-3-Clause */
#include "answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH      128u
#define QUIET_MS   1500 /* nothing came for so long: nothing will; $ANSWERS_QUIET_MS where hosts are not emulated */
#define FIRST_PSN0 0xfffff0u
#define FIRST_PSN1 0x000123u

static void must(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "answers: %s failed\n", what);
        exit(2);
    }
}

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *wanted = getenv(name);

    return wanted != NULL ? (unsigned)strtoul(wanted, NULL, 0) : otherwise;
}

static void set_init(struct answers_end *end, const struct answers_wish *wish)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    if (!wish->no_remote_access) {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    must(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "INIT");
}

static void set_rtr(struct answers_pair *pair, int end)
{
    struct ibv_qp_attr   attr = {.qp_state           = IBV_QPS_RTR,
                                 .path_mtu           = IBV_MTU_1024,
                                 .dest_qp_num        = pair->end[!end].qp->qp_num,
                                 .rq_psn             = end == 0 ? FIRST_PSN1 : FIRST_PSN0,
                                 .max_dest_rd_atomic = 4,
                                 .min_rnr_timer      = 1,
                                 .ah_attr            = {.is_global = 1, .port_num = 1}};
    struct ibv_port_attr port;
    unsigned             gid = setting("ANSWERS_GID_INDEX", 0);

    must(ibv_query_port(pair->context, 1, &port) == 0, "ibv_query_port");
    attr.ah_attr.dlid           = port.lid;
    attr.ah_attr.grh.hop_limit  = 64;
    attr.ah_attr.grh.sgid_index = (uint8_t)gid;
    must(ibv_query_gid(pair->context, 1, (int)gid, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
    must(ibv_modify_qp(pair->end[end].qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
}

static void set_rts(struct answers_pair *pair, int end, const struct answers_wish *wish)
{
    struct ibv_qp_attr attr = {.qp_state      = IBV_QPS_RTS,
                               .timeout       = 16,
                               .retry_cnt     = 2,
                               .rnr_retry     = (uint8_t)wish->rnr_retry,
                               .sq_psn        = end == 0 ? FIRST_PSN0 : FIRST_PSN1,
                               .max_rd_atomic = 4};

    must(ibv_modify_qp(pair->end[end].qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
}

static void open_end(struct answers_pair *pair, int number, const struct answers_wish *wish)
{
    struct answers_end     *end    = &pair->end[number];
    struct ibv_qp_init_attr init   = {.qp_type = IBV_QPT_RC};
    const int               access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

    init.cap.max_send_wr = init.cap.max_recv_wr = DEPTH;
    init.cap.max_send_sge                       = 2;
    init.cap.max_recv_sge                       = 1;
    init.cap.max_inline_data                    = 64;
    end->bytes                                  = calloc(1, ANSWERS_BYTES);
    must(end->bytes != NULL, "memory");
    end->mr      = ibv_reg_mr(pair->pd, end->bytes, ANSWERS_BYTES, access);
    end->send_cq = ibv_create_cq(pair->context, 2 * DEPTH, NULL, NULL, 0);
    end->recv_cq = ibv_create_cq(pair->context, 2 * DEPTH, NULL, NULL, 0);
    must(end->mr != NULL && end->send_cq != NULL && end->recv_cq != NULL, "registration or completion queue");
    if (number == 1 && wish->srq) {
        init.srq = pair->srq = ibv_create_srq(pair->pd, &shared);
        must(pair->srq != NULL, "shared receive queue");
    }
    init.send_cq = end->send_cq;
    init.recv_cq = end->recv_cq;
    end->qp      = ibv_create_qp(pair->pd, &init);
    must(end->qp != NULL, "queue pair");
}

void answers_open(struct answers_pair *pair, struct ibv_context *context, const struct answers_wish *wish)
{
    memset(pair, 0, sizeof(*pair));
    pair->context = context;
    pair->pd      = ibv_alloc_pd(context);
    must(pair->pd != NULL, "protection domain");
    open_end(pair, 0, wish);
    open_end(pair, 1, wish);
    for (int n = 0; n < 2; n++) {
        int stop = n == 1 || wish->both ? wish->stop_at : 0;

        if (stop == IBV_QPS_RESET + 1) {
            continue; /* left as it was made */
        }
        set_init(&pair->end[n], wish);
        if (stop == IBV_QPS_INIT + 1) {
            continue;
        }
        set_rtr(pair, n);
        set_rts(pair, n, wish);
    }
}

void answers_close(struct answers_pair *pair)
{
    for (int n = 0; n < 2; n++) {
        must(pair->end[n].qp == NULL || ibv_destroy_qp(pair->end[n].qp) == 0, "destroying a queue pair");
    }
    must(pair->srq == NULL || ibv_destroy_srq(pair->srq) == 0, "destroying a shared receive queue");
    for (int n = 0; n < 2; n++) {
        must(ibv_destroy_cq(pair->end[n].send_cq) == 0 && ibv_destroy_cq(pair->end[n].recv_cq) == 0,
             "destroying a completion queue");
        must(pair->end[n].mr == NULL || ibv_dereg_mr(pair->end[n].mr) == 0, "deregistration");
        free(pair->end[n].bytes);
    }
    must(ibv_dealloc_pd(pair->pd) == 0, "freeing the protection domain");
}

int answers_post(struct answers_pair *pair, int from, uint64_t wr_id, const struct answers_ask *ask)
{
    struct answers_end *me = &pair->end[from], *peer = &pair->end[!from];
    struct ibv_sge      sge = {.addr   = (uintptr_t)me->bytes + ask->offset,
                               .length = ask->length,
                               .lkey   = me->mr->lkey ^ (ask->lkey_wrong ? 0x5a5a00u : 0)};
    struct ibv_send_wr  wr  = {.wr_id      = wr_id,
                               .opcode     = ask->opcode,
                               .sg_list    = &sge,
                               .num_sge    = ask->length > 0,
                               .send_flags = ask->flags},
                       *bad;
    uint64_t remote = (uintptr_t)peer->bytes + ask->offset + (ask->far ? ANSWERS_BYTES - 8 : 0);
    uint32_t rkey   = (peer->mr != NULL ? peer->mr->rkey : 0x1234) ^ (ask->rkey_wrong ? 0x5a5a00u : 0);

    wr.imm_data = (uint32_t)wr_id;
    if (ask->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || ask->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey        = rkey;
        wr.wr.atomic.compare_add = ask->add;
        wr.wr.atomic.swap        = ask->swap;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey        = rkey;
    }
    return ibv_post_send(me->qp, &wr, &bad);
}

int answers_recv(struct answers_pair *pair, int end, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)pair->end[end].bytes + offset, .length = length, .lkey = pair->end[end].mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    if (end == 1 && pair->srq != NULL) {
        return ibv_post_srq_recv(pair->srq, &wr, &bad);
    }
    return ibv_post_recv(pair->end[end].qp, &wr, &bad);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void print_completion(const char *name, const struct ibv_wc *wc)
{
    printf("%s: %llu %s", name, (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status));
    if (wc->status == IBV_WC_SUCCESS) {
        printf(" opcode %d", (int)wc->opcode);
        if (wc->opcode & IBV_WC_RECV) {
            printf(" %u bytes", wc->byte_len);
            if (wc->wc_flags & IBV_WC_WITH_IMM) {
                printf(" imm %#x", wc->imm_data);
            }
        }
    }
    printf("\n");
}

void answers_completions(const char *name, struct ibv_cq *cq, unsigned least)
{
    unsigned      quiet = setting("ANSWERS_QUIET_MS", QUIET_MS) * (least > 0 ? 10 : 1), seen = 0;
    uint64_t      last = now_ms();
    struct ibv_wc wc;

    while (seen < least || least == 0) {
        int found = ibv_poll_cq(cq, 1, &wc);

        must(found >= 0, "ibv_poll_cq");
        if (found == 1) {
            print_completion(name, &wc);
            last = now_ms();
            seen++;
        } else if (now_ms() - last > quiet) {
            break;
        }
    }
    if (seen < least) {
        printf("%s: %u completions instead of %u\n", name, seen, least);
    }
}

static const char *state_name(enum ibv_qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

    return (unsigned)state < sizeof(names) / sizeof(*names) ? names[state] : "?";
}

void answers_states(const char *name, struct answers_pair *pair, int numbers)
{
    for (int n = 0; n < 2; n++) {
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr      attr;

        must(ibv_query_qp(pair->end[n].qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init) == 0,
             "ibv_query_qp");
        printf("%s: end %d is %s", name, n, state_name(attr.qp_state));
        if (numbers) {
            printf(", sends at %#x, expects %#x", attr.sq_psn, attr.rq_psn);
        }
        printf("\n");
    }
}

uint64_t answers_sum(const struct answers_pair *pair, int end)
{
    uint64_t sum = 1469598103934665603ull;

    for (unsigned i = 0; i < ANSWERS_BYTES; i++) {
        sum = (sum ^ pair->end[end].bytes[i]) * 1099511628211ull;
    }
    return sum;
}

int answers_move(struct answers_pair *pair, int end, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    return ibv_modify_qp(pair->end[end].qp, &attr, IBV_QP_STATE);
}
