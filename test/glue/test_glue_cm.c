/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Client and server: UCX's rdmacm connects them. Of our addresses only that of the interface
 * travels then; for the other one UCX gives what rdmacm knows of the peer's device, in bytes
 * that are made by hand here, as UCX 1.13 to 1.23 lay them out. Also hosts whose device
 * address has no room for the standby rail: IPv6, InfiniBand.
 */

#include "glue_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

static char     said[512];
static unsigned times_said;

static ucs_log_level_t level_before;

static ucs_log_func_rc_t hear(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                              const ucs_log_component_config_t *config, const char *message, va_list args)
{
    char text[512];

    (void)file, (void)line, (void)function, (void)config;
    vsnprintf(text, sizeof(text), message, args);
    if (level <= UCS_LOG_LEVEL_ERROR && (strstr(text, "[HA-333]") != NULL || strstr(text, "[HA-331]") != NULL)) {
        memcpy(said, text, sizeof(said));
        times_said++;
    }
    return UCS_LOG_FUNC_RC_STOP;
}

static void listen_begin(void)
{
    times_said                              = 0;
    said[0]                                 = '\0';
    level_before                            = ucs_global_opts.log_component.log_level;
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_ERROR;
    ucs_log_push_handler(hear);
}

static void listen_end(void)
{
    ucs_log_pop_handler();
    ucs_global_opts.log_component.log_level = level_before;
}

/* What rdmacm says of the other side's first rail: link layer Ethernet, any RoCE version, GID; MTU 1024; our GID's
 * index, which says nothing. In memory of just that size: a sanitizer sees who reads behind it. */
static uint8_t *of_ethernet(int s)
{
    uint8_t *cm = malloc(1 + 16 + 2);

    assert_non_null(cm);
    cm[0] = 0x6b;
    fake_gid(s == 0 ? B0 : A0, cm + 1);
    cm[17] = 3;
    cm[18] = 1;
    return cm;
}

/* ... InfiniBand: LID, GUID (the subnet prefix is the usual one). */
static uint8_t *of_infiniband(int s)
{
    uint8_t *cm  = malloc(1 + 2 + 8 + 2), gid[16];
    uint16_t lid = (uint16_t)(100 + (s == 0 ? B0 : A0));

    assert_non_null(cm);
    fake_gid(s == 0 ? B0 : A0, gid);
    cm[0] = 0x43;
    memcpy(cm + 1, &lid, sizeof(lid));
    memcpy(cm + 3, gid + 8, 8);
    cm[11] = 3;
    cm[12] = 0;
    return cm;
}

static ucs_status_t try_cm(int s, int i, uint8_t *cm)
{
    struct side    *side = &world.side[s];
    uct_ep_params_t params;
    ucs_status_t    status;

    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = side->iface;
    params.dev_addr   = (void *)cm;
    params.iface_addr = (void *)world.side[!s].iface_addr;
    status            = uct_ep_create(&params, &side->ep[i]);
    free(cm);
    return status;
}

/* Both ways, then over the standby alone, and back. */
static void work_and_cut(void)
{
    am_exchange(0, 100);
    wait_standbys(2);
    am_post(0, 0, 10);
    fake_port(A0, 0);
    am_exchange(0, 50);
    pump_until(stats().failovers == 2);
    fake_port(A0, 1);
    wait_standbys(2);
    flush_all();
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

static void reopen(const char *settings0, const char *settings1)
{
    side_close(0);
    side_close(1);
    side_open(0, settings0);
    side_open(1, settings1);
}

static void test_addresses_fit_rdmacm(void **state)
{
    (void)state;
    world_open(1200, "");
    assert_int_equal(world.side[0].attr.device_addr_len, 31);
    assert_in_range(world.side[0].attr.iface_addr_len, 1, 21);
    assert_int_equal(world.side[0].attr.ep_addr_len, 0);
}

static void test_rdmacm_ipv4(void **state)
{
    (void)state;
    world_open(1201, "");
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_OK);
    work_and_cut();
}

/* The server's endpoint is there before the client's, and he may be the first to send. */
static void test_rdmacm_server_first(void **state)
{
    (void)state;
    world_open(1202, "CONTROL=ud");
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_OK);
    am_post(1, 0, 10);
    pump_until(stats().pairs == 2);
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    work_and_cut();
}

/* UCP exchanges whole addresses afterwards, and makes more endpoints by them. */
static void test_whole_address_after_rdmacm(void **state)
{
    (void)state;
    world_open(1203, "");
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_OK);
    am_exchange(0, 10);
    ep_open(0, 1);
    ep_open(1, 1);
    am_exchange(1, 10);
    wait_standbys(4);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

static void test_rdmacm_ipv6(void **state)
{
    (void)state;
    world_open(1204, "");
    for (int rail = A0; rail <= B1; rail++) {
        fake_ipv6(rail);
    }
    reopen("", "");
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_OK);
    work_and_cut();
}

static void test_rdmacm_infiniband(void **state)
{
    (void)state;
    world_open(1205, "");
    for (int rail = A0; rail <= B1; rail++) {
        fake_infiniband(rail);
    }
    reopen("", "");
    assert_int_equal(try_cm(0, 0, of_infiniband(0)), UCS_OK);
    assert_int_equal(try_cm(1, 0, of_infiniband(1)), UCS_OK);
    work_and_cut();
}

/* By our own addresses, as jobs: the standby rail is known from the first packet on. */
static void test_standby_is_learnt(void **state)
{
    (void)state;
    world_open(1206, "");
    for (int link = 0; link < 2; link++) {
        for (int rail = A0; rail <= B1; rail++) {
            if (link == 0) {
                fake_ipv6(rail);
            } else {
                fake_infiniband(rail);
            }
        }
        reopen("REQUIRE=y", "REQUIRE=y");
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 50);
        wait_standbys(2);
        assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
        memset(world.side[0].sent, 0, sizeof(world.side[0].sent));
        memset(world.side[1].sent, 0, sizeof(world.side[1].sent));
    }
}

/* Nobody asks whether the rails reach each other, and the answer is to come at once, with the reason. */
static void test_rdmacm_to_another_network(void **state)
{
    (void)state;
    world_open(1207, "");
    fake_ipv6(A0);
    reopen("", "");
    listen_begin();
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_ERR_UNREACHABLE);
    listen_end();
    assert_int_equal(times_said, 1);
    assert_non_null(strstr(said, "another network"));
    assert_non_null(strstr(said, "a0:1"));
}

/* TCP has no address there. */
static void test_rdmacm_without_datagrams(void **state)
{
    (void)state;
    world_open(1208, "");
    reopen("", "CONTROL=tcp");
    listen_begin();
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_ERR_UNREACHABLE);
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_ERR_UNREACHABLE);
    listen_end();
    assert_int_equal(times_said, 2);
    assert_non_null(strstr(said, "UCX_HA_RC_CONTROL"));
}

/* That there is no standby is found out when the peer has said where its second rail is. */
static void test_required_standby_is_missed_later(void **state)
{
    (void)state;
    world_open(1209, "");
    fake_ipv6(B1);
    reopen("REQUIRE=y", "");
    listen_begin();
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    pump_until(world.side[0].errors == 1);
    assert_int_equal(world.side[0].error, UCS_ERR_UNREACHABLE);
    assert_int_equal(try_cm(0, 1, of_ethernet(0)), UCS_ERR_UNREACHABLE);
    listen_end();
    assert_in_range(times_said, 1, 2);
    assert_non_null(strstr(said, "do not reach each other"));
}

static void test_required_standby_is_found_later(void **state)
{
    (void)state;
    world_open(1210, "REQUIRE=y");
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_OK);
    assert_int_equal(try_cm(1, 0, of_ethernet(1)), UCS_OK);
    work_and_cut();
}

/* What is neither ours nor rdmacm's. */
static void test_unknown_device_address(void **state)
{
    uint8_t *cm;

    (void)state;
    world_open(1211, "");
    cm    = of_ethernet(0);
    cm[0] = 0xeb;
    assert_int_equal(try_cm(0, 0, cm), UCS_ERR_INVALID_ADDR);
    cm     = of_ethernet(0);
    cm[17] = 0;
    assert_int_equal(try_cm(0, 0, cm), UCS_ERR_INVALID_ADDR);
    world.side[1].iface_addr[0] ^= 3; /* another version */
    assert_int_equal(try_cm(0, 0, of_ethernet(0)), UCS_ERR_INVALID_ADDR);
}

int glue_cm(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_addresses_fit_rdmacm),
        GLUE_TEST(test_rdmacm_ipv4),
        GLUE_TEST(test_rdmacm_server_first),
        GLUE_TEST(test_whole_address_after_rdmacm),
        GLUE_TEST(test_rdmacm_ipv6),
        GLUE_TEST(test_rdmacm_infiniband),
        GLUE_TEST(test_standby_is_learnt),
        GLUE_TEST(test_rdmacm_to_another_network),
        GLUE_TEST(test_rdmacm_without_datagrams),
        GLUE_TEST(test_required_standby_is_missed_later),
        GLUE_TEST(test_required_standby_is_found_later),
        GLUE_TEST(test_unknown_device_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
