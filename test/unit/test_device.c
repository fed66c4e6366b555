/* SPDX-License-Identifier: BSD-3-Clause */

/* An open device: when its removal is seen, and when it is closed. */

#include "verbs/ha_device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "verbs/ha_rail_priv.h"

static struct ibv_device  node;
static struct ibv_context context = {.device = &node};
static struct ibv_pd      pd;
static struct ibv_mr      regions[2];
static unsigned           registered, closed;
static struct ha_device   device;
static char               base[64], folder[80], other[80], path[96];

/* ---- a device ---- */

static struct ibv_mr *reg(void)
{
    return &regions[registered++];
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *of, void *addr, size_t length, int access)
{
    (void)of, (void)addr, (void)length, (void)access;
    return reg();
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *of, void *addr, size_t length, uint64_t iova, unsigned access)
{
    (void)of, (void)addr, (void)length, (void)iova, (void)access;
    return reg();
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    (void)mr;
    assert_int_equal(closed, 0);
    registered--;
    return 0;
}

int ibv_dealloc_pd(struct ibv_pd *of)
{
    (void)of;
    assert_int_equal(registered, 0);
    return 0;
}

int ibv_close_device(struct ibv_context *of)
{
    (void)of;
    closed++;
    return 0;
}

/* base/folder/uverbs0, as /sys/class/infiniband_verbs/uverbs0. */
static int open_device(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/test_device.XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof(folder), "%s/class", base);
    snprintf(other, sizeof(other), "%s/elsewhere", base);
    snprintf(path, sizeof(path), "%s/uverbs0", folder);
    assert_int_equal(mkdir(folder, 0700) | mkdir(path, 0700), 0);
    snprintf(node.dev_path, sizeof(node.dev_path), "%s", path);
    registered = closed = 0;
    ha_device_init(&device, &context, &pd);
    return 0;
}

static int close_device(void **state)
{
    char command[160];

    (void)state;
    ha_device_end(&device);
    assert_int_equal(closed, 1);
    snprintf(command, sizeof(command), "rm -r %s", base);
    return system(command);
}

/* ---- tests ---- */

static void test_removal_is_seen(void **state)
{
    (void)state;
    assert_false(ha_device_is_removed(&device));
    assert_int_equal(rename(path, other), 0);
    assert_true(ha_device_is_removed(&device));
    assert_int_equal(mkdir(path, 0700), 0); /* another one has its name */
    assert_true(ha_device_is_removed(&device));
}

/* As in a process that has changed its root: it says nothing about the device. */
static void test_lost_sight_is_no_removal(void **state)
{
    (void)state;
    assert_int_equal(rename(folder, other), 0);
    assert_false(ha_device_is_removed(&device));
    assert_int_equal(rename(other, folder), 0);
    assert_false(ha_device_is_removed(&device));
}

static void test_closed_behind_the_last_user(void **state)
{
    char          byte;
    struct ha_mr *mr = NULL, *late = NULL, *none = NULL;

    (void)state;
    assert_int_equal(ha_device_use(&device), 0);
    assert_int_equal(ha_device_use(&device), 0);
    assert_int_equal(ha_device_reg(&device, &byte, 1, 0, &mr), 0);
    ha_device_leave(&device);
    ha_device_be_gone(&device, 0);
    assert_int_equal(ha_device_use(&device), -ENODEV);
    assert_int_equal(closed, 0);
    assert_int_equal(ha_device_reg(&device, &byte, 1, 0, &late), 0); /* a lane is there yet, for which it is needed */
    assert_int_equal(registered, 2);
    ha_device_leave(&device); /* regions go with the last user */
    assert_int_equal(closed, 1);
    assert_int_equal(registered, 0);
    assert_int_equal(ha_device_reg(&device, &byte, 1, 0, &none), -ENODEV);
    ha_device_dereg(mr); /* who holds it gives it back later */
    ha_device_dereg(late);
    assert_int_equal(closed, 1);
}

/* Its commands may take a minute, and fail. */
static void test_failed_device_gets_no_memory(void **state)
{
    char          byte;
    struct ha_mr *mr = NULL;

    (void)state;
    assert_int_equal(ha_device_use(&device), 0);
    ha_device_be_gone(&device, 1);
    assert_int_equal(ha_device_reg(&device, &byte, 1, 0, &mr), -ENODEV);
    assert_int_equal(registered, 0);
    ha_device_leave(&device);
    assert_int_equal(closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_removal_is_seen, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_lost_sight_is_no_removal, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_closed_behind_the_last_user, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_failed_device_gets_no_memory, open_device, close_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
