/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SUBMIT_H_
#define HTE_SUBMIT_H_

#include <stdbool.h>
#include <stdint.h>

struct hte_engine;
struct hte_task;

/* For hte_batches_init(): gives back what a submit took for a request, and counts it for its notification. */
void hte_submit_release(struct hte_engine *engine, struct hte_task *task, uint32_t count, bool is_completed);

#endif
