/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SHARED_H_
#define HTE_SHARED_H_

/* Memory that hte_memory_alloc() gave out: files without a name, which processes of the same host map, too. */

#include <pthread.h>
#include <stddef.h>

#include "base/hte_list.h"
#include "hte_region.h"

struct hte_shareds {
    pthread_mutex_t      lock;
    struct hte_link_ring list;
};

void hte_shareds_init(struct hte_shareds *shareds);
void hte_shareds_cleanup(struct hte_shareds *shareds); /* all of it */

int hte_shared_alloc(struct hte_shareds *shareds, size_t length, void **addr);
/* Its length, to see that nothing of it is in use, or 0: it is not the start of such memory. */
size_t hte_shared_length(struct hte_shareds *shareds, const void *addr);
void   hte_shared_free(struct hte_shareds *shareds, void *addr);
/* Sets the region's file when it lies inside of one. */
void hte_shared_note(struct hte_shareds *shareds, struct hte_region *region);

#endif
