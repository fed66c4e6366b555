/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PACKS_H_
#define HTE_PACKS_H_

/*
 * Slices of packs (job/hte_batch.h): requests that continue each other are one operation, and each has its own end.
 * To a process of the same host, and by letters, those that do not are one as well, of several ranges.
 *
 *   joined ──── completed, timed out, canceled, nobody is there ────▶ all of them end so
 *      │
 *      │ refused, or failed for the second time
 *      ▼
 *   alone: the same requests, one after the other ── completed, refused, given up ──▶ that one ends so
 *                                                └── timed out, canceled, nobody is there ──▶ all that are left
 *
 * So a request that is refused costs its neighbours time, and nothing else.
 */

#include "hte_poster.h"

static inline bool hte_pack_has(const struct hte_slice *slice)
{
    return slice->count > 0;
}

/* The ranges of its operation on both sides: those that continue each other are one. */
void hte_pack_parts(const struct hte_slice *slice, struct iovec *local, struct iovec *remote);
/* The slice's operation is over, and with nobody. */
void hte_pack_completed(struct hte_poster *poster, struct hte_slice *slice);
/* Requests that completed one after the other get their status together; those that have none yet do now. To be called
 * in each turn of the thread, when it has posted and progressed. */
void hte_packs_tell(struct hte_poster *poster);
void hte_pack_lost(struct hte_poster *poster, struct hte_slice *slice, int error);
/* To be tried again. Whether that is not as it was: then the slice is READY. */
bool hte_pack_retry(struct hte_poster *poster, struct hte_slice *slice);

#endif
