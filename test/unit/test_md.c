/* SPDX-License-Identifier: BSD-3-Clause */

/* Which memory domains there are, and with what they open their rails. No device is needed. */

#include "md_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucs/debug/log_def.h>

static void test_no_device_is_no_domain(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];

    (void)state;
    assert_int_equal(query(found), 0);
}

static void test_one_domain_per_rail(void **state)
{
    uct_md_resource_desc_t    found[HA_RAILS_MAX];
    uct_tl_device_resource_t *devices;
    unsigned                  num_devices;
    uct_md_h                  md;

    (void)state;
    add_rail("rxe_a:1");
    add_rail("rxe_b:1");
    assert_int_equal(query(found), 2);
    assert_string_equal(found[0].md_name, "rxe_a:1");
    assert_string_equal(found[1].md_name, "rxe_b:1");

    assert_int_equal(open_md("rxe_b:1", &md), UCS_OK);
    assert_ptr_equal(md->component, &component);
    assert_ptr_equal(uct_ha_md(md)->duo.rail[0], &rails[1]);
    assert_ptr_equal(uct_ha_md(md)->duo.rail[1], &rails[0]);
    assert_int_equal(uct_ha_query_devices(md, &devices, &num_devices), UCS_OK);
    assert_int_equal(num_devices, 1);
    assert_string_equal(devices[0].name, "rxe_b:1");
    assert_int_equal(devices[0].type, UCT_DEVICE_TYPE_NET);
    ucs_free(devices);
    close_md(md);

    assert_int_equal(open_md("nonsense", &md), UCS_ERR_NO_DEVICE);
}

static ucs_status_t offered(const char *name)
{
    uct_tl_device_resource_t *devices = NULL;
    unsigned                  num_devices;
    ucs_status_t              status;
    uct_md_h                  md;

    assert_int_equal(open_md(name, &md), UCS_OK);
    status = uct_ha_query_devices(md, &devices, &num_devices);
    if (status == UCS_OK) {
        ucs_free(devices);
    }
    close_md(md);
    return status;
}

/* Two rails that only have each other are dead at start: they are not offered while
 * others work, which peers can be reached by. */
static void test_domain_without_a_living_rail(void **state)
{
    (void)state;
    add_rail("three_a:1");
    add_rail("three_b:1");
    add_rail("three_c:1");
    rails[0].link_layer = rails[1].link_layer = HA_LINK_IB;
    rails[0].down = rails[1].down = 1;
    assert_int_equal(offered("three_a:1"), UCS_ERR_NO_DEVICE);
    assert_int_equal(offered("three_b:1"), UCS_ERR_NO_DEVICE);
    assert_int_equal(offered("three_c:1"), UCS_OK);
    setenv("UCX_HA_RC_RAILS", "three_a+three_b,three_c", 1);
    assert_int_equal(offered("three_a:1"), UCS_OK); /* as the user wants */
}

static void test_domain_with_a_living_standby(void **state)
{
    (void)state;
    add_rail("half_a:1");
    add_rail("half_b:1");
    add_rail("half_c:1");
    rails[0].down = 1;
    assert_int_equal(offered("half_a:1"), UCS_OK);
    assert_int_equal(offered("half_c:1"), UCS_OK);
}

static void test_nothing_is_up(void **state)
{
    (void)state;
    add_rail("dead_a:1");
    add_rail("dead_b:1");
    rails[0].down = rails[1].down = 1;
    assert_int_equal(offered("dead_a:1"), UCS_OK); /* they may come up */
}

static void test_long_names_stay_apart(void **state)
{
    uct_md_resource_desc_t    found[HA_RAILS_MAX];
    uct_tl_device_resource_t *devices;
    unsigned                  num_devices;
    uct_md_h                  md;

    (void)state;
    add_rail("rocep129s0f0np0:1");
    add_rail("rocep129s0f0np1:1");
    assert_int_equal(query(found), 2);
    assert_string_not_equal(found[0].md_name, found[1].md_name);

    assert_int_equal(open_md(found[1].md_name, &md), UCS_OK);
    assert_int_equal(uct_ha_query_devices(md, &devices, &num_devices), UCS_OK);
    assert_string_equal(devices[0].name, "rocep129s0f0np1:1");
    ucs_free(devices);
    close_md(md);
}

static void test_groups_limit_what_is_offered(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_md_h               md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    add_rail("c:1");
    setenv("UCX_HA_RC_RAILS", "c:1+a:1", 1);
    assert_int_equal(query(found), 2);
    assert_string_equal(found[0].md_name, "a:1");
    assert_string_equal(found[1].md_name, "c:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_ptr_equal(uct_ha_md(md)->duo.rail[1], &rails[2]);
    close_md(md);
}

static void test_bad_groups_give_no_domain(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_md_h               md;

    (void)state;
    add_rail("a:1");
    setenv("UCX_HA_RC_RAILS", "a:1+nonsense:1", 1);
    assert_int_equal(query(found), 0);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
}

static void test_backup_switched_off(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    setenv("UCX_HA_RC_ENABLE_BACKUP", "n", 1);
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_null(uct_ha_md(md)->duo.rail[1]);
    close_md(md);
}

static void test_standby_that_does_not_open(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    rails[1].open_error = -EADDRNOTAVAIL;
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_null(uct_ha_md(md)->duo.rail[1]);
    close_md(md);
    assert_int_equal(open_md("b:1", &md), UCS_ERR_NO_DEVICE);
}

/* iWARP, EFA: UCX is told that there is no such device, and nobody's standby is one. */
static void test_port_that_is_no_rail(void **state)
{
    static const int no[] = {-EPROTONOSUPPORT, -EOPNOTSUPP};
    uct_md_h         md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); ++i) {
        rails[1].open_error = no[i];
        assert_int_equal(open_md("b:1", &md), UCS_ERR_NO_DEVICE);
        assert_int_equal(open_md("a:1", &md), UCS_OK);
        assert_null(uct_ha_md(md)->duo.rail[1]);
        close_md(md);
    }
}

static char last_error[256];

static ucs_log_func_rc_t keep_error(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                                    const ucs_log_component_config_t *config, const char *message, va_list args)
{
    (void)file, (void)line, (void)function, (void)config;
    if (level == UCS_LOG_LEVEL_ERROR) {
        vsnprintf(last_error, sizeof(last_error), message, args);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

static void test_partition_key_that_is_not_there(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    setenv("UCX_HA_RC_PKEY_INDEX", "3", 1);
    rails[0].open_error = -ENOKEY;
    ucs_log_push_handler(keep_error);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_NO_DEVICE);
    ucs_log_pop_handler();
    assert_non_null(strstr(last_error, "UCX_HA_RC_PKEY_INDEX=3: rail a:1 has no partition key there"));
}

static void test_options_reach_the_rail(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    setenv("UCX_HA_RC_SL", "3", 1);
    setenv("UCX_HA_RC_PATH_MTU", "1024", 1);
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(last_opts.sl, 3);
    assert_int_equal(last_opts.mtu, 1024);
    assert_int_equal(last_opts.gid_index, -1);
    assert_int_equal(last_opts.hop_limit, 64);
    close_md(md);

    setenv("UCX_HA_RC_PATH_MTU", "1000", 1);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
    setenv("UCX_HA_RC_PATH_MTU", "0", 1);
    setenv("UCX_HA_RC_SL", "16", 1);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
}

static void test_attributes(void **state)
{
    uct_md_attr_t attr;
    uct_md_h      md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    memset(&attr, 0xff, sizeof(attr));
    assert_int_equal(uct_ha_md_query(md, &attr), UCS_OK);
    assert_int_equal(attr.cap.flags, UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY);
    assert_int_equal(attr.rkey_packed_size, 8);
    assert_int_equal(attr.cap.max_alloc, 0);
    assert_true(attr.cap.max_reg == SIZE_MAX);
    assert_true(attr.reg_cost.c > 0);
    assert_true(ucs_cpu_is_set(0, &attr.local_cpus));
    close_md(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_no_device_is_no_domain, md_setup),
                                       cmocka_unit_test_setup(test_one_domain_per_rail, md_setup),
                                       cmocka_unit_test_setup(test_domain_without_a_living_rail, md_setup),
                                       cmocka_unit_test_setup(test_domain_with_a_living_standby, md_setup),
                                       cmocka_unit_test_setup(test_nothing_is_up, md_setup),
                                       cmocka_unit_test_setup(test_long_names_stay_apart, md_setup),
                                       cmocka_unit_test_setup(test_groups_limit_what_is_offered, md_setup),
                                       cmocka_unit_test_setup(test_bad_groups_give_no_domain, md_setup),
                                       cmocka_unit_test_setup(test_backup_switched_off, md_setup),
                                       cmocka_unit_test_setup(test_standby_that_does_not_open, md_setup),
                                       cmocka_unit_test_setup(test_port_that_is_no_rail, md_setup),
                                       cmocka_unit_test_setup(test_partition_key_that_is_not_there, md_setup),
                                       cmocka_unit_test_setup(test_options_reach_the_rail, md_setup),
                                       cmocka_unit_test_setup(test_attributes, md_setup)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
