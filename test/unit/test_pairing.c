/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_pairing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NONE   UCT_HA_PAIR_NONE
#define UNUSED UCT_HA_PAIR_UNUSED

static struct uct_ha_pair_rail rail(const char *name, enum ha_link_layer link_layer,
                                    int numa_node, uint64_t node_guid)
{
    struct uct_ha_pair_rail rail = {
        .link_layer = link_layer,
        .numa_node  = numa_node,
        .node_guid  = node_guid
    };

    snprintf(rail.name, sizeof(rail.name), "%s", name);
    return rail;
}

static void expect(const struct uct_ha_pair_rail *rails, int num, const char *groups,
                   const int *expected)
{
    int standby[HA_RAILS_MAX];
    char error[256] = "";

    assert_int_equal(uct_ha_pair_choose(rails, num, groups, standby, error,
                                        sizeof(error)), 0);
    assert_string_equal(error, "");
    assert_memory_equal(standby, expected, (size_t)num * sizeof(*standby));
}

static void expect_error(const char *groups, const char *part)
{
    struct uct_ha_pair_rail rails[2] = {
        rail("a:1", HA_LINK_ETHERNET, 0, 1), rail("b:1", HA_LINK_ETHERNET, 0, 2)
    };
    int standby[HA_RAILS_MAX];
    char error[256] = "";

    assert_int_equal(uct_ha_pair_choose(rails, 2, groups, standby, error,
                                        sizeof(error)), -EINVAL);
    if (strstr(error, part) == NULL) {
        fail_msg("'%s' does not say '%s'", error, part);
    }
}

static void test_no_rail(void **state)
{
    (void)state;
    expect(NULL, 0, NULL, NULL);
}

static void test_single_rail_has_no_standby(void **state)
{
    struct uct_ha_pair_rail rails[1] = { rail("a:1", HA_LINK_IB, 0, 1) };

    (void)state;
    expect(rails, 1, "", (int[]){ NONE });
}

static void test_two_cards_back_each_other(void **state)
{
    struct uct_ha_pair_rail rails[2] = {
        rail("a:1", HA_LINK_ETHERNET, -1, 1), rail("b:1", HA_LINK_ETHERNET, -1, 2)
    };

    (void)state;
    expect(rails, 2, NULL, (int[]){ 1, 0 });
}

static void test_other_card_beats_other_port(void **state)
{
    struct uct_ha_pair_rail rails[4] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("a:2", HA_LINK_IB, 0, 1),
        rail("b:1", HA_LINK_IB, 1, 2), rail("b:2", HA_LINK_IB, 1, 2)
    };

    (void)state;
    expect(rails, 4, NULL, (int[]){ 2, 2, 0, 0 });
}

static void test_other_port_is_better_than_none(void **state)
{
    struct uct_ha_pair_rail rails[2] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("a:2", HA_LINK_IB, 0, 1)
    };

    (void)state;
    expect(rails, 2, NULL, (int[]){ 1, 0 });
}

static void test_same_numa_node_first(void **state)
{
    struct uct_ha_pair_rail rails[4] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 1, 2),
        rail("c:1", HA_LINK_IB, 0, 3), rail("d:1", HA_LINK_IB, 1, 4)
    };

    (void)state;
    expect(rails, 4, NULL, (int[]){ 2, 3, 0, 1 });
}

static void test_unknown_numa_node_counts_as_equal(void **state)
{
    struct uct_ha_pair_rail rails[3] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 1, 2),
        rail("c:1", HA_LINK_IB, -1, 3)
    };

    (void)state;
    expect(rails, 3, NULL, (int[]){ 2, 2, 0 });
}

static void test_link_layer_must_match(void **state)
{
    struct uct_ha_pair_rail rails[3] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_ETHERNET, 0, 2),
        rail("c:1", HA_LINK_NONE, 0, 3)
    };

    (void)state;
    expect(rails, 3, NULL, (int[]){ NONE, NONE, NONE });
}

static void test_ties_go_round_robin(void **state)
{
    struct uct_ha_pair_rail rails[4] = {
        rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
        rail("c:1", HA_LINK_IB, 0, 3), rail("d:1", HA_LINK_IB, 0, 4)
    };

    (void)state;
    expect(rails, 4, NULL, (int[]){ 1, 2, 3, 0 });
}

static void test_unknown_guid_falls_back_to_the_name(void **state)
{
    struct uct_ha_pair_rail rails[3] = {
        rail("a:1", HA_LINK_IB, 0, 0), rail("a:2", HA_LINK_IB, 0, 0),
        rail("ab:1", HA_LINK_IB, 0, 0)
    };

    (void)state;
    expect(rails, 3, NULL, (int[]){ 2, 2, 0 });
}

static void test_groups(void **state)
{
    struct uct_ha_pair_rail rails[5] = {
        rail("a:1", HA_LINK_NONE, 0, 0), rail("b:1", HA_LINK_NONE, 0, 0),
        rail("c:1", HA_LINK_NONE, 0, 0), rail("d:2", HA_LINK_NONE, 0, 0),
        rail("e:1", HA_LINK_NONE, 0, 0)
    };

    (void)state;
    expect(rails, 5, "a:1+b:1,d:2+c:1", (int[]){ 1, 0, 3, 2, UNUSED });
    expect(rails, 5, " a + c:1 + b\t", (int[]){ 2, 0, 1, UNUSED, UNUSED });
    expect(rails, 5, "e:1", (int[]){ UNUSED, UNUSED, UNUSED, UNUSED, NONE });
    assert_true(uct_ha_pair_groups_given("e:1"));
    assert_false(uct_ha_pair_groups_given("  "));
    assert_false(uct_ha_pair_groups_given(NULL));
}

static void test_bad_groups_are_named(void **state)
{
    char long_name[1024];

    (void)state;
    expect_error("a:1+x:1", "'x:1' is no rail of this host, which has a:1 b:1");
    expect_error("a:2+b:1", "'a:2'");
    expect_error("a:1+a", "'a:1' is named twice");
    expect_error("a:1+b:1,a:1", "'a:1' is named twice");
    expect_error("a:1+", "empty member");
    expect_error("+", "empty member");
    expect_error("a:1,,b:1", "empty group");
    expect_error("a:1,", "empty group");
    expect_error(":", "':'");

    memset(long_name, 'z', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    expect_error(long_name, "'zzz");
}

static void test_too_many_rails(void **state)
{
    int standby[1];
    char error[128];

    (void)state;
    assert_int_equal(uct_ha_pair_choose(NULL, HA_RAILS_MAX + 1, NULL, standby, error,
                                        sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "17 rails"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rail),
        cmocka_unit_test(test_single_rail_has_no_standby),
        cmocka_unit_test(test_two_cards_back_each_other),
        cmocka_unit_test(test_other_card_beats_other_port),
        cmocka_unit_test(test_other_port_is_better_than_none),
        cmocka_unit_test(test_same_numa_node_first),
        cmocka_unit_test(test_unknown_numa_node_counts_as_equal),
        cmocka_unit_test(test_link_layer_must_match),
        cmocka_unit_test(test_ties_go_round_robin),
        cmocka_unit_test(test_unknown_guid_falls_back_to_the_name),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_bad_groups_are_named),
        cmocka_unit_test(test_too_many_rails)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
