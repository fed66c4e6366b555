/* SPDX-License-Identifier: BSD-3-Clause */

/* Families of devices, whatever their names; and sysfs, made up in a directory. */

#include "verbs/ha_provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_soft_roce(void **state)
{
    (void)state;
    assert_int_equal(ha_provider("", 0xffffff, 0), HA_PROVIDER_RXE);
    assert_int_equal(ha_provider("", 0, 0), HA_PROVIDER_RXE);
    /* over a ConnectX, on a kernel that makes the card its parent */
    assert_int_equal(ha_provider("mlx5_core", 0, 0), HA_PROVIDER_RXE);
    assert_int_equal(ha_provider("mlx5_core", 0xffffff, 0), HA_PROVIDER_RXE);
    /* siw names itself */
    assert_int_equal(ha_provider("", 0x626d74, 0), HA_PROVIDER_OTHER);
}

static void test_mlx5(void **state)
{
    (void)state;
    assert_int_equal(ha_provider("mlx5_core", 0x02c9, 4123), HA_PROVIDER_MLX5);
    assert_int_equal(ha_provider("mlx5_core.sf", 0x02c9, 4126), HA_PROVIDER_MLX5);
    assert_int_equal(ha_provider("mlx5_core", 0x1014, 1), HA_PROVIDER_MLX5); /* another's label on it */
    assert_int_equal(ha_provider("", 0x02c9, 4113), HA_PROVIDER_MLX5);       /* no sysfs */
    assert_int_equal(ha_provider("", 0x02c9, 41686), HA_PROVIDER_MLX5);      /* BlueField-2 */
}

static void test_others(void **state)
{
    (void)state;
    assert_int_equal(ha_provider("mlx4_core", 0x02c9, 4103), HA_PROVIDER_OTHER);
    assert_int_equal(ha_provider("", 0x02c9, 4103), HA_PROVIDER_OTHER);
    assert_int_equal(ha_provider("", 0x02c9, 25418), HA_PROVIDER_OTHER);
    assert_int_equal(ha_provider("bnxt_en", 0x14e4, 5968), HA_PROVIDER_OTHER);
    assert_int_equal(ha_provider("", 0x8086, 4113), HA_PROVIDER_OTHER);
    assert_int_equal(ha_provider("my_mlx5_core", 0x02c9, 1), HA_PROVIDER_OTHER);
}

static void test_driver_from_sysfs(void **state)
{
    char dir[] = "/tmp/ha_provider.XXXXXX", path[64], driver[12];

    (void)state;
    assert_non_null(mkdtemp(dir));
    ha_provider_driver(dir, driver, sizeof(driver));
    assert_string_equal(driver, "");
    snprintf(path, sizeof(path), "%s/device", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/device/driver", dir);
    assert_int_equal(symlink("../../../bus/pci/drivers/mlx5_core", path), 0);
    ha_provider_driver(dir, driver, sizeof(driver));
    assert_string_equal(driver, "mlx5_core");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("mlx5_core_of_a_long_name", path), 0);
    ha_provider_driver(dir, driver, sizeof(driver));
    assert_string_equal(driver, "mlx5_core_o");
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/device", dir);
    rmdir(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soft_roce),
        cmocka_unit_test(test_mlx5),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_driver_from_sysfs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
