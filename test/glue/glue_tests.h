/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GLUE_TESTS_H_
#define GLUE_TESTS_H_

/* The groups of tests; each returns the number of its tests that failed. */

#include "glue_side.h"

int glue_basic(void);
int glue_failover(void);

#endif
