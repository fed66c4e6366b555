/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The transport over made-up hardware, through UCT's public API.
 *
 *   test_glue [PATTERN]     only tests whose name matches ('*' and '?')
 *   GLUE_PATIENCE=20        seconds that a test waits for what must happen, 60 if not given
 *   GLUE_FAILOVERS=10000    how many in test_nothing_is_left_behind, 2000 if not given
 *   GLUE_PERSONALITY=irdma the kind of card that tests have which do not choose one, see fake_verbs.h
 *   UCX_LOG_LEVEL=warn      shows what the product says; many tests provoke errors
 */

#include "glue_tests.h"

#include <stdlib.h>
#include <unistd.h>

/* UCX reads its environment before main(). Its hooks for memory events run in
 * ending threads and disturb sanitizers; nothing here needs them. */
static void prepare(char **argv)
{
    if (getenv("UCX_MEM_EVENTS") == NULL) {
        setenv("UCX_MEM_EVENTS", "n", 1);
        setenv("UCX_LOG_LEVEL", "fatal", 0);
        setenv("MALLOC_ARENA_MAX", "1", 1); /* all of the heap is counted */
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    int failed = 0;

    prepare(argv);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    failed += glue_basic();
    failed += glue_rma();
    failed += glue_atomics();
    failed += glue_setup_faults();
    failed += glue_failover();
    failed += glue_memory();
    failed += glue_order();
    failed += glue_credits();
    failed += glue_receive();
    failed += glue_barrier();
    failed += glue_many();
    failed += glue_hundreds();
    failed += glue_shared();
    failed += glue_proof();
    failed += glue_card();
    failed += glue_hang();
    failed += glue_detect();
    failed += glue_ends();
    failed += glue_leave();
    failed += glue_paths();
    failed += glue_peers();
    failed += glue_forged();
    failed += glue_sealed();
    failed += glue_again();
    failed += glue_strangers();
    failed += glue_zones();
    failed += glue_devices();
    failed += glue_cm();
    failed += glue_opts();
    failed += glue_report();
    failed += glue_silent();
    failed += glue_room();
    failed += glue_cold();
    failed += glue_personality();
    failed += glue_soak();
    return failed != 0;
}
