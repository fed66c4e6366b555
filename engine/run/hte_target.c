/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_target.h"

#include <stdlib.h>

void hte_lines_init(struct hte_line *lines, struct hte_segment *segment)
{
    unsigned i;

    for (i = 0; i < HTE_PRIORITIES; ++i) {
        hte_ring_init(&lines[i].link);
        hte_ring_init(&lines[i].pieces);
        lines[i].segment = segment;
    }
}

void hte_flow_init(struct hte_flow *flow)
{
    hte_ring_init(&flow->link);
    hte_ring_init(&flow->pieces);
    hte_ring_init(&flow->reserve.op.link);
}

void *hte_target_create(struct hte_segment *segment, unsigned threads)
{
    struct hte_target *target = calloc(1, sizeof(*target) + threads * sizeof(target->flows[0]));
    unsigned           i;

    if (target == NULL) {
        return NULL;
    }
    hte_lines_init(target->lines, segment);
    for (i = 0; i < threads; ++i) {
        hte_flow_init(&target->flows[i]);
    }
    return target;
}
