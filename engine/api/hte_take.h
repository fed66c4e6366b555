/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_TAKE_H_
#define HTE_TAKE_H_

/* Of a submission: requests are checked, and what they use is looked up and pinned. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/include/hte.h"
#include "job/hte_divide.h"

struct hte_engine;

/* What the latest request has in common with those before it: these need not be looked up again. Valid as long as the
 * regions' lock is held. Pins and references of several are taken together, when they are over. */
struct hte_alike {
    int32_t            opcode;
    hte_segment_t      target;
    struct hte_region *region;       /* NULL: nothing is known */
    uint64_t           remote, size; /* of the remote buffer */
    uint32_t           buffer;       /* its index */
    uint32_t           untaken;      /* requests whose pins and references are not taken yet */
};

struct hte_submission {
    struct hte_engine        *engine;
    struct hte_batch         *batch;
    const struct hte_request *requests;
    size_t                    count, done; /* requests whose references and pins are taken */
    uint32_t                  first;       /* index in the batch */
    struct hte_notice        *notice;
    struct hte_segment       *segment;  /* of the latest request, to find it quickly for the next; reference */
    struct hte_view          *view;     /* reference */
    bool                      has_lock; /* of the regions */
    struct hte_region        *region;   /* that the latest pin was in, while it has; or NULL */
    struct hte_alike          like;
    struct hte_division       division;
    uint64_t                  extra; /* pieces that requests are divided into, but for one of each */
};

/* Requests become tasks. When one is wrong, some of them are taken. */
int hte_take_all(struct hte_submission *submission);
/* What is taken is not used. */
void hte_take_back(struct hte_submission *submission);
/* The segment of the latest one is not needed any more. */
void hte_take_forget(struct hte_submission *submission);

/* For hte_batches_init(): gives back what was taken for requests that are alike, or one, and counts them for their
 * notification. */
void hte_take_release(struct hte_engine *engine, struct hte_task *task, uint32_t count, bool is_completed);

#endif
