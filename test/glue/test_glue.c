/* SPDX-License-Identifier: BSD-3-Clause */

/* The transport over made-up hardware, through UCT's public API. Arguments:
 * names of tests ('*' and '?' allowed), none = all. */

#include "glue_tests.h"

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    failed += glue_basic();
    failed += glue_failover();
    return failed != 0;
}
