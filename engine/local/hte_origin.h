/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ORIGIN_H_
#define HTE_ORIGIN_H_

/*
 * An origin: another process whose letters (wire/hte_letter.h) write here, over several connections. When it gives up
 * a WRITE, or tries it again, it counts its epoch up. Who has seen a new epoch takes no bytes of an older one: what was
 * still on some way then does not overwrite what was written afterwards.
 */

#include <pthread.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "engine/include/hte.h"

struct hte_origin {
    struct hte_link_ring link;
    uint64_t             id;
    uint32_t             refs;  /* guarded by the list's lock */
    pthread_rwlock_t     lock;  /* held for reading while bytes are written */
    uint64_t             epoch; /* latest seen */
};

struct hte_origins {
    pthread_mutex_t      lock;
    struct hte_link_ring list;
};

void hte_origins_init(struct hte_origins *origins);
void hte_origins_cleanup(struct hte_origins *origins); /* no reference may be left */

/* A reference; NULL: no memory. */
struct hte_origin *hte_origin_get(struct hte_origins *origins, uint64_t id);
void               hte_origin_put(struct hte_origins *origins, struct hte_origin *origin);

/* HTE_OK: bytes of this epoch may be written, until leave. CANCELED: there was a later one. */
int  hte_origin_enter(struct hte_origin *origin, uint64_t epoch);
void hte_origin_leave(struct hte_origin *origin);

#endif
