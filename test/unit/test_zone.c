/* SPDX-License-Identifier: BSD-3-Clause */

/* Zones as the user writes them. */

#include "topo/ha_zone.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t no_gid[16];

static const uint8_t *gid_of(const char *address)
{
    static uint8_t gid[16];

    memset(gid, 0, sizeof(gid));
    if (inet_pton(AF_INET6, address, gid) != 1) {
        gid[10] = gid[11] = 0xff;
        assert_int_equal(inet_pton(AF_INET, address, gid + 12), 1);
    }
    return gid;
}

static void expect(const char *text, const char *rail, const char *netdev, const uint8_t *gid, const char *zone)
{
    struct ha_zones zones;
    char            error[160] = "";
    const char     *found;

    assert_int_equal(ha_zones_parse(text, &zones, error, sizeof(error)), 0);
    assert_string_equal(error, "");
    found = ha_zone_name(&zones, rail, netdev, gid);
    if (zone == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, zone);
    }
}

static void expect_error(const char *text, const char *part)
{
    struct ha_zones zones;
    char            error[160] = "";

    assert_int_equal(ha_zones_parse(text, &zones, error, sizeof(error)), -EINVAL);
    if (strstr(error, part) == NULL) {
        fail_msg("'%s' does not say '%s'", error, part);
    }
}

static void test_none(void **state)
{
    (void)state;
    expect(NULL, "mlx5_0:1", "eth0", no_gid, NULL);
    expect(" ", "mlx5_0:1", "eth0", no_gid, NULL);
    expect("mlx5_1:a", "mlx5_0:1", "eth0", no_gid, NULL);
}

static void test_names(void **state)
{
    (void)state;
    expect("mlx5_0:railA, mlx5_1:railB", "mlx5_1:1", "", no_gid, "railB");
    expect("mlx5_0:2:railA,mlx5_0:railB", "mlx5_0:2", "", no_gid, "railA");
    expect("mlx5_0:2:railA,mlx5_0:railB", "mlx5_0:1", "", no_gid, "railB");
    expect("ens1f0:x", "mlx5_0:1", "ens1f0", no_gid, "x");
    expect("mlx5:x", "mlx5_0:1", "", no_gid, NULL); /* no part of a name */
    expect("mlx5_0:x", "mlx5_01:1", "", no_gid, NULL);
    expect("mlx5_0:first,mlx5_0:second", "mlx5_0:1", "", no_gid, "first");
}

static void test_subnets(void **state)
{
    (void)state;
    expect("10.1.0.0/16:b", "a:1", "", gid_of("10.1.255.3"), "b");
    expect("10.1.0.0/16:b", "a:1", "", gid_of("10.2.0.3"), NULL);
    expect("10.1.0.128/25:b", "a:1", "", gid_of("10.1.0.127"), NULL);
    expect("10.1.0.128/25:b", "a:1", "", gid_of("10.1.0.129"), "b");
    expect("fd00:1::/32:b", "a:1", "", gid_of("fd00:1:2::9"), "b");
    expect("fd00:1::/32:b", "a:1", "", gid_of("fd00:2::9"), NULL);
    expect("0.0.0.0/0:all", "a:1", "", gid_of("192.0.2.1"), "all");
    expect("0.0.0.0/0:all", "a:1", "", gid_of("fd00::1"), NULL); /* no IPv4 */
    expect("::/0:all", "a:1", "", no_gid, NULL);                 /* no address yet */
}

static void test_errors(void **state)
{
    char many[33 * 8] = "a:z", *end = many + 3;

    (void)state;
    expect_error("mlx5_0", "'mlx5_0' has no ':'");
    expect_error("mlx5_0:a,", "'' is an empty entry");
    expect_error("mlx5_0:", "'mlx5_0:' names no zone");
    expect_error(":a", "':a' names no device");
    expect_error("10.1.0.0/33:a", "'10.1.0.0/33:a' has no valid subnet");
    expect_error("10.1.0/16:a", "no valid subnet");
    expect_error("10.1.0.0/:a", "no valid subnet");
    expect_error("10.1.0.0/-1:a", "no valid subnet");
    expect_error("fd00::/129:a", "no valid subnet");
    expect_error("fd00::/99999999999999999999:a", "no valid subnet");
    expect_error("a:zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "more than 31 characters");
    expect_error("dddddddddddddddddddddddddddddddd:a", "more than 31 characters");
    for (int i = 1; i < 33; i++) {
        end += sprintf(end, ",a:z");
    }
    expect_error(many, "one entry too many");
}

static void test_hash(void **state)
{
    (void)state;
    assert_int_equal(ha_zone_hash(NULL), 0);
    assert_true(ha_zone_hash("railA") != ha_zone_hash("railB"));
    assert_true(ha_zone_hash("") != 0);
    assert_int_equal(ha_zone_hash("a"), 0x0c292cu ^ 0xe4u); /* FNV-1a: on the wire, must not change */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),   cmocka_unit_test(test_names), cmocka_unit_test(test_subnets),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
