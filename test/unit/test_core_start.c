/* SPDX-License-Identifier: BSD-3-Clause */

/* Which lane is the first one. */

#include "pair_world.h"

/* What side 1 says now, to side 0. */
static void hear(void)
{
    struct ha_record record;

    ha_pair_snapshot(&side[1].pair, &record);
    give(0, (struct ha_event){.kind = HA_EV_RECORD, .record = &record});
    run(0);
}

static void wait_for(uint64_t time)
{
    now += time;
    run(0);
}

static void test_standby_waits_for_the_primary(void **state)
{
    (void)state;
    run(0);
    assert_int_equal(side[0].created, 1);
    assert_int_equal(side[0].pair.lane[1].gen, 0);
    wait_for(100 * config.standby_delay); /* the peer has not said anything: it is not the rail */
    assert_int_equal(side[0].pair.lane[1].gen, 0);
    hear();
    wait_for(config.standby_delay - 1);
    assert_int_equal(side[0].pair.lane[1].gen, 0);
    hear();      /* nothing new */
    wait_for(1); /* not for ever */
    assert_int_equal(side[0].pair.lane[1].gen, 1);
}

static void test_standby_waits_while_the_primary_comes(void **state)
{
    (void)state;
    cut = 1;
    run(0);
    hear();
    wait_for(config.standby_delay - 1);
    run(1); /* it has its queue pair now */
    assert_int_equal(side[1].pair.lane[0].gen, 1);
    hear();
    wait_for(config.standby_delay - 1);
    assert_int_equal(side[0].pair.lane[1].gen, 0);
    hear();
    wait_for(1);
    assert_int_equal(side[0].pair.lane[1].gen, 1);
}

/* It is made again and again, and fails each time: that is no progress. */
static void test_standby_does_not_wait_for_what_fails(void **state)
{
    struct ha_record record;
    unsigned         rounds = 0;

    (void)state;
    side[0].pair.cfg.standby_delay = side[1].pair.cfg.standby_delay = 20 * config.cooldown;
    cut                                                             = 1;
    run(0);
    for (; side[0].pair.lane[1].gen == 0 && rounds < 100; rounds++) {
        give(0, (struct ha_event){.kind = HA_EV_QP_FAILED, .slot = 0, .gen = side[0].pair.lane[0].gen});
        run(0);
        ha_pair_snapshot(&side[0].pair, &record);
        give(1, (struct ha_event){.kind = HA_EV_RECORD, .record = &record});
        run(1);
        hear();
        wait_for(config.cooldown / 2);
    }
    assert_true(side[0].pair.lane[0].gen > 2);
    assert_in_range(rounds, 40, 60);
}

static void test_other_rail_first_when_one_is_down(void **state)
{
    (void)state;
    rail(0, 0, 0);
    pass(20);
    expect_active(1, 1);
    assert_int_equal(side[0].pair.lane[0].gen, 0);
    rail(0, 0, 1);
    pass(20);
    assert_int_equal(ha_pair_standby(&side[0].pair), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_standby_waits_for_the_primary, pair_setup),
        cmocka_unit_test_setup(test_standby_waits_while_the_primary_comes, pair_setup),
        cmocka_unit_test_setup(test_standby_does_not_wait_for_what_fails, pair_setup),
        cmocka_unit_test_setup(test_other_rail_first_when_one_is_down, pair_setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
