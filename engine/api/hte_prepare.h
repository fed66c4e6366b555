/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PREPARE_H_
#define HTE_PREPARE_H_

/* Lists of requests that are checked and pinned once, and submitted often. What that took is an edition
 * (hte_take.h); when the descriptor of a target was fetched anew, the next submission makes another one. */

#include "engine/include/hte.h"
#include "hte_take.h"

struct hte_prepared;

void hte_lists_init(struct hte_engine *engine);
/* Those that are left are released. */
void hte_lists_cleanup(struct hte_engine *engine);

/* A reference for the caller, or NULL with the error set. */
struct hte_prepared *hte_list_get(struct hte_engine *engine, hte_list_t id);
void                 hte_list_put(struct hte_prepared *list);
size_t               hte_list_count(const struct hte_prepared *list);
/* The list's requests become tasks of the submission, which has room for them. */
int hte_list_take(struct hte_prepared *list, struct hte_submission *submission);

#endif
