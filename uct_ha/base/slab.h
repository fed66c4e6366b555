/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SLAB_H_
#define UCT_HA_SLAB_H_

/*
 * Blocks of one size that lie together. With thousands of connections each of whose operations comes when nothing of it
 * is in the cache any more, what the processor remembers of pages is not enough either. So many blocks lie in huge
 * pages, if the kernel has any; a few take no more than they need.
 *
 * Its owner's: no lock.
 */

#include "base/line.h"

#include <sys/mman.h>

#define UCT_HA_HUGE_PAGE (2u << 20)

/* A huge page for free(), or small ones in its place; NULL when there are none. */
static inline void *uct_ha_huge_alloc(void)
{
    void *memory = aligned_alloc(UCT_HA_HUGE_PAGE, UCT_HA_HUGE_PAGE);

    if (memory != NULL) {
        (void)madvise(memory, UCT_HA_HUGE_PAGE, MADV_HUGEPAGE);
    }
    return memory;
}

struct uct_ha_slab_chunk;

struct uct_ha_slab {
    size_t                    size; /* of a block: whole cache lines */
    void                     *free; /* the next one is where it begins */
    struct uct_ha_slab_chunk *chunks;
    unsigned                  num_chunks;
};

static inline void uct_ha_slab_init(struct uct_ha_slab *slab, size_t size)
{
    memset(slab, 0, sizeof(*slab));
    slab->size = (size + UCT_HA_LINE - 1) & ~(size_t)(UCT_HA_LINE - 1);
}

/* From the start of a line, of any content; NULL when there is no memory. */
void *uct_ha_slab_alloc(struct uct_ha_slab *slab);
void  uct_ha_slab_free(struct uct_ha_slab *slab, void *block);

/* All of them, free or not. */
void uct_ha_slab_cleanup(struct uct_ha_slab *slab);

#endif
