/* SPDX-License-Identifier: BSD-3-Clause */

/* Which net devices lead to other hosts, in a made-up /sys/class/net. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ctl/netdev.h"

static char tree[] = "/tmp/test_netdev.XXXXXX";

static void make(const char *path)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "mkdir -p '%s/%s'", tree, path);
    assert_int_equal(system(command), 0);
}

static void test_internal(void **state)
{
    (void)state;
    make("eth0/device");
    make("bond0/bonding");
    make("eth0.7");
    make("docker0/bridge");
    make("docker0/brif/veth12");
    make("veth12");
    make("virbr0/bridge");
    make("br0/bridge");
    make("br0/brif/eth0");
    make("br1/bridge");
    make("br1/brif/bond0");
    make("br2/bridge");
    make("br2/brif/eth0.7");
    make("tun0/tun_flags");
    assert_false(uct_ha_netdev_is_internal(tree, "eth0"));
    assert_false(uct_ha_netdev_is_internal(tree, "bond0"));
    assert_false(uct_ha_netdev_is_internal(tree, "eth0.7"));
    assert_false(uct_ha_netdev_is_internal(tree, "br0"));
    assert_false(uct_ha_netdev_is_internal(tree, "br1"));
    assert_false(uct_ha_netdev_is_internal(tree, "br2"));
    assert_false(uct_ha_netdev_is_internal(tree, "unknown"));
    assert_true(uct_ha_netdev_is_internal(tree, "docker0"));
    assert_true(uct_ha_netdev_is_internal(tree, "virbr0"));
    assert_true(uct_ha_netdev_is_internal(tree, "veth12"));
    assert_true(uct_ha_netdev_is_internal(tree, "tun0"));
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(tree) == NULL;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r '%s'", tree);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_internal),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
