/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_METRICS_TEXT_H_
#define HTE_METRICS_TEXT_H_

/* The text of hte_metrics(), for those who are inside already. */

#include <stddef.h>

#include "hte_engine.h"

/* Shorter than `size`, with fewer peers where it must be. *text is the caller's. Does not wait for anybody. */
int hte_metrics_text(struct hte_engine *engine, size_t size, char **text);

#endif
