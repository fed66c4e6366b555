/* SPDX-License-Identifier: BSD-3-Clause */

/* Depths of queues: as wanted, as far as the device goes; and no device that hangs or
 * wraps them. */

#include "topo/ha_depths.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect(uint32_t tx, uint32_t rx, uint32_t init, uint32_t max_qp_wr, uint32_t sends, uint32_t credits,
                   uint32_t window)
{
    struct ha_depths depths;

    assert_int_equal(ha_depths(tx, rx, init, max_qp_wr, &depths), 0);
    assert_int_equal(depths.sends, sends);
    assert_int_equal(depths.credits, credits);
    assert_int_equal(depths.window, window);
    assert_int_equal(depths.recvs, window + 4);
}

static void test_as_wanted(void **state)
{
    (void)state;
    expect(256, 128, 8, 16384, 256, 8, 128);
    expect(257, 128, 128, 16384, 512, 128, 128);
    expect(256, 16, 128, 16384, 256, 16, 16);
    expect(0, 0, 0, 16384, 16, 4, 4);
    expect(256, 128, 15, 16384, 256, 8, 128); /* an address has room for a power of two only */
}

static void test_as_far_as_the_device_goes(void **state)
{
    (void)state;
    expect(256, 128, 8, 256, 256, 8, 128);
    expect(256, 128, 8, 255, 128, 8, 128);
    expect(256, 128, 8, 100, 64, 8, 96);
    expect(256, 128, 128, 16, 16, 8, 12);
}

static void test_device_with_next_to_nothing(void **state)
{
    struct ha_depths depths;

    (void)state;
    for (uint32_t max_qp_wr = 0; max_qp_wr < HA_DEPTHS_WR_MIN; max_qp_wr++) {
        assert_int_equal(ha_depths(256, 128, 8, max_qp_wr, &depths), -ENOSPC);
    }
}

static void test_nothing_wraps(void **state)
{
    static const uint32_t ends[] = {0, 1, 16, 17, 18, 1u << 31, UINT32_MAX - 1, UINT32_MAX};
    struct ha_depths      depths;

    (void)state;
    for (size_t i = 0; i < 8 * 8 * 8 * 8; i++) {
        uint32_t wr = ends[i / 512];

        if (ha_depths(ends[i % 8], ends[i / 8 % 8], ends[i / 64 % 8], wr, &depths) == 0) {
            assert_in_range(depths.sends, 16, wr);
            assert_int_equal(depths.sends & (depths.sends - 1), 0);
            assert_in_range(depths.credits, 4, depths.window);
            assert_int_equal(depths.credits & (depths.credits - 1), 0);
            assert_in_range(depths.recvs, depths.window + 1, wr);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_wanted),
        cmocka_unit_test(test_as_far_as_the_device_goes),
        cmocka_unit_test(test_device_with_next_to_nothing),
        cmocka_unit_test(test_nothing_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
