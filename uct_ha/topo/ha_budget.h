/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_BUDGET_H_
#define HA_BUDGET_H_

/*
 * How many connections a device can carry, what a lane needs of it, and how long its
 * hardware retries. Pure arithmetic over numbers that the device reported: any value is
 * allowed, zero and the largest included; nothing divides by zero or wraps.
 */

#include <stddef.h>
#include <stdint.h>

/* ---- connections ---------------------------------------------------------------------- */

#define HA_BUDGET_UNLIMITED UINT64_MAX

/* What one device has. */
struct ha_budget_device {
    uint64_t max_qp;
    uint64_t max_qp_wr; /* of one queue of one queue pair */
    uint64_t max_cqe;   /* of one completion queue, not of the device */
    uint64_t max_mr;
    uint64_t memlock; /* bytes the process may lock, HA_BUDGET_UNLIMITED */
};

/* What ha_rc needs on one rail for one connection. */
struct ha_budget_need {
    uint64_t qp;               /* 2: the new one is made before the old one is gone */
    uint64_t send_wr, recv_wr; /* depth of a queue pair */
    uint64_t cqe;              /* reserved: the receives of a new connection, and 2 */
    uint64_t cqe_shared;       /* once for all: sends are counted and may wait, one log is enough */
    uint64_t mr;
    uint64_t bytes; /* receive buffers of all lanes of a new connection */
    unsigned rails; /* how often memory is locked: once per rail */
};

enum ha_budget_limit { HA_BUDGET_QP, HA_BUDGET_CQE, HA_BUDGET_MR, HA_BUDGET_MEMLOCK, HA_BUDGET_LIMITS };

struct ha_budget {
    uint64_t             by[HA_BUDGET_LIMITS]; /* connections that each allows */
    uint64_t             connections;          /* the least of them; 0: not even one */
    enum ha_budget_limit limited_by;
    int                  queues_fit; /* a queue pair may be as deep as wanted */
};

/* Of TX_QUEUE_LEN, RX_QUEUE_LEN, RX_QUEUE_INIT and SEG_SIZE; `rails` is 1 or 2. Receive
 * queues of busy connections grow, but not at the price of new ones. */
struct ha_budget_need ha_budget_need(uint64_t tx_queue_len, uint64_t rx_queue_len, uint64_t rx_queue_init,
                                     uint64_t seg_size, unsigned rails);

/* Connections of one interface on one device. Each budget by itself: completion
 * queues are per interface and grow up to max_cqe; queue pairs, regions and locked
 * memory are shared by all interfaces and processes, so this is what one may have when
 * it is alone. Queues that are too deep are made shallower by ha_rc and count as such. */
struct ha_budget ha_budget(const struct ha_budget_device *device, const struct ha_budget_need *need);

const char *ha_budget_limit_name(enum ha_budget_limit limit); /* "max_qp"... constant */

/*
 * The formula of the design notes that this project began with, kept to compare:
 *   min(max_qp / (2 channels), max_cqe / ((wr recvs + wr) 2 channels), 256)
 * It takes max_cqe for the whole device's, though it is one queue's, and counts
 * channels twice. 0 where it would divide by zero.
 */
uint64_t ha_budget_seed(uint64_t max_qp, uint64_t max_cqe, uint64_t wr_per_connection, uint64_t channels,
                        uint64_t recvs);

/* ---- queue sizes of a buffer-and-ack socket ------------------------------------------- */

struct ha_socket_options {
    uint64_t send_buffers, ack_batch, max_rdma_wr;
};

struct ha_socket_sizes {
    uint64_t ack_buffers; /* ceil(send_buffers / ack_batch) + 4; a batch of 0 counts as 1 */
    uint64_t send_wr;     /* send_buffers + ack_buffers + max_rdma_wr + 2: close and check */
    uint64_t recv_wr;     /* send_buffers + ack_buffers + 1 */
    uint64_t cqe;         /* send_wr + recv_wr */
};

/* Saturates at UINT64_MAX. 32 buffers, batches of 8 and 128 RDMA requests need 8, 170,
 * 41 and 211. */
struct ha_socket_sizes ha_socket_sizes(const struct ha_socket_options *options);

/* Does the device allow them? 0, or -EINVAL with a sentence that names the size, its
 * value and the limit. */
int ha_socket_sizes_check(const struct ha_socket_sizes *sizes, const struct ha_budget_device *device, char *error,
                          size_t size);

/* ---- how long the hardware retries ---------------------------------------------------- */

#define HA_WINDOW_FOREVER UINT64_MAX

/* Nominal, in nanoseconds: (retry_count + 1) * 4.096 us * 2^timeout; timeout 0 means
 * for ever, values above 31 count as 31. */
uint64_t ha_window_nominal(unsigned timeout, unsigned retry_count);

/* Measured by others (the public study unionxic/rdma-fault-characterization, RoCE v2,
 * firmware defaults with adaptive retransmission) on ConnectX-5 and -6; never by us:
 * R * I - 96 ms with I = 2 * 4.096 us * 2^16 up to timeout 16, R * I - 364 ms with
 * I = 2 * 4.096 us * 2^timeout above; 2 s for R = 0. Not the nominal rule. */
uint64_t ha_window_mlx5(unsigned timeout, unsigned retry_count);

#endif
