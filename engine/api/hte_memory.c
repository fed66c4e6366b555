/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_memory_*: registration as a whole or not at all. publish_lock orders changes of the list and their publication.
 * */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "base/hte_location.h"
#include "hte_engine.h"
#include "hte_publish.h"
#include "local/hte_maps.h"
#include "local/hte_pretouch.h"
#include "wire/hte_mapping.h"

static int check_location(const struct hte_engine *engine, const struct hte_memory *memory, size_t index)
{
    int error = memory->location == NULL ? HTE_OK : hte_location_check(memory->location);

    if (error == HTE_OK && hte_location_is_gpu(memory->location) && !hte_rails_know_gpu(&engine->rails)) {
        return hte_fail(
            HTE_ERR_NOT_IMPLEMENTED,
            "memory %zu: location '%s': UCX has no CUDA here (see `ucx_info -d | grep cuda`; it is a module "
            "of UCX, and UCX_TLS may leave it out)",
            index, memory->location);
    }
    return error;
}

static int check(const struct hte_engine *engine, const struct hte_memory *memory, size_t index)
{
    if (memory->length == 0) {
        return hte_fail(HTE_ERR_ZERO_LENGTH, "memory %zu at %p has length 0", index, memory->addr);
    }
    if (memory->addr == NULL || (uint64_t)memory->addr + memory->length < (uint64_t)memory->addr) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "memory %zu: %p + %zu is not a range of addresses", index,
                        memory->addr, memory->length);
    }
    if (memory->permission < HTE_PERM_GLOBAL_RW || memory->permission > HTE_PERM_LOCAL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "memory %zu: permission %d is none of enum hte_permission", index,
                        memory->permission);
    }
    return check_location(engine, memory, index);
}

/* Before anything touches it. All of one call at a time: to read what is mapped takes about 1 µs per mapping. */
static int check_mapped(const struct hte_memory *memories, size_t count)
{
    const char     *why = "";
    struct hte_maps maps;
    uint64_t        at = 0;
    size_t          i;
    int             error = HTE_OK;

    if (!hte_maps_read(&maps)) {
        return HTE_OK; /* UCX will see, where it pins */
    }
    for (i = 0; i < count && error == HTE_OK; ++i) {
        if (hte_location_is_gpu(memories[i].location)) {
            continue; /* its addresses are the driver's */
        }
        at = hte_maps_missing(&maps, (uint64_t)memories[i].addr, memories[i].length,
                              memories[i].permission == HTE_PERM_GLOBAL_RW, &why);
        if (at != 0) {
            error = hte_fail(HTE_ERR_RANGE, "memory %zu: %p, byte %llu of %p + %zu, %s", i, (void *)at,
                             (unsigned long long)(at - (uint64_t)memories[i].addr), memories[i].addr,
                             memories[i].length, why);
        }
    }
    hte_maps_free(&maps);
    return error;
}

static void destroy_region(struct hte_engine *engine, struct hte_region *region)
{
    hte_region_unmap(&engine->rails, region);
    free(region);
}

static int make_region(struct hte_engine *engine, const struct hte_memory *memory, struct hte_region **region)
{
    int error;

    *region = hte_region_create(memory);
    if (*region == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a registration");
    }
    error = hte_region_map(&engine->rails, *region);
    if (error != HTE_OK) {
        free(*region);
        return error;
    }
    if (memory->location == NULL || strcmp(memory->location, "*") == 0) {
        /* UCX may have brought it in */
        hte_location_find(memory->addr, (*region)->location, sizeof((*region)->location));
    } else {
        snprintf((*region)->location, sizeof((*region)->location), "%s", memory->location);
    }
    hte_topology_masks(&engine->topology, (*region)->location, &(*region)->preferred, &(*region)->available);
    hte_shared_note(&engine->shareds, *region);
    return HTE_OK;
}

/* Overlap is looked for before the memory is pinned, which may take long. */
static int check_overlap(struct hte_engine *engine, const struct hte_memory *memory)
{
    uint64_t           addr = (uint64_t)memory->addr;
    struct hte_region *region;
    int                error = HTE_OK;
    size_t             i;

    pthread_rwlock_rdlock(&engine->regions.lock);
    for (i = 0; i < engine->regions.count && error == HTE_OK; ++i) {
        region = engine->regions.list[i];
        if (addr < region->addr + region->length && region->addr < addr + memory->length) {
            error = hte_fail(HTE_ERR_OVERLAP, "%p + %zu overlaps %p + %llu, which is registered: unregister that first",
                             memory->addr, memory->length, (void *)region->addr, (unsigned long long)region->length);
        }
    }
    pthread_rwlock_unlock(&engine->regions.lock);
    return error;
}

static int add(struct hte_engine *engine, const struct hte_memory *memory, struct hte_region **region)
{
    int error = check_overlap(engine, memory);

    if (error != HTE_OK) {
        return error;
    }
    if (!hte_location_is_gpu(memory->location)) {
        hte_pretouch(memory->addr, memory->length, engine->settings.pretouch_size);
    }
    error = make_region(engine, memory, region);
    if (error != HTE_OK) {
        return error;
    }
    pthread_rwlock_wrlock(&engine->regions.lock);
    error = hte_regions_add(&engine->regions, *region);
    pthread_rwlock_unlock(&engine->regions.lock);
    if (error == HTE_OK && !(*region)->is_gpu) {
        hte_board_add(&engine->board, *region); /* for those of this host who move it without UCX */
    }
    if (error != HTE_OK) {
        destroy_region(engine, *region);
    }
    return error;
}

static void take_out(struct hte_engine *engine, struct hte_region **regions, size_t count)
{
    size_t i;

    pthread_rwlock_wrlock(&engine->regions.lock);
    for (i = 0; i < count; ++i) {
        hte_regions_remove(&engine->regions, regions[i]);
    }
    pthread_rwlock_unlock(&engine->regions.lock);
    hte_board_remove(&engine->board, regions, count);
    for (i = 0; i < count; ++i) {
        destroy_region(engine, regions[i]);
    }
}

static int register_all(struct hte_engine *engine, const struct hte_memory *memories, size_t count,
                        struct hte_region **regions)
{
    size_t done;
    int    error = HTE_OK;

    pthread_mutex_lock(&engine->publish_lock);
    for (done = 0; done < count; ++done) {
        error = add(engine, &memories[done], &regions[done]);
        if (error != HTE_OK) {
            break;
        }
    }
    if (error == HTE_OK) {
        error = hte_publish(engine);
    }
    if (error != HTE_OK) {
        take_out(engine, regions, done);
    }
    pthread_mutex_unlock(&engine->publish_lock);
    return error;
}

static int register_batch(struct hte_engine *engine, const struct hte_memory *memories, size_t count)
{
    struct hte_region **regions;
    size_t              i;
    int                 error = HTE_OK;

    if (memories == NULL || count == 0) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "memories is NULL, or count is 0");
    }
    for (i = 0; i < count && error == HTE_OK; ++i) {
        error = check(engine, &memories[i], i);
    }
    error = error == HTE_OK ? check_mapped(memories, count) : error;
    if (error != HTE_OK) {
        return error;
    }
    regions = calloc(count, sizeof(*regions));
    if (regions == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %zu registrations", count);
    }
    error = register_all(engine, memories, count, regions);
    free(regions);
    return error;
}

int hte_memory_register_batch(struct hte_engine *engine, const struct hte_memory *memories, size_t count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = register_batch(engine, memories, count);
        hte_leave(engine);
    }
    return error;
}

int hte_memory_register(struct hte_engine *engine, const struct hte_memory *memory)
{
    return hte_memory_register_batch(engine, memory, 1);
}

/* With the regions' lock held. */
static int find_idle(struct hte_engine *engine, void *addr, struct hte_region **region)
{
    *region = hte_regions_find(&engine->regions, (uint64_t)addr);
    if (*region == NULL || (*region)->addr != (uint64_t)addr) {
        return hte_fail(HTE_ERR_NOT_REGISTERED, "%p is not the start of registered memory", addr);
    }
    if (atomic_load(&(*region)->pins) > 0) {
        return hte_fail(
            HTE_ERR_MEMORY_BUSY,
            "%u unfinished requests, or requests of lists, use the memory at %p: wait for them, cancel, release",
            atomic_load(&(*region)->pins), addr);
    }
    return HTE_OK;
}

static bool has_duplicate(void *const *addrs, size_t count)
{
    size_t i, k;

    for (i = 0; i < count; ++i) {
        for (k = i + 1; k < count; ++k) {
            if (addrs[i] == addrs[k]) {
                return true;
            }
        }
    }
    return false;
}

/* Removed from the list, so that no request begins with it, then from what peers see, then from UCX. When peers
 * cannot be told, it is taken out all the same: the memory is the caller's. */
static int unregister_all(struct hte_engine *engine, void *const *addrs, size_t count, struct hte_region **regions)
{
    size_t i;
    int    error = HTE_OK;

    pthread_rwlock_wrlock(&engine->regions.lock);
    for (i = 0; i < count && error == HTE_OK; ++i) {
        error = find_idle(engine, addrs[i], &regions[i]);
    }
    for (i = 0; i < count && error == HTE_OK; ++i) {
        hte_regions_remove(&engine->regions, regions[i]);
    }
    pthread_rwlock_unlock(&engine->regions.lock);
    if (error != HTE_OK) {
        return error;
    }
    hte_board_remove(&engine->board, regions, count);
    error = hte_publish(engine);
    for (i = 0; i < count; ++i) {
        destroy_region(engine, regions[i]);
    }
    return error;
}

static int unregister_batch(struct hte_engine *engine, void *const *addrs, size_t count)
{
    struct hte_region **regions;
    int                 error;

    if (addrs == NULL || count == 0 || has_duplicate(addrs, count)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "addrs is NULL, count is 0, or an address is there twice");
    }
    regions = calloc(count, sizeof(*regions));
    if (regions == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for %zu registrations", count);
    }
    pthread_mutex_lock(&engine->publish_lock);
    error = unregister_all(engine, addrs, count, regions);
    pthread_mutex_unlock(&engine->publish_lock);
    free(regions);
    return error;
}

int hte_memory_unregister_batch(struct hte_engine *engine, void *const *addrs, size_t count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = unregister_batch(engine, addrs, count);
        hte_leave(engine);
    }
    return error;
}

int hte_memory_unregister(struct hte_engine *engine, void *addr)
{
    return hte_memory_unregister_batch(engine, &addr, 1);
}

/* ---- memory of ours ---- */

int hte_memory_alloc(struct hte_engine *engine, size_t length, void **addr)
{
    int error;

    if (addr == NULL || length == 0) {
        return addr == NULL ? hte_fail(HTE_ERR_INVALID_ARGUMENT, "addr is NULL")
                            : hte_fail(HTE_ERR_ZERO_LENGTH, "no memory of length 0");
    }
    error = hte_enter(engine);
    if (error == HTE_OK) {
        error = hte_shared_alloc(&engine->shareds, length, addr);
        hte_leave(engine);
    }
    return error;
}

static int free_shared(struct hte_engine *engine, void *addr)
{
    uint64_t           at = (uint64_t)addr;
    size_t             i, length = hte_shared_length(&engine->shareds, addr);
    struct hte_region *region;
    int                error = HTE_OK;

    if (length == 0) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "%p is not the start of memory of hte_memory_alloc()", addr);
    }
    pthread_rwlock_rdlock(&engine->regions.lock);
    for (i = 0; i < engine->regions.count && error == HTE_OK; ++i) {
        region = engine->regions.list[i];
        if (at < region->addr + region->length && region->addr < at + length) {
            error = hte_fail(HTE_ERR_MEMORY_BUSY, "%p + %llu in it is registered: unregister that first",
                             (void *)region->addr, (unsigned long long)region->length);
        }
    }
    pthread_rwlock_unlock(&engine->regions.lock);
    if (error == HTE_OK) {
        hte_shared_free(&engine->shareds, addr);
    }
    return error;
}

int hte_memory_free(struct hte_engine *engine, void *addr)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        pthread_mutex_lock(&engine->publish_lock); /* nothing is registered meanwhile */
        error = free_shared(engine, addr);
        pthread_mutex_unlock(&engine->publish_lock);
        hte_leave(engine);
    }
    return error;
}
