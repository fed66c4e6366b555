/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_REGION_H_
#define HTE_REGION_H_

/* Local memory that requests may use: found by address, pinned while a request uses it. What UCX knows of it is
 * hte_mapping.h's. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hte_pick.h"
#include "engine/include/hte.h"

/* What a rail's UCX has of a region. */
struct hte_mapping {
    void  *memh; /* ucp_mem_h; NULL: it has nothing */
    void  *rkey; /* packed, of UCX; NULL: LOCAL, nobody gets a key */
    size_t rkey_length;
};

struct hte_region {
    uint64_t           addr, length;
    uint64_t           id;         /* of this registration: no other has it, before or after; below 2^63 */
    int                permission; /* enum hte_permission */
    bool               is_gpu;     /* see base/hte_location.h */
    char               location[64];
    uint32_t           preferred, available; /* rails near it */
    _Atomic uint32_t   pins;                 /* unfinished requests that use it; raised only under the regions' lock */
    struct hte_mapping mapping[HTE_RAILS_MAX];
    uint32_t           slot;                    /* on the board (hte_board.h); 0: none */
    int                file;                    /* of hte_shared.h, when file_inode is not 0 */
    uint64_t           file_inode, file_offset; /* 0, 0: it is in none */
};

struct hte_regions {
    pthread_rwlock_t    lock;
    struct hte_region **list; /* in order of address; guarded by lock */
    size_t              count, room;
};

void hte_regions_init(struct hte_regions *regions);
/* None may be left. */
void hte_regions_cleanup(struct hte_regions *regions);

/* Not in the list yet, and not mapped. The masks and the location are the caller's to set. free(3); NULL: no memory. */
struct hte_region *hte_region_create(const struct hte_memory *memory);

/* With the lock held for writing. */
int  hte_regions_add(struct hte_regions *regions, struct hte_region *region);
void hte_regions_remove(struct hte_regions *regions, struct hte_region *region);
/* With the lock held. The region that contains addr, or NULL. */
struct hte_region *hte_regions_find(const struct hte_regions *regions, uint64_t addr);

/* Pin all regions of the range; false, and nothing pinned, when it is not covered. With the lock held. *only: the one
 * that has all of it, or NULL; what it was is tried first. */
bool hte_regions_pin(struct hte_regions *regions, uint64_t addr, uint64_t length, struct hte_region **only);
/* only: as pin gave it; else takes the lock for reading. */
void hte_regions_unpin(struct hte_regions *regions, uint64_t addr, uint64_t length, struct hte_region *only);
/* Pins, or unpins of a region that has all of so many ranges. To pin: with the lock held. */
static inline void hte_region_pin_many(struct hte_region *region, uint32_t count)
{
    atomic_fetch_add(&region->pins, count);
}

static inline void hte_region_unpin_many(struct hte_region *region, uint32_t count)
{
    atomic_fetch_sub(&region->pins, count);
}

/* Is any of it memory of a GPU? With the lock held. */
bool hte_regions_have_gpu(const struct hte_regions *regions, uint64_t addr, uint64_t length);

/* A region that is pinned does not go away: this needs no lock. */
static inline bool hte_region_has(const struct hte_region *region, uint64_t addr, uint64_t length)
{
    return addr >= region->addr && addr - region->addr < region->length &&
           length <= region->length - (addr - region->addr);
}

#endif
