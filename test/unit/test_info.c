/* SPDX-License-Identifier: BSD-3-Clause */

/* What ha_info finds: a healthy host gives nothing, each planted fault its finding and
 * no other one. */

#include "tools/ha_info_check.h"
#include "tools/ha_info_gather.h"
#include "tools/ha_info_json.h"
#include "tools/ha_info_text.h"
#include "base/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct info         info;
static struct info_finding findings[INFO_FINDINGS_MAX];

static void pair(void)
{
    ha_topo_pair(info.topo, info.num, info.choice);
}

/* Two cards, two subnets, Soft-RoCE's habits. */
static int healthy(void **state)
{
    static const char *const names[] = {"a:1", "b:1"};

    (void)state;
    memset(&info, 0, sizeof(info));
    info.num     = 2;
    info.memlock = HA_BUDGET_UNLIMITED;
    info.config  = (struct info_config){.backup             = 1,
                                        .allow_unknown_zone = 1,
                                        .gid_index          = -1,
                                        .timeout            = 14,
                                        .retry_count        = 6,
                                        .rnr_retry_count    = 6,
                                        .heartbeat_misses   = 4,
                                        .rto                = 1,
                                        .rto_max            = 5,
                                        .heartbeat          = 0.1,
                                        .tx_queue_len       = 256,
                                        .rx_queue_len       = 128,
                                        .seg_size           = 8192,
                                        .proof              = "auto",
                                        .control            = "auto"};
    for (int i = 0; i < 2; i++) {
        struct info_rail *rail = &info.rail[i];

        ha_topo_rail_init(&info.topo[i], names[i]);
        info.topo[i].link_layer = HA_LINK_ETHERNET;
        info.topo[i].active     = 1;
        rail->addr              = (struct ha_rail_addr){.link_layer = HA_LINK_ETHERNET, .prefix_len = 120, .mtu = 4096};
        memcpy(rail->addr.gid, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 10, [14] = (uint8_t)i}, 16);
        rail->facts = (struct ha_rail_facts){
            .state = "ACTIVE", .active = 1, .gid_index = 1, .gid_kind = HA_GID_IPV4, .max_mtu = 4096};
        rail->limits.retry7_forever = 1;
        rail->window_ns             = ha_window_nominal(14, 6);
    }
    pair();
    return 0;
}

/* "id:subject id:subject..." in order, notes included. */
static void expect(const char *ids, int unhealthy)
{
    char text[512] = "", *end = text;
    int  num = info_check(&info, findings, INFO_FINDINGS_MAX);

    for (int i = 0; i < num; i++) {
        end += snprintf(end, sizeof(text) - (size_t)(end - text), "%s%s:%s", i == 0 ? "" : " ", findings[i].id,
                        findings[i].subject);
        assert_true(findings[i].text[0] != '\0');
        assert_true(findings[i].remedy[0] != '\0');
    }
    assert_string_equal(text, ids);
    assert_int_equal(info_is_unhealthy(findings, num), unhealthy);
}

static void test_healthy(void **state)
{
    (void)state;
    expect("", 0);
}

static void test_number_of_rails(void **state)
{
    (void)state;
    info.num = 1;
    pair();
    expect("single-rail:host", 1);
    info.num = 0;
    expect("no-rail:host", 1);
}

static void test_rail_left_out(void **state)
{
    char error[128];

    (void)state;
    assert_int_equal(ha_topo_pair_groups(info.topo, 2, "a:1", info.choice, error, sizeof(error)), 0);
    info.rail[1].error = -EIO; /* of no interest then */
    expect("single-rail:host", 1);
}

static void test_rail_that_does_not_open(void **state)
{
    (void)state;
    info.rail[1].error      = -EADDRNOTAVAIL;
    info.topo[1].link_layer = HA_LINK_NONE;
    pair();
    expect("single-rail:host cannot-open:b:1", 1);
}

static void test_rail_that_is_none(void **state)
{
    (void)state;
    info.rail[1].error      = -EPROTONOSUPPORT;
    info.topo[1].link_layer = HA_LINK_NONE;
    pair();
    expect("single-rail:host not-a-rail:b:1", 1);
    info.rail[1].error = -EOPNOTSUPP;
    expect("single-rail:host not-a-rail:b:1", 1);
}

static void test_shared_fate(void **state)
{
    (void)state;
    info.topo[0].image_guid = info.topo[1].image_guid = 7;
    pair();
    expect("shared-fate:a:1 shared-fate:b:1", 1);
}

static void test_inactive_port(void **state)
{
    (void)state;
    info.topo[1].active = info.rail[1].facts.active = 0;
    strcpy(info.rail[1].facts.state, "DOWN");
    strcpy(info.rail[1].netdev, "eth1");
    pair();
    expect("port-down:b:1", 1);
    assert_non_null(strstr(findings[0].remedy, "ip link set eth1 up"));
    info.rail[1].addr.link_layer = HA_LINK_IB;
    (void)info_check(&info, findings, INFO_FINDINGS_MAX);
    assert_non_null(strstr(findings[0].remedy, "subnet manager"));
}

static void test_no_standby(void **state)
{
    (void)state;
    info.topo[1].link_layer = HA_LINK_IB;
    pair();
    expect("no-standby:a:1 no-standby:b:1", 1);
}

static void test_gid(void **state)
{
    (void)state;
    info.rail[1].facts.gid_kind = HA_GID_LINK_LOCAL;
    expect("gid-type:a:1", 1);
    info.rail[0].facts.gid_kind = info.rail[1].facts.gid_kind = HA_GID_ROCE_V1;
    expect("gid-type:a:1 gid-type:b:1", 1);
    healthy(NULL);
    info.rail[0].facts.gid_index = -1;
    info.rail[0].facts.gid_kind  = HA_GID_NONE;
    expect("no-gid:a:1", 1);
}

static void test_mtu(void **state)
{
    (void)state;
    info.rail[1].addr.mtu = 1024;
    expect("mtu:a:1", 1);
}

static void test_subnets(void **state)
{
    (void)state;
    info.rail[1].addr.gid[14] = 0;
    expect("same-subnet:a:1", 1);
    info.rail[1].addr.prefix_len = 0; /* link-local: of no subnet */
    expect("", 0);
}

/* 10.0.16.9 and another address, each with a prefix length of IPv4. */
static int same_subnet(unsigned third, unsigned fourth, unsigned bits)
{
    int num;

    for (int i = 0; i < 2; i++) {
        info.rail[i].addr.prefix_len = (uint8_t)(96 + bits);
    }
    info.rail[0].addr.gid[14] = 16;
    info.rail[0].addr.gid[15] = 9;
    info.rail[1].addr.gid[14] = (uint8_t)third;
    info.rail[1].addr.gid[15] = (uint8_t)fourth;
    num                       = info_check(&info, findings, INFO_FINDINGS_MAX);
    assert_true(num == 0 || strcmp(findings[0].id, "same-subnet") == 0);
    return num;
}

static void test_subnets_of_any_length(void **state)
{
    (void)state;
    assert_true(same_subnet(31, 1, 20));
    assert_false(same_subnet(32, 1, 20));
    assert_true(same_subnet(19, 1, 22));
    assert_false(same_subnet(20, 1, 22));
    assert_true(same_subnet(17, 1, 23));
    assert_false(same_subnet(18, 1, 23));
    assert_true(same_subnet(16, 8, 31));
    assert_false(same_subnet(16, 10, 31));
    assert_false(same_subnet(16, 8, 32));
}

static void test_proof(void **state)
{
    (void)state;
    info.rail[0].selftest.verdict = UCT_HA_SELFTEST_FAILED;
    expect("proof-count:a:1", 0);
    info.config.proof = "count";
    expect("", 0);
    info.config.proof = "psn";
    expect("proof-refused:a:1", 1);
    info.rail[0].selftest.verdict = UCT_HA_SELFTEST_NOT_RUN;
    expect("proof-count:a:1", 0);
}

static void test_limited_member(void **state)
{
    (void)state;
    info.rail[0].addr.pkey = 0x8001;
    expect("", 0);
    info.rail[0].addr.pkey = 0x0001;
    expect("limited-member:a:1", 0);
}

static void test_apm(void **state)
{
    (void)state;
    info.rail[0].facts.apm_capable = 1;
    expect("apm-capable:a:1", 0);
    info.rail[0].facts.apm_armed = 1;
    expect("apm-armed:a:1", 1);
}

static void test_timers(void **state)
{
    (void)state;
    info.config.rto = 0.9;
    expect("rto-rule:a:1 rto-rule:b:1", 1);
    assert_non_null(strstr(findings[0].remedy, "UCX_HA_RC_RTO=1.0s"));
    info.config.rto = UCT_HA_RTO_DEFAULT; /* which the transport fits to the card by itself */
    expect("", 0);
    info.config.rto         = 1.5;
    info.rail[1].facts.mlx5 = 1;
    info.rail[1].window_ns  = ha_window_mlx5(14, 6);
    expect("rto-rule:b:1", 1);
    info.rail[1].window_ns = HA_WINDOW_FOREVER;
    expect("rto-rule:b:1", 1);
}

static void test_retries(void **state)
{
    (void)state;
    info.config.retry_count = 7;
    expect("retry-forever:a:1 retry-forever:b:1", 1);
    info.rail[0].limits.retry7_forever = info.rail[1].limits.retry7_forever = 0;
    expect("", 0);
    info.config.rnr_retry_count = 7; /* the default: shared receives make a card wait, which is no fault */
    expect("", 0);
}

static void test_host(void **state)
{
    (void)state;
    info.memlock = 64 << 10;
    expect("memlock:host", 1);
    info.memlock = (uint64_t)1 << 30;
    expect("", 0);
    info.config.heartbeat = 0;
    expect("heartbeat-off:host", 1);
    healthy(NULL);
    info.config.backup = 0;
    expect("backup-off:host", 1);
    healthy(NULL);
    info.config.allow_unknown_zone = 0;
    strcpy(info.rail[0].zone, "x");
    expect("no-zone:b:1", 1);
}

static void test_more_findings_than_room(void **state)
{
    (void)state;
    info.topo[0].image_guid = info.topo[1].image_guid = 7;
    pair();
    assert_int_equal(info_check(&info, findings, 1), 1);
    assert_int_equal(info_check(&info, findings, 0), 0);
}

#define TEST(_name) cmocka_unit_test_setup(_name, healthy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_healthy),
        TEST(test_number_of_rails),
        TEST(test_rail_left_out),
        TEST(test_rail_that_does_not_open),
        TEST(test_rail_that_is_none),
        TEST(test_shared_fate),
        TEST(test_inactive_port),
        TEST(test_no_standby),
        TEST(test_gid),
        TEST(test_mtu),
        TEST(test_subnets),
        TEST(test_subnets_of_any_length),
        TEST(test_apm),
        TEST(test_limited_member),
        TEST(test_proof),
        TEST(test_timers),
        TEST(test_retries),
        TEST(test_host),
        TEST(test_more_findings_than_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
