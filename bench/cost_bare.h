/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COST_BARE_H_
#define COST_BARE_H_

#include "cost_work.h"

/* Verbs and nothing above them. */
void cost_bare(struct cost_carrier *carrier, unsigned eps);

#endif
