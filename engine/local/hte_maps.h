/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_MAPS_H_
#define HTE_MAPS_H_

/*
 * What is mapped in this process, and how, without touching it. Memory that is not there is refused when it is
 * registered: where nothing is pinned (tcp, shared memory) nobody else would notice before a request, whose copy ends
 * the process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hte_map {
    uint64_t begin, end;
    bool     is_readable, is_writable;
};

struct hte_maps {
    struct hte_map *list; /* by address; neighbours that are alike are one */
    size_t          count, room;
};

/* As of now: other threads may map and unmap meanwhile, what they leave alone is right. False: it cannot be known
 * (no /proc, no memory). Else: free. */
bool hte_maps_read(struct hte_maps *maps);
void hte_maps_free(struct hte_maps *maps);

/* The first address of [addr, addr + length) that is not as wanted; `why` says what is wrong with it. 0: all are. */
uint64_t hte_maps_missing(const struct hte_maps *maps, uint64_t addr, uint64_t length, bool is_written,
                          const char **why);

#endif
