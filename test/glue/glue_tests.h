/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GLUE_TESTS_H_
#define GLUE_TESTS_H_

/* The groups of tests; each returns the number of its tests that failed. */

#include "glue_rma.h"
#include "glue_side.h"

#define GLUE_TEST(_name) cmocka_unit_test_setup_teardown(_name, glue_setup, glue_teardown)

int glue_atomics(void);
int glue_basic(void);
int glue_devices(void);
int glue_rma(void);
int glue_setup_faults(void);
int glue_failover(void);
int glue_memory(void);
int glue_many(void);
int glue_order(void);
int glue_credits(void);
int glue_receive(void);
int glue_barrier(void);
int glue_triggers(void);
int glue_hundreds(void);
int glue_shared(void);
int glue_repost(void);
int glue_keep(void);
int glue_gets(void);
int glue_parts(void);
int glue_hang(void);
int glue_proof(void);
int glue_ends(void);
int glue_leave(void);
int glue_detect(void);
int glue_paths(void);
int glue_peers(void);
int glue_forged(void);
int glue_sealed(void);
int glue_again(void);
int glue_strangers(void);
int glue_soak(void);
int glue_card(void);
int glue_cm(void);
int glue_zones(void);
int glue_opts(void);
int glue_report(void);
int glue_silent(void);
int glue_personality(void);
int glue_room(void);
int glue_cold(void);

#endif
