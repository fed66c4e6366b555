/* SPDX-License-Identifier: BSD-3-Clause */

/* PCI paths, distances, and what is read out of a sysfs tree made for the test. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif

#include "topo/ha_discover.h"
#include "topo/ha_discover_hwloc.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t address(unsigned domain, unsigned bus, unsigned device, unsigned function)
{
    return (uint64_t)domain << 16 | bus << 8 | device << 3 | function;
}

static void test_pci_path(void **state)
{
    struct ha_topo_pci pci;

    (void)state;
    assert_int_equal(ha_topo_pci_parse("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/"
                                       "infiniband/mlx5_1",
                                       &pci),
                     0);
    assert_true(pci.address == address(0, 0x3b, 0, 1));
    assert_true(pci.host_bridge == 0x3a);
    assert_int_equal(pci.num_bridges, 1);
    assert_true(pci.bridge[0] == address(0, 0x3a, 0, 0));

    /* domains of VMD have five digits */
    assert_int_equal(ha_topo_pci_parse("/sys/devices/pci10000:00/10000:00:1f.7", &pci), 0);
    assert_true(pci.address == address(0x10000, 0, 0x1f, 7));
    assert_true(pci.host_bridge == (uint64_t)0x10000 << 8);
    assert_int_equal(pci.num_bridges, 0);
}

static void test_paths_without_pci(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/sys/devices/virtual/net/lo",
        "/pci0000:00",
        "/0000:3b:00",
        "/0000:3b:00.8",
        "/0000:3b:20.0",
        "/0000:3b:00.0x",
        "/00000000000000000000000000:3b:00.0",
        "/:::.",
    };
    struct ha_topo_pci pci;

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(ha_topo_pci_parse(paths[i], &pci), -ENOENT);
        assert_true(pci.address == HA_TOPO_PCI_NONE);
    }
}

static void test_too_many_bridges(void **state)
{
    char               path[16 * 40] = "/pci0000:00", *end = path + strlen(path);
    struct ha_topo_pci pci;

    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        end += sprintf(end, "/0000:%02x:00.0", i);
    }
    assert_int_equal(ha_topo_pci_parse(path, &pci), 0);
    assert_true(pci.address == address(0, 29, 0, 0));
    assert_int_equal(pci.num_bridges, HA_TOPO_BRIDGES_MAX);
}

/* "0000:17:00.0" and "0000:18:00.0" share eight characters and nothing else. */
static void test_distance_goes_by_components(void **state)
{
    struct ha_topo_rail a, b;

    (void)state;
    ha_topo_rail_init(&a, "a:1");
    ha_topo_rail_init(&b, "b:1");
    assert_int_equal(ha_topo_near(&a, &b), HA_TOPO_SAME_NODE);
    ha_topo_pci_parse("/pci0000:16/0000:16:00.0/0000:17:00.0", &a.pci);
    ha_topo_pci_parse("/pci0000:16/0000:16:01.0/0000:18:00.0", &b.pci);
    assert_int_equal(ha_topo_near(&a, &b), HA_TOPO_SAME_HOST_BRIDGE);
    assert_int_equal(ha_topo_common_bridges(&a, &b), 0);
    ha_topo_pci_parse("/pci0000:26/0000:26:00.0/0000:27:00.0", &b.pci);
    assert_int_equal(ha_topo_near(&a, &b), HA_TOPO_SAME_NODE);
    a.numa_node = 0;
    b.numa_node = 1;
    assert_int_equal(ha_topo_near(&a, &b), HA_TOPO_FAR);
}

/* ---- a tree like /sys ---------------------------------------------------------------- */

static char tree[] = "/tmp/test_topo.XXXXXX";

static void make(const char *path, const char *content)
{
    char  full[512];
    FILE *file;

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(full, sizeof(full), "%s/%.*s", tree, (int)(slash - path), path);
        (void)mkdir(full, 0700);
    }
    snprintf(full, sizeof(full), "%s/%s", tree, path);
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void make_link(const char *path, const char *target)
{
    char full[512], to[512];

    make(path, "");
    snprintf(full, sizeof(full), "%s/%s", tree, path);
    snprintf(to, sizeof(to), "%s/%s", tree, target);
    assert_int_equal(unlink(full), 0);
    assert_int_equal(symlink(to, full), 0);
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
    (void)stat;
    (void)kind;
    (void)where;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(tree) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void test_sysfs_hardware(void **state)
{
    struct ha_topo_rail rail;

    (void)state;
    make("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/numa_node", "1\n");
    make_link("class/infiniband/mlx5_0/device", "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0");
    ha_topo_rail_init(&rail, "mlx5_0:1");
    ha_discover_sysfs(tree, &rail);
    assert_true(rail.pci.address == address(0, 0x3b, 0, 0));
    assert_int_equal(rail.pci.num_bridges, 1);
    assert_int_equal(rail.numa_node, 1);
}

/* Soft-RoCE over virtio: no device of its own, the net device's has no node, the PCI
 * function above it has. */
static void test_sysfs_software(void **state)
{
    struct ha_topo_rail rail;

    (void)state;
    make("devices/pci0000:00/0000:00:03.0/virtio1/vendor", "0x1af4\n");
    make("devices/pci0000:00/0000:00:03.0/numa_node", "2\n");
    make("class/infiniband/rxe_a/ports/1/gid_attrs/ndevs/0", "eth0\n");
    make_link("class/net/eth0/device", "devices/pci0000:00/0000:00:03.0/virtio1");
    ha_topo_rail_init(&rail, "rxe_a:1");
    ha_discover_sysfs(tree, &rail);
    assert_true(rail.pci.address == address(0, 0, 3, 0));
    assert_int_equal(rail.numa_node, 2);
}

/* Whether a port had a link since the host booted. */
static int was_active(const char *name)
{
    struct ha_topo_rail rail;

    ha_topo_rail_init(&rail, name);
    ha_discover_sysfs(tree, &rail);
    return rail.was_active;
}

static void test_sysfs_had_a_link(void **state)
{
    (void)state;
    make("class/infiniband/ib_0/ports/1/counters/link_downed", "3\n");
    make("class/infiniband/ib_0/ports/2/counters/link_downed", "0\n");
    assert_true(was_active("ib_0:1"));
    assert_false(was_active("ib_0:2"));
    make("class/infiniband/roce_0/ports/1/gid_attrs/ndevs/0", "eth8\n");
    assert_false(was_active("roce_0:1"));
    make("class/net/eth8/carrier_up_count", "0\n");
    assert_false(was_active("roce_0:1"));
    make("class/net/eth8/carrier_up_count", "2\n");
    assert_true(was_active("roce_0:1"));
    assert_false(was_active("absent:1"));
}

static void test_sysfs_knows_nothing(void **state)
{
    struct ha_topo_rail rail;

    (void)state;
    ha_topo_rail_init(&rail, "absent:1");
    rail.numa_node = 5;
    ha_discover_sysfs(tree, &rail);
    assert_true(rail.pci.address == HA_TOPO_PCI_NONE);
    assert_int_equal(rail.numa_node, 5); /* what was known stays */

    make("devices/pci0000:00/0000:00:04.0/numa_node", "-1\n");
    make_link("class/infiniband/vm_0/device", "devices/pci0000:00/0000:00:04.0");
    ha_topo_rail_init(&rail, "vm_0:1");
    ha_discover_sysfs(tree, &rail);
    assert_int_equal(rail.numa_node, -1);
}

/* This machine, whatever it is: no crash, unknown rails untouched. */
static void test_discover_here(void **state)
{
    struct ha_topo_rail rails[3], before[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[] = "no_such_0:1";

        name[8] = (char)('0' + i);
        ha_topo_rail_init(&rails[i], name);
    }
    memcpy(before, rails, sizeof(rails));
    ha_discover(rails, 3);
    ha_discover(rails, 3);
    assert_memory_equal(rails, before, sizeof(rails));
}

static void test_xml_errors(void **state)
{
    struct ha_topo_rail rails[1];
    char                path[512];
    int                 there = ha_discover_hwloc(rails, 0) != -ENOSYS;

    (void)state;
    assert_int_equal(ha_discover_xml("/no/such/file", rails, 1), there ? -ENOENT : -ENOSYS);
    make("rubbish.xml", "no topology\n");
    snprintf(path, sizeof(path), "%s/rubbish.xml", tree);
    assert_int_equal(ha_discover_xml(path, rails, 1), there ? -EINVAL : -ENOSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pci_path),         cmocka_unit_test(test_paths_without_pci),
        cmocka_unit_test(test_too_many_bridges), cmocka_unit_test(test_distance_goes_by_components),
        cmocka_unit_test(test_sysfs_hardware),   cmocka_unit_test(test_sysfs_software),
        cmocka_unit_test(test_sysfs_had_a_link), cmocka_unit_test(test_sysfs_knows_nothing),
        cmocka_unit_test(test_discover_here),    cmocka_unit_test(test_xml_errors),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
