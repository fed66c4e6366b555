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

/* What was taken for a prepared list, and stays as it was: its requests' references and pins are those of the tasks.
 * Whoever uses it has a reference, each unfinished request made of it one. */
struct hte_edition {
    struct hte_engine *engine;
    _Atomic uint32_t   refs;
    uint64_t           extra; /* as below */
    size_t             count;
    struct hte_task    tasks[]; /* of no batch */
};

struct hte_submission {
    struct hte_engine        *engine;
    struct hte_batch         *batch; /* NULL: a list is prepared */
    struct hte_task          *tasks; /* what the requests become */
    const struct hte_request *requests;
    size_t                    count, done; /* requests whose references and pins are taken */
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
/* Requests of an edition become tasks. */
void hte_take_copies(struct hte_submission *submission, struct hte_edition *edition);
/* Of all its requests: none has to be looked up anew. false also when one has a target that is closed. */
bool hte_take_is_current(struct hte_submission *submission, const struct hte_edition *edition);
/* What is taken is not used. */
void hte_take_back(struct hte_submission *submission);
/* The segment of the latest one is not needed any more. */
void hte_take_forget(struct hte_submission *submission);

/* For hte_batches_init(): gives back what was taken for requests that are alike, or one, and counts them for their
 * notification. */
void hte_take_release(struct hte_engine *engine, struct hte_task *task, uint32_t count, bool is_completed);

/* References. */
void hte_edition_put(struct hte_edition *edition, uint32_t count);

#endif
