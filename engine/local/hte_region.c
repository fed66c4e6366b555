/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hte_error.h"
#include "base/hte_location.h"

void hte_regions_init(struct hte_regions *regions)
{
    *regions = (struct hte_regions){.count = 0};
    pthread_rwlock_init(&regions->lock, NULL);
}

void hte_regions_cleanup(struct hte_regions *regions)
{
    free(regions->list);
    pthread_rwlock_destroy(&regions->lock);
}

struct hte_region *hte_region_create(const struct hte_memory *memory)
{
    struct hte_region *region = calloc(1, sizeof(*region));

    if (region != NULL && getrandom(&region->id, sizeof(region->id), 0) != sizeof(region->id)) {
        free(region);
        return NULL;
    }
    if (region != NULL) {
        region->id         = (region->id & INT64_MAX) | 1;
        region->addr       = (uint64_t)memory->addr;
        region->length     = memory->length;
        region->permission = memory->permission;
        region->is_gpu     = hte_location_is_gpu(memory->location);
    }
    return region;
}

/* Index of the first region that ends after addr. */
static size_t lower_bound(const struct hte_regions *regions, uint64_t addr)
{
    size_t low = 0, high = regions->count, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (regions->list[middle]->addr + regions->list[middle]->length <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int hte_regions_add(struct hte_regions *regions, struct hte_region *region)
{
    size_t              at = lower_bound(regions, region->addr), room;
    struct hte_region **list;

    if (at < regions->count && regions->list[at]->addr < region->addr + region->length) {
        return hte_fail(HTE_ERR_OVERLAP, "%p + %llu overlaps %p + %llu, which is registered: unregister that first",
                        (void *)region->addr, (unsigned long long)region->length, (void *)regions->list[at]->addr,
                        (unsigned long long)regions->list[at]->length);
    }
    if (regions->count == regions->room) {
        room = regions->room == 0 ? 16 : 2 * regions->room;
        list = realloc(regions->list, room * sizeof(*list));
        if (list == NULL) {
            return hte_fail(HTE_ERR_MEMORY, "no memory for the list of registrations");
        }
        regions->list = list;
        regions->room = room;
    }
    memmove(&regions->list[at + 1], &regions->list[at], (regions->count - at) * sizeof(*regions->list));
    regions->list[at] = region;
    ++regions->count;
    return HTE_OK;
}

void hte_regions_remove(struct hte_regions *regions, struct hte_region *region)
{
    size_t at = lower_bound(regions, region->addr);

    --regions->count;
    memmove(&regions->list[at], &regions->list[at + 1], (regions->count - at) * sizeof(*regions->list));
}

struct hte_region *hte_regions_find(const struct hte_regions *regions, uint64_t addr)
{
    size_t at = lower_bound(regions, addr);

    if (at == regions->count || regions->list[at]->addr > addr) {
        return NULL;
    }
    return regions->list[at];
}

bool hte_regions_have_gpu(const struct hte_regions *regions, uint64_t addr, uint64_t length)
{
    size_t at = lower_bound(regions, addr);

    while (at < regions->count && regions->list[at]->addr < addr + length && !regions->list[at]->is_gpu) {
        ++at;
    }
    return at < regions->count && regions->list[at]->addr < addr + length;
}

static void pin_range(struct hte_regions *regions, uint64_t addr, uint64_t length, bool pin)
{
    size_t at = lower_bound(regions, addr);

    for (; at < regions->count && regions->list[at]->addr < addr + length; ++at) {
        if (pin) {
            atomic_fetch_add(&regions->list[at]->pins, 1);
        } else {
            atomic_fetch_sub(&regions->list[at]->pins, 1);
        }
    }
}

static bool pin_several(struct hte_regions *regions, uint64_t addr, uint64_t length)
{
    size_t   at  = lower_bound(regions, addr);
    uint64_t end = addr;

    for (; at < regions->count && regions->list[at]->addr <= end && end < addr + length; ++at) {
        end = regions->list[at]->addr + regions->list[at]->length;
    }
    if (end < addr + length) {
        return false;
    }
    pin_range(regions, addr, length, true);
    return true;
}

bool hte_regions_pin(struct hte_regions *regions, uint64_t addr, uint64_t length, struct hte_region **only)
{
    struct hte_region *region = *only;

    if (length == 0 || addr + length < addr) {
        return false;
    }
    if (region == NULL || !hte_region_has(region, addr, length)) {
        region = hte_regions_find(regions, addr);
    }
    if (region == NULL || !hte_region_has(region, addr, length)) {
        *only = NULL;
        return region != NULL && pin_several(regions, addr, length);
    }
    *only = region;
    atomic_fetch_add(&region->pins, 1);
    return true;
}

void hte_regions_unpin(struct hte_regions *regions, uint64_t addr, uint64_t length, struct hte_region *only)
{
    if (only != NULL) {
        atomic_fetch_sub(&only->pins, 1); /* the last that is done with it */
        return;
    }
    pthread_rwlock_rdlock(&regions->lock);
    pin_range(regions, addr, length, false);
    pthread_rwlock_unlock(&regions->lock);
}
