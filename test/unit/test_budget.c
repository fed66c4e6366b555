/* SPDX-License-Identifier: BSD-3-Clause */

/* Budgets, derived sizes, hardware windows: known values, and limits of any size. */

#include "topo/ha_budget.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t extremes[] = {0, 1, 2, 255, 32767, 1u << 31, (uint64_t)1 << 63, UINT64_MAX};

#define EXTREMES (sizeof(extremes) / sizeof(extremes[0]))

static void test_need(void **state)
{
    struct ha_budget_need need = ha_budget_need(256, 128, 8, 8192, 2);

    (void)state;
    assert_int_equal(need.send_wr, 256);
    assert_int_equal(need.recv_wr, 132);
    assert_int_equal(need.cqe, 14); /* docs/tuning.md */
    assert_int_equal(need.cqe_shared, 256);
    assert_int_equal(need.bytes, 192 << 10);
    need = ha_budget_need(257, 128, 200, 8192, 1);
    assert_int_equal(need.send_wr, 512);
    assert_int_equal(need.bytes, 132 * 8192); /* never more than RX_QUEUE_LEN */
}

/* Soft-RoCE: its largest completion queue holds 2322 new lanes (docs/tuning.md). */
static void test_soft_roce(void **state)
{
    struct ha_budget_device device = {
        .max_qp = 1048560, .max_qp_wr = 1048576, .max_cqe = 32767, .max_mr = 524287, .memlock = HA_BUDGET_UNLIMITED};
    struct ha_budget_need need   = ha_budget_need(256, 128, 8, 8192, 2);
    struct ha_budget      budget = ha_budget(&device, &need);

    (void)state;
    assert_int_equal(budget.connections, 2322);
    assert_int_equal(budget.limited_by, HA_BUDGET_CQE);
    assert_string_equal(ha_budget_limit_name(budget.limited_by), "max_cqe");
    assert_int_equal(budget.by[HA_BUDGET_QP], 524280);
    assert_true(budget.queues_fit);

    device.memlock = 64 << 20; /* the usual limit of 64 MiB; each rail locks for itself */
    budget         = ha_budget(&device, &need);
    assert_int_equal(budget.connections, 170);
    assert_int_equal(budget.limited_by, HA_BUDGET_MEMLOCK);

    device.max_qp_wr = 100; /* shallower queues need fewer completions */
    budget           = ha_budget(&device, &need);
    assert_false(budget.queues_fit);
    assert_int_equal(budget.by[HA_BUDGET_CQE], (32767 - 100) / 14);
}

/* Whatever a device claims to have: what is promised fits into it. */
static void test_budget_never_promises_too_much(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTREMES * EXTREMES * EXTREMES; i++) {
        uint64_t                a = extremes[i % EXTREMES], b = extremes[i / EXTREMES % EXTREMES];
        uint64_t                c      = extremes[i / EXTREMES / EXTREMES];
        struct ha_budget_device device = {.max_qp = a, .max_qp_wr = b, .max_cqe = c, .max_mr = a, .memlock = b};
        struct ha_budget_need   need   = ha_budget_need(c, a, b, b, 2);
        struct ha_budget        budget = ha_budget(&device, &need);

        assert_true(budget.connections <= budget.by[HA_BUDGET_QP]);
        assert_true(a == UINT64_MAX || budget.connections <= a / 2);
        assert_true(c == UINT64_MAX || budget.connections <= c);
        assert_true(budget.connections <= budget.by[budget.limited_by]);
        assert_true(b != 0 || budget.connections == 0);
    }
}

static void test_seed_formula(void **state)
{
    (void)state;
    assert_int_equal(ha_budget_seed(262144, 4194303, 64, 16, 8), 227); /* cqe: 4194303 / 18432 */
    assert_int_equal(ha_budget_seed(1024, 4194303, 64, 16, 8), 32);    /* qp */
    assert_int_equal(ha_budget_seed(1u << 30, 1u << 30, 1, 1, 1), 256);
    assert_int_equal(ha_budget_seed(1024, 1024, 64, 0, 8), 0); /* the original divides by zero */
    assert_int_equal(ha_budget_seed(1024, 1024, 0, 16, 8), 0);
    for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {
        assert_true(
            ha_budget_seed(UINT64_MAX, UINT64_MAX, extremes[i % EXTREMES], extremes[i / EXTREMES], UINT64_MAX) <= 256);
    }
}

static void test_socket_sizes(void **state)
{
    struct ha_socket_options options = {.send_buffers = 32, .ack_batch = 8, .max_rdma_wr = 128};
    struct ha_socket_sizes   sizes   = ha_socket_sizes(&options);

    (void)state;
    assert_int_equal(sizes.ack_buffers, 8);
    assert_int_equal(sizes.send_wr, 170);
    assert_int_equal(sizes.recv_wr, 41);
    assert_int_equal(sizes.cqe, 211);
    options.send_buffers = 33;
    assert_int_equal(ha_socket_sizes(&options).ack_buffers, 9);
    options.ack_batch = 0;
    assert_int_equal(ha_socket_sizes(&options).ack_buffers, 37);
    options = (struct ha_socket_options){UINT64_MAX, 1, UINT64_MAX};
    assert_true(ha_socket_sizes(&options).cqe == UINT64_MAX);
}

static void test_socket_sizes_are_refused_by_name(void **state)
{
    struct ha_socket_sizes  sizes  = {.ack_buffers = 8, .send_wr = 170, .recv_wr = 41, .cqe = 211};
    struct ha_budget_device device = {.max_qp_wr = 170, .max_cqe = 211};
    char                    error[128];

    (void)state;
    assert_int_equal(ha_socket_sizes_check(&sizes, &device, error, sizeof(error)), 0);
    device.max_cqe = 210;
    assert_int_equal(ha_socket_sizes_check(&sizes, &device, error, sizeof(error)), -EINVAL);
    assert_string_equal(error, "cqe=211 exceeds the device's max_cqe=210");
    device.max_qp_wr = 169;
    assert_int_equal(ha_socket_sizes_check(&sizes, &device, error, sizeof(error)), -EINVAL);
    assert_string_equal(error, "send_wr=170 exceeds the device's max_qp_wr=169");
}

static void expect_ms(uint64_t window, unsigned ms)
{
    uint64_t off = window > ms * 1000000ull ? window - ms * 1000000ull : ms * 1000000ull - window;

    if (off > ms * 20000ull) { /* 2 % */
        fail_msg("%llu ns, not %u ms", (unsigned long long)window, ms);
    }
}

static void test_windows(void **state)
{
    (void)state;
    expect_ms(ha_window_nominal(14, 6), 470); /* seen in the lab: 475 ms */
    expect_ms(ha_window_nominal(16, 6), 1879);
    assert_true(ha_window_nominal(0, 6) == HA_WINDOW_FOREVER);
    assert_true(ha_window_nominal(99, UINT32_MAX) == HA_WINDOW_FOREVER);
    /* as measured, see ha_budget.h */
    expect_ms(ha_window_mlx5(14, 1), 441);
    expect_ms(ha_window_mlx5(8, 2), 978);
    expect_ms(ha_window_mlx5(16, 7), 3662);
    expect_ms(ha_window_mlx5(17, 7), 7152);
    expect_ms(ha_window_mlx5(18, 7), 14668);
    expect_ms(ha_window_mlx5(20, 7), 59765);
    expect_ms(ha_window_mlx5(14, 0), 2000);
    assert_true(ha_window_mlx5(0, 6) == HA_WINDOW_FOREVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_need),
        cmocka_unit_test(test_soft_roce),
        cmocka_unit_test(test_budget_never_promises_too_much),
        cmocka_unit_test(test_seed_formula),
        cmocka_unit_test(test_socket_sizes),
        cmocka_unit_test(test_socket_sizes_are_refused_by_name),
        cmocka_unit_test(test_windows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
