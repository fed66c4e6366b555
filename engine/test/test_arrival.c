/* SPDX-License-Identifier: BSD-3-Clause */
/* COMPLETED means there: the target's processor looks at once, again and again, and finds all bytes of a WRITE. Run by
 * test_arrival.sh over what UCX finds, and over ha_rc. */
#include "fixture.h"

#define TIMES  200
#define LENGTH 100001

static const struct target_buffer buffer = {.length = SIZE};

static void test_arrival(void **state)
{
    struct hte_request r[2];
    struct fixture     f;
    unsigned           i, late = 0;

    (void)state;
    open_with(&f, NULL, 0, &buffer, 1);
    r[0] = request(&f, HTE_WRITE, 0, M, 64 * K);
    r[1] = request(&f, HTE_WRITE, M, 3 * M, LENGTH);
    for (i = 0; i < TIMES; ++i) {
        pattern_fill(f.memory + M, 3 * M, LENGTH, i);
        transfer_ok(&f, r, 2);
        late += !target_verify(&f.target, 0, 3 * M, LENGTH, i);
    }
    assert_int_equal(late, 0);
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrival)};

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
