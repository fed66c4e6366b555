/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ANSWERS_H_
#define ANSWERS_H_

/*
 * What a device answers to verbs, as lines of text that two devices can be compared by. A pair is two RC queue pairs
 * of one device, connected to each other: 0 asks, 1 answers.
 */

#include <infiniband/verbs.h>
#include <stdint.h>

#define ANSWERS_BYTES (256u << 10) /* of each side's memory */
#define ANSWERS_MTU   1024u

struct answers_end {
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_mr *mr;
    uint8_t       *bytes;
};

struct answers_pair {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    struct ibv_srq     *srq; /* of end 1, or NULL */
    struct answers_end  end[2];
};

/* How a scenario wants its pair. */
struct answers_wish {
    int      srq;
    int      no_remote_access;
    int      stop_at;    /* enum ibv_qp_state of end 1 (and of 0 with `both`), 0: connected */
    int      both;       /* `stop_at` is for both */
    int      unsignaled; /* sq_sig_all = 0, as everywhere here; only flags signal */
    unsigned rnr_retry;  /* 0 … 6 */
};

/* 0, or ends the program: a device that cannot make queue pairs has no answers. */
void answers_open(struct answers_pair *pair, struct ibv_context *context, const struct answers_wish *wish);
void answers_close(struct answers_pair *pair);

/* A request of end `from`, `length` bytes at `offset` of both memories. */
struct answers_ask {
    enum ibv_wr_opcode opcode;
    uint32_t           offset, length;
    uint32_t           lkey_wrong, rkey_wrong, far; /* 1: just that is wrong; far: beyond the peer's memory */
    unsigned           flags;                       /* IBV_SEND_* */
    uint64_t           add, swap;
};

int answers_post(struct answers_pair *pair, int from, uint64_t wr_id, const struct answers_ask *ask);
int answers_recv(struct answers_pair *pair, int end, uint64_t wr_id, uint32_t offset, uint32_t length);

/* Prints the completions of a queue as they come, `least` of them or until nothing more comes for a while. */
void answers_completions(const char *name, struct ibv_cq *cq, unsigned least);

/* Prints states of both ends and, when they live, the numbers of their packets. */
void answers_states(const char *name, struct answers_pair *pair, int numbers);

uint64_t answers_sum(const struct answers_pair *pair, int end);
int      answers_move(struct answers_pair *pair, int end, enum ibv_qp_state state);

#endif
