/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Speed and distance of a rail. The expected numbers are worked out by hand from what UCX 1.13.1's
 * `rc_verbs` reckons; one was seen in its `ucx_info -d`. Sysfs is made up in a directory.
 */

#include "topo/ha_near.h"
#include "verbs/ha_link.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[] = "/tmp/ha_link.XXXXXX";

static void write_file(const char *dir, const char *name, const char *text)
{
    char  path[256], command[300];
    FILE *file;

    snprintf(command, sizeof(command), "mkdir -p %s/%s", root, dir);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof(path), "%s/%s/%s", root, dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void test_speeds(void **state)
{
    static const struct {
        struct ha_link link;
        double         gbps, latency;
    } ports[] = {
        {{2, 1, 0}, 8, 5000e-9},            /* SDR x4 */
        {{2, 2, 0}, 16, 2500e-9},           /* DDR */
        {{2, 4, 0}, 32, 1300e-9},           /* QDR */
        {{2, 4, 1}, 40, 1500e-9},           /* 40 Gbit/s Ethernet */
        {{1, 4, 1}, 10, 1500e-9},           /* 10 Gbit/s Ethernet */
        {{2, 8, 0}, 40, 700e-9},            /* FDR-10 */
        {{2, 16, 0}, 600. / 11, 700e-9},    /* FDR: 54.5 */
        {{2, 32, 0}, 100, 600e-9},          /* EDR */
        {{1, 32, 1}, 25, 800e-9},           /* 25 Gbit/s Ethernet */
        {{2, 64, 1}, 200, 800e-9},          /* 200 Gbit/s Ethernet */
        {{2, 128, 0}, 12800. / 33, 600e-9}, /* NDR */
        {{4, 32, 0}, 200, 600e-9},
        {{8, 32, 0}, 300, 600e-9},
        {{16, 32, 0}, 50, 600e-9},
        {{77, 32, 0}, 25, 600e-9}, /* unknown codes: the slowest */
        {{2, 3, 0}, 8, 5000e-9},
        {{0, 0, 0}, 2, 5000e-9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        assert_true(near(ha_link_wire_speed(&ports[i].link) * 8e-9, ports[i].gbps));
        assert_true(near(ha_link_latency(&ports[i].link), ports[i].latency));
    }
    assert_int_equal(ha_link_packet_extra(0), 44); /* 12 + 16 + 4 + 2 + 2 + 8 */
    assert_int_equal(ha_link_packet_extra(1), 90); /* ... without 8, 40 + 14 more */
    /* seen: 23588 MiB/s of a port HDR x4 with packets of 4096 bytes */
    assert_int_equal((int)(ha_link_wire_speed(&(struct ha_link){2, 64, 0}) * 4096 / (4096 + 44) / (1 << 20)), 23588);
}

/* 8 GT/s x 16: 15.75 GB/s on the wire, of which 256 of 286 bytes are data. */
static void test_slot(void **state)
{
    char card[64];

    (void)state;
    snprintf(card, sizeof(card), "%s/card", root);
    assert_true(isinf(ha_link_slot_rate(card)));
    write_file("card/device", "current_link_speed", "8.0 GT/s PCIe\n");
    assert_true(isinf(ha_link_slot_rate(card)));
    write_file("card/device", "current_link_width", "16\n");
    assert_true(near(ha_link_slot_rate(card), 16e9 * 128 / 130 * 256 / 286));
    write_file("card/device", "current_link_speed", "2.5 GT/s\n");
    assert_true(near(ha_link_slot_rate(card), 16 * 2.5e9 / 8 * 0.8 * 256 / 284));
    write_file("card/device", "current_link_width", "0\n");
    assert_true(isinf(ha_link_slot_rate(card)));
    write_file("card/device", "current_link_width", "Unknown\n");
    assert_true(isinf(ha_link_slot_rate(card)));
}

static int distance(int node, int cpu)
{
    struct ha_near_cpus cpus = {{0}};

    if (cpu >= 0) {
        cpus.word[cpu / 64] = UINT64_C(1) << cpu % 64;
    }
    return ha_near_distance(root, node, &cpus);
}

static void test_distance(void **state)
{
    struct ha_near_cpus cpus;

    (void)state;
    assert_int_equal(distance(0, 0), 10); /* sysfs says nothing */
    assert_int_equal(distance(-1, 0), 10);
    assert_int_equal(ha_near_of_thread(&cpus), 0);
    write_file("devices/system/node/node0", "cpulist", "0-3,8\n");
    write_file("devices/system/node/node1", "cpulist", "4-7\n");
    write_file("devices/system/node/node2", "cpulist", "\n"); /* memory only */
    write_file("devices/system/node/node0", "distance", "10 21 14\n");
    write_file("devices/system/node/node1", "distance", "21 10 31\n");
    write_file("devices/system/node/node2", "distance", "14 31 10\n");
    assert_int_equal(ha_near_of_node(root, 0, &cpus), 5);
    assert_true(ha_near_has(&cpus, 8) && ha_near_has(&cpus, 3) && !ha_near_has(&cpus, 4));
    assert_int_equal(ha_near_of_node(root, 2, &cpus), 0);
    assert_int_equal(ha_near_of_node(root, 3, &cpus), 0);
    assert_int_equal(distance(0, 8), 10);
    assert_int_equal(distance(0, 7), 21);
    assert_int_equal(distance(1, 0), 21);
    assert_int_equal(distance(2, 5), 31);
    assert_int_equal(distance(2, 0), 14);
    assert_int_equal(distance(0, 9), 10); /* a CPU of no node */
    assert_int_equal(distance(0, -1), 10);
    write_file("devices/system/node/node1", "cpulist", "4-99999999\n");
    assert_int_equal(ha_near_of_node(root, 1, &cpus), HA_NEAR_CPUS - 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speeds),
        cmocka_unit_test(test_slot),
        cmocka_unit_test(test_distance),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
