/* SPDX-License-Identifier: BSD-3-Clause */

/* Which rail backs which, and what the reason is said to be. Whole machines are
 * in test/topo. */

#include "topo/ha_topo_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NONE   HA_TOPO_NONE
#define UNUSED HA_TOPO_UNUSED

static struct ha_topo_rail rail(const char *name, enum ha_link_layer link_layer, int numa_node, uint64_t node_guid)
{
    struct ha_topo_rail rail;

    ha_topo_rail_init(&rail, name);
    rail.link_layer = link_layer;
    rail.active     = 1;
    rail.numa_node  = numa_node;
    rail.node_guid  = node_guid;
    return rail;
}

static int choose(const struct ha_topo_rail *rails, int num, const char *groups, struct ha_topo_choice *choices,
                  char *error, size_t size)
{
    if (ha_topo_groups_given(groups)) {
        return ha_topo_pair_groups(rails, num, groups, choices, error, size);
    }
    ha_topo_pair(rails, num, choices);
    return 0;
}

static void expect(const struct ha_topo_rail *rails, int num, const char *groups, const int *expected)
{
    struct ha_topo_choice choices[HA_RAILS_MAX];
    char                  error[256] = "";

    assert_int_equal(choose(rails, num, groups, choices, error, sizeof(error)), 0);
    assert_string_equal(error, "");
    for (int i = 0; i < num; i++) {
        if (choices[i].standby != expected[i]) {
            fail_msg("%s: standby %d, not %d", rails[i].name, choices[i].standby, expected[i]);
        }
    }
}

static void expect_reason(const struct ha_topo_rail *rails, int num, const char *groups, int i, const char *expected)
{
    struct ha_topo_choice choices[HA_RAILS_MAX];
    char                  error[256] = "", reason[256];

    assert_int_equal(choose(rails, num, groups, choices, error, sizeof(error)), 0);
    assert_string_equal(ha_topo_reason(rails, choices, i, reason, sizeof(reason)), expected);
}

static void expect_error(const char *groups, const char *part)
{
    struct ha_topo_rail   rails[2] = {rail("a:1", HA_LINK_ETHERNET, 0, 1), rail("b:1", HA_LINK_ETHERNET, 0, 2)};
    struct ha_topo_choice choices[HA_RAILS_MAX];
    char                  error[256] = "";

    assert_int_equal(ha_topo_pair_groups(rails, 2, groups, choices, error, sizeof(error)), -EINVAL);
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
    struct ha_topo_rail rails[1] = {rail("a:1", HA_LINK_IB, 0, 1)};

    (void)state;
    expect(rails, 1, "", (int[]){NONE});
}

static void test_two_cards_back_each_other(void **state)
{
    struct ha_topo_rail rails[2] = {rail("a:1", HA_LINK_ETHERNET, -1, 1), rail("b:1", HA_LINK_ETHERNET, -1, 2)};

    (void)state;
    expect(rails, 2, NULL, (int[]){1, 0});
}

static void test_other_card_beats_other_port(void **state)
{
    struct ha_topo_rail rails[4] = {rail("a:1", HA_LINK_IB, 0, 1), rail("a:2", HA_LINK_IB, 0, 1),
                                    rail("b:1", HA_LINK_IB, 1, 2), rail("b:2", HA_LINK_IB, 1, 2)};

    (void)state;
    expect(rails, 4, NULL, (int[]){2, 3, 0, 1}); /* and every rail backs one */
}

static void test_other_port_is_better_than_none(void **state)
{
    struct ha_topo_rail rails[2] = {rail("a:1", HA_LINK_IB, 0, 1), rail("a:2", HA_LINK_IB, 0, 1)};

    (void)state;
    expect(rails, 2, NULL, (int[]){1, 0});
}

static void test_same_numa_node_first(void **state)
{
    struct ha_topo_rail rails[4] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 1, 2),
                                    rail("c:1", HA_LINK_IB, 0, 3), rail("d:1", HA_LINK_IB, 1, 4)};

    (void)state;
    expect(rails, 4, NULL, (int[]){2, 3, 0, 1});
}

static void test_unknown_numa_node_counts_as_equal(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 1, 2),
                                    rail("c:1", HA_LINK_IB, -1, 3)};

    (void)state;
    expect(rails, 3, NULL, (int[]){2, 2, 0});
}

static void test_link_layer_must_match(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_ETHERNET, 0, 2),
                                    rail("c:1", HA_LINK_NONE, 0, 3)};

    (void)state;
    expect(rails, 3, NULL, (int[]){NONE, NONE, NONE});
}

static void test_ties_go_round_robin(void **state)
{
    struct ha_topo_rail rails[4] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("c:1", HA_LINK_IB, 0, 3), rail("d:1", HA_LINK_IB, 0, 4)};

    (void)state;
    expect(rails, 4, NULL, (int[]){1, 2, 3, 0});
}

static void test_unknown_guid_falls_back_to_the_name(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 0), rail("a:2", HA_LINK_IB, 0, 0),
                                    rail("ab:1", HA_LINK_IB, 0, 0)};

    (void)state;
    expect(rails, 3, NULL, (int[]){2, 2, 0});
}

static void test_groups(void **state)
{
    struct ha_topo_rail rails[5] = {rail("a:1", HA_LINK_NONE, 0, 0), rail("b:1", HA_LINK_NONE, 0, 0),
                                    rail("c:1", HA_LINK_NONE, 0, 0), rail("d:2", HA_LINK_NONE, 0, 0),
                                    rail("e:1", HA_LINK_NONE, 0, 0)};

    (void)state;
    expect(rails, 5, "a:1+b:1,d:2+c:1", (int[]){1, 0, 3, 2, UNUSED});
    expect(rails, 5, " a + c:1 + b\t", (int[]){2, 0, 1, UNUSED, UNUSED});
    expect(rails, 5, "e:1", (int[]){UNUSED, UNUSED, UNUSED, UNUSED, NONE});
    assert_true(ha_topo_groups_given("e:1"));
    assert_false(ha_topo_groups_given("  "));
    assert_false(ha_topo_groups_given(NULL));
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

/* The second port of a card is another PCI function, and another device, today. */
static void test_functions_of_one_card_share_its_fate(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("c:1", HA_LINK_IB, 1, 3)};

    (void)state;
    rails[0].image_guid = rails[1].image_guid = 9;
    rails[2].image_guid                       = 10;
    expect(rails, 3, NULL, (int[]){2, 2, 0});
    expect_reason(rails, 2, NULL, 0, "SHARED FATE: both on one card");

    rails[0].image_guid = 0; /* where the system image is not known, PCI tells */
    ha_topo_pci_parse("/pci0000:16/0000:16:00.0/0000:17:00.0", &rails[0].pci);
    ha_topo_pci_parse("/pci0000:16/0000:16:00.0/0000:17:00.1", &rails[1].pci);
    ha_topo_pci_parse("/pci0000:16/0000:16:00.0/0000:18:00.0", &rails[2].pci);
    expect(rails, 3, NULL, (int[]){2, 2, 0});
    expect_reason(rails, 3, NULL, 0, "other card, same PCI switch");
}

static void test_more_bridges_in_common_are_nearer(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("c:1", HA_LINK_IB, 0, 3)};

    (void)state;
    ha_topo_pci_parse("/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0", &rails[0].pci);
    ha_topo_pci_parse("/pci0000:10/0000:10:01.0/0000:15:00.0/0000:16:00.0", &rails[1].pci);
    ha_topo_pci_parse("/pci0000:10/0000:10:01.0/0000:11:00.0/0000:13:00.0", &rails[2].pci);
    expect(rails, 3, NULL, (int[]){2, 0, 0}); /* b: equals, and c backs a already */
    ha_topo_pci_parse("/pci0000:20/0000:20:01.0", &rails[2].pci);
    expect(rails, 3, NULL, (int[]){1, 0, 0});
}

/* A second port without a cable must not become the standby of a good one. */
static void test_active_port_beats_everything_but_the_link_layer(void **state)
{
    struct ha_topo_rail rails[3] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("a:2", HA_LINK_IB, 0, 1)};

    (void)state;
    rails[1].active = 0;
    expect(rails, 3, NULL, (int[]){2, 0, 0});
    expect_reason(rails, 2, NULL, 0, "other card, same NUMA node 0, its port is NOT ACTIVE"); /* better than none */
}

/* A card that is down for now keeps its place: its peers pair their rails without knowing
 * of that. Between the ports of one card the choice is free. */
static void test_card_that_was_active_keeps_its_place(void **state)
{
    struct ha_topo_rail rails[4] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("c:1", HA_LINK_IB, 0, 3), rail("b:2", HA_LINK_IB, 0, 2)};

    (void)state;
    for (int down = 0; down < 3; down++) {
        rails[down].active     = 0;
        rails[down].was_active = 1;
        expect(rails, 3, NULL, (int[]){1, 2, 0});
        rails[down].active = 1;
    }
    rails[2].active = rails[2].was_active = 0; /* it never had a cable */
    expect(rails, 3, NULL, (int[]){1, 0, 0});
    rails[1].active = 0;
    expect(rails, 4, NULL, (int[]){3, 0, 3, 0}); /* b:2 rather than b:1 */
}

static void test_reasons(void **state)
{
    struct ha_topo_rail rails[4] = {rail("a:1", HA_LINK_IB, 0, 1), rail("b:1", HA_LINK_IB, 0, 2),
                                    rail("c:1", HA_LINK_NONE, 0, 3), rail("d:1", HA_LINK_ETHERNET, 0, 4)};

    (void)state;
    expect_reason(rails, 4, NULL, 0, "other card, same NUMA node 0");
    expect_reason(rails, 4, NULL, 2, "cannot be opened");
    expect_reason(rails, 4, NULL, 3, "no other rail has its link layer");
    expect_reason(rails, 4, "a+b", 0, "UCX_HA_RC_RAILS; other card, same NUMA node 0");
    expect_reason(rails, 4, "a+b", 3, "not used: in no group of UCX_HA_RC_RAILS");
    expect_reason(rails, 4, "a", 0, "alone in its group of UCX_HA_RC_RAILS");
    rails[1].numa_node = -1;
    expect_reason(rails, 4, NULL, 1, "other card, NUMA node unknown, taken as the same");
    rails[1].numa_node = 3;
    expect_reason(rails, 4, NULL, 1, "other card, NUMA nodes 3 and 0");
    rails[0].package = rails[1].package = 1;
    expect_reason(rails, 4, NULL, 1, "other card, same socket 1, NUMA nodes 3 and 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_rail),
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
                                       cmocka_unit_test(test_functions_of_one_card_share_its_fate),
                                       cmocka_unit_test(test_more_bridges_in_common_are_nearer),
                                       cmocka_unit_test(test_active_port_beats_everything_but_the_link_layer),
                                       cmocka_unit_test(test_card_that_was_active_keeps_its_place),
                                       cmocka_unit_test(test_reasons)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
