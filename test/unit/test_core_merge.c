/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Merging the peer's snapshots, by brute force: over all pairs of snapshots it
 * is idempotent, commutative and never moves anything back. So loss, repeats,
 * delay and reordering of control packets cannot matter.
 */

#include "core/ha_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/ha_pair_msg_internal.h"

#define RECORDS (3 * 5 * 2 * 3 * 3 * 2 * 2)

/* Record number `n` of one sender's possible past: what is constant within a
 * generation and status is a function of them. */
static struct ha_record numbered_record(unsigned n)
{
    struct ha_record       record;
    struct ha_record_lane *lane = &record.lane[0];

    memset(&record, 0, sizeof(record));
    lane->gen         = 2 + n % 3, n /= 3;
    lane->st          = (uint8_t)(n % 5), n /= 5;
    lane->act         = n % 2 && lane->gen < 4 ? lane->gen : 0, n /= 2;
    lane->seen_gen    = 2 + n % 3 / 2;
    lane->seen_st     = (uint8_t)(n % 3 * 2), n /= 3;
    record.flags      = n % 3 ? (uint16_t)(1u << (n % 3 - 1)) : 0;
    record.seen_flags = n % 3 == 1 ? HA_PAIR_CLOSING : 0, n /= 3;
    record.epoch      = 4 + n % 2, n /= 2;
    record.seen_epoch = record.epoch;
    /* of a lane that is being stopped it is known already; afterwards always */
    lane->cause        = n % 2 || lane->st >= HA_LANE_FENCED ? HA_CAUSE_PORT : HA_CAUSE_NONE;
    lane->qpn          = 100 + lane->gen;
    lane->rxpsn        = lane->st >= HA_LANE_FENCED ? lane->gen * 10 : 0;
    lane->k            = lane->st >= HA_LANE_RESOLVED ? lane->gen * 20 : 0;
    record.lane[1]     = record.lane[0];
    record.lane[1].gen = 6 - lane->gen;
    record.lane[1].act = 0;
    return record;
}

static struct ha_pair pair_to_merge(int decider)
{
    static const struct ha_pair_config config = {.rtx_min = 1, .rtx_max = 2};
    struct ha_pair                     pair;

    ha_pair_init(&pair, &config, decider, 2);
    pair.epoch = 4;
    pair.flags = HA_PAIR_CLOSING;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        pair.lane[slot].gen = pair.view[slot].gen = 3;
        pair.lane[slot].st                        = HA_LANE_READY;
        pair.view[slot].st                        = HA_LANE_CONN;
        pair.view[slot].qpn                       = 103;
    }
    return pair;
}

static void expect_no_step_back(const struct ha_pair *before, const struct ha_pair *after)
{
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_view *was = &before->view[slot], *is = &after->view[slot];

        assert_true(ha_rank(is->gen, is->st) >= ha_rank(was->gen, was->st));
        assert_true(ha_rank(is->seen_gen, is->seen_st) >= ha_rank(was->seen_gen, was->seen_st));
        assert_true(after->lane[slot].act >= before->lane[slot].act);
        assert_true(is->gen != was->gen || is->cause >= was->cause);
    }
    assert_true(after->epoch >= before->epoch);
    assert_int_equal(after->view_flags & before->view_flags, before->view_flags);
}

static void test_merge_is_a_maximum(void **state)
{
    (void)state;
    for (int decider = 0; decider < 2; decider++) {
        const struct ha_pair start = pair_to_merge(decider);

        for (unsigned i = 0; i < RECORDS; i++) {
            struct ha_record first = numbered_record(i);
            struct ha_pair   once  = start, twice;

            assert_int_equal(ha_pair_merge(&once, &first), 0);
            expect_no_step_back(&start, &once);
            twice = once;
            ha_pair_merge(&twice, &first);
            assert_memory_equal(&once, &twice, sizeof(once)); /* idempotent */
            for (unsigned j = 0; j < i; j++) {
                struct ha_record second  = numbered_record(j);
                struct ha_pair   one_two = once, two_one = start;

                ha_pair_merge(&one_two, &second);
                ha_pair_merge(&two_one, &second);
                ha_pair_merge(&two_one, &first);
                assert_memory_equal(&one_two, &two_one, sizeof(one_two)); /* commutative */
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_is_a_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
