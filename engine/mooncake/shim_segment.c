/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments and memory. */
#include <stdlib.h>

#include "hte.h"
#include "shim_error.h"
#include "transfer_engine_c.h"

#define WARM_MS 30000

/* Mooncake takes names with slashes before them. */
static const char *without_slashes(const char *name)
{
    while (name != NULL && *name == '/') {
        ++name;
    }
    return name;
}

segment_id_t openSegment(transfer_engine_t engine, const char *segment_name)
{
    hte_segment_t segment;
    int           error = hte_segment_open(engine, without_slashes(segment_name), &segment);

    return shim_result(__func__, error) == 0 ? segment : HTE_SEGMENT_NONE;
}

segment_id_t openSegmentNoCache(transfer_engine_t engine, const char *segment_name)
{
    hte_segment_t segment;
    if (shim_result(__func__, hte_segment_open(engine, without_slashes(segment_name), &segment)) != 0) {
        return HTE_SEGMENT_NONE;
    }
    if (shim_result(__func__, hte_segment_sync(engine, segment)) != 0) {
        hte_segment_close(engine, segment);
        return HTE_SEGMENT_NONE;
    }
    return segment;
}

int closeSegment(transfer_engine_t engine, segment_id_t segment_id)
{
    return shim_result(__func__, hte_segment_close(engine, segment_id));
}

int warmupEfaSegment(transfer_engine_t engine, const char *segment_name)
{
    hte_segment_t segment;
    int           result = shim_result(__func__, hte_segment_open(engine, without_slashes(segment_name), &segment));

    if (result == 0) {
        result = shim_result(__func__, hte_segment_warm(engine, segment, WARM_MS));
        if (result != 0) {
            hte_segment_close(engine, segment);
        }
    }
    return result;
}

int syncSegmentCache(transfer_engine_t engine)
{
    return shim_result(__func__, hte_segment_sync(engine, HTE_SEGMENT_NONE));
}

int removeLocalSegment(transfer_engine_t engine, const char *segment_name)
{
    (void)engine;
    (void)segment_name;
    return shim_refuse(__func__, HTE_ERR_NOT_IMPLEMENTED,
                       "a segment lives as long as its engine: destroyTransferEngine()");
}

int registerLocalMemory(transfer_engine_t engine, void *addr, size_t length, const char *location,
                        int remote_accessible)
{
    const struct hte_memory memory = {.addr       = addr,
                                      .length     = length,
                                      .location   = location,
                                      .permission = remote_accessible ? HTE_PERM_GLOBAL_RW : HTE_PERM_LOCAL};

    return shim_result(__func__, hte_memory_register(engine, &memory));
}

int unregisterLocalMemory(transfer_engine_t engine, void *addr)
{
    return shim_result(__func__, hte_memory_unregister(engine, addr));
}

int registerLocalMemoryBatch(transfer_engine_t engine, buffer_entry_t *buffer_list, size_t buffer_len,
                             const char *location)
{
    struct hte_memory *memories;
    size_t             i;
    int                result;

    if (engine != NULL && buffer_len == 0) {
        return 0; /* there; libhte refuses an empty list */
    }
    memories = calloc(buffer_len, sizeof(*memories));
    if (memories == NULL || buffer_list == NULL) {
        free(memories);
        return shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "there is no list of %zu buffers", buffer_len);
    }
    for (i = 0; i < buffer_len; ++i) {
        memories[i] = (struct hte_memory){.addr       = buffer_list[i].addr,
                                          .length     = buffer_list[i].length,
                                          .location   = location,
                                          .permission = HTE_PERM_GLOBAL_RW};
    }
    result = shim_result(__func__, hte_memory_register_batch(engine, memories, buffer_len));
    free(memories);
    return result;
}

int unregisterLocalMemoryBatch(transfer_engine_t engine, void **addr_list, size_t addr_len)
{
    if (engine != NULL && addr_len == 0) {
        return 0;
    }
    return shim_result(__func__, hte_memory_unregister_batch(engine, addr_list, addr_len));
}
