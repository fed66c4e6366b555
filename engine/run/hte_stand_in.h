/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STAND_IN_H_
#define HTE_STAND_IN_H_

/* A submitter of little does what a worker thread would: nobody has to be woken for it. */

#include "hte_worker.h"

/* In the stead of a thread that sleeps, and has nothing to do: moves a pack to a process of the same host, or from it,
 * over a connection that is there. false: nobody sleeps so, and the pack is as it was. */
bool hte_workers_move(struct hte_workers *workers, struct hte_piece *pack);

#endif
