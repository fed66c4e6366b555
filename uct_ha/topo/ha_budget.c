/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_budget.h"

#include "ha_depths.h"

#include <errno.h>
#include <stdio.h>

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How often `need` fits; nothing needed fits without limit. */
static uint64_t fits(uint64_t limit, uint64_t need)
{
    return need == 0 || limit == HA_BUDGET_UNLIMITED ? HA_BUDGET_UNLIMITED : limit / need;
}

/* ---- connections ---------------------------------------------------------------------- */

#define LANE_EXTRA 2 /* completions of a drain marker, and of a send that tells */

static uint64_t round_up_pow2(uint64_t n)
{
    uint64_t p = 1;

    while (p < n && p < (uint64_t)1 << 63) {
        p *= 2;
    }
    return p < n ? n : p;
}

struct ha_budget_need ha_budget_need(uint64_t tx_queue_len, uint64_t rx_queue_len, uint64_t rx_queue_init,
                                     uint64_t seg_size, unsigned rails)
{
    struct ha_budget_need need     = {.qp = 2, .mr = 1, .rails = rails};
    uint64_t              receives = add(least(rx_queue_init, rx_queue_len), HA_DEPTHS_RESERVE);

    need.cqe_shared = round_up_pow2(tx_queue_len);
    need.send_wr    = need.cqe_shared;
    need.recv_wr    = add(rx_queue_len, HA_DEPTHS_RESERVE);
    need.cqe        = add(receives, LANE_EXTRA);
    need.bytes      = multiply(multiply(receives, seg_size), rails);
    return need;
}

struct ha_budget ha_budget(const struct ha_budget_device *device, const struct ha_budget_need *need)
{
    struct ha_budget budget;
    uint64_t         shared  = least(need->cqe_shared, device->max_qp_wr);
    uint64_t         max_cqe = device->max_cqe;

    if (max_cqe != HA_BUDGET_UNLIMITED) {
        max_cqe -= least(shared, max_cqe);
    }
    budget.queues_fit            = need->send_wr <= device->max_qp_wr && need->recv_wr <= device->max_qp_wr;
    budget.by[HA_BUDGET_QP]      = fits(device->max_qp, need->qp);
    budget.by[HA_BUDGET_CQE]     = fits(max_cqe, need->cqe);
    budget.by[HA_BUDGET_MR]      = fits(device->max_mr, need->mr);
    budget.by[HA_BUDGET_MEMLOCK] = fits(device->memlock, multiply(need->bytes, need->rails));
    budget.limited_by            = HA_BUDGET_QP;
    for (int i = 0; i < HA_BUDGET_LIMITS; i++) {
        if (budget.by[i] < budget.by[budget.limited_by]) {
            budget.limited_by = (enum ha_budget_limit)i;
        }
    }
    budget.connections = device->max_qp_wr == 0 ? 0 : budget.by[budget.limited_by];
    return budget;
}

const char *ha_budget_limit_name(enum ha_budget_limit limit)
{
    static const char *const names[HA_BUDGET_LIMITS] = {"max_qp", "max_cqe", "max_mr", "memlock"};

    return limit < HA_BUDGET_LIMITS ? names[limit] : "?";
}

uint64_t ha_budget_seed(uint64_t max_qp, uint64_t max_cqe, uint64_t wr_per_connection, uint64_t channels,
                        uint64_t recvs)
{
    uint64_t per_qp  = multiply(2, channels);
    uint64_t per_cqe = multiply(add(multiply(wr_per_connection, recvs), wr_per_connection), per_qp);

    if (per_qp == 0 || per_cqe == 0) {
        return 0;
    }
    return least(least(max_qp / per_qp, max_cqe / per_cqe), 256);
}

/* ---- queue sizes of a buffer-and-ack socket ------------------------------------------- */

struct ha_socket_sizes ha_socket_sizes(const struct ha_socket_options *options)
{
    uint64_t               batch = options->ack_batch == 0 ? 1 : options->ack_batch;
    struct ha_socket_sizes sizes;

    sizes.ack_buffers = add(options->send_buffers / batch + (options->send_buffers % batch != 0), 4);
    sizes.recv_wr     = add(add(options->send_buffers, sizes.ack_buffers), 1);
    sizes.send_wr     = add(add(add(options->send_buffers, sizes.ack_buffers), options->max_rdma_wr), 2);
    sizes.cqe         = add(sizes.send_wr, sizes.recv_wr);
    return sizes;
}

int ha_socket_sizes_check(const struct ha_socket_sizes *sizes, const struct ha_budget_device *device, char *error,
                          size_t size)
{
    const struct {
        const char *name;
        uint64_t    value;
        const char *limit;
        uint64_t    most;
    } checks[] = {
        {"send_wr", sizes->send_wr, "max_qp_wr", device->max_qp_wr},
        {"recv_wr", sizes->recv_wr, "max_qp_wr", device->max_qp_wr},
        {"cqe", sizes->cqe, "max_cqe", device->max_cqe},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (checks[i].value > checks[i].most) {
            snprintf(error, size, "%s=%llu exceeds the device's %s=%llu", checks[i].name,
                     (unsigned long long)checks[i].value, checks[i].limit, (unsigned long long)checks[i].most);
            return -EINVAL;
        }
    }
    return 0;
}

/* ---- how long the hardware retries ---------------------------------------------------- */

#define MS 1000000ull

static uint64_t ack_timeout(unsigned timeout)
{
    return 4096ull << (timeout > 31 ? 31 : timeout);
}

uint64_t ha_window_nominal(unsigned timeout, unsigned retry_count)
{
    return timeout == 0 ? HA_WINDOW_FOREVER : multiply(ack_timeout(timeout), (uint64_t)retry_count + 1);
}

uint64_t ha_window_mlx5(unsigned timeout, unsigned retry_count)
{
    uint64_t interval = 2 * ack_timeout(timeout < 16 ? 16 : timeout);

    if (timeout == 0) {
        return HA_WINDOW_FOREVER;
    }
    if (retry_count == 0) {
        return 2000 * MS;
    }
    return multiply(interval, retry_count) - (timeout <= 16 ? 96 : 364) * MS;
}
