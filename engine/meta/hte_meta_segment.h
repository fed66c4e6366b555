/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_SEGMENT_H_
#define HTE_META_SEGMENT_H_

#include "base/hte_why.h"

struct hte_meta;

/* The thread that keeps the store filled. */
int hte_meta_start_refresher(struct hte_meta *meta, struct hte_why *why);

#endif
