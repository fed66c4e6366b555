/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NEAR_MAP_H_
#define HTE_NEAR_MAP_H_

/* A neighbour's files, mapped here: its board, and memory of hte_memory_alloc(). Believed only when they are what he
 * says they are, and sealed: else a file that shrinks would end this process. */

#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "local/hte_board.h"
#include "remote/hte_view.h"

struct hte_near_map {
    struct hte_link_ring link;
    uint64_t             region, slot; /* of the buffer */
    char                *base; /* where the mapping begins; NULL: it cannot be mapped, and nor has addr anything */
    char                *addr; /* where the buffer does */
    size_t               length;
};

/* NULL, and errno: 0 when it is no board, or not the one of that secret. */
struct hte_board_page *hte_near_map_board(const struct hte_desc_host *host);
void                   hte_near_unmap_board(struct hte_board_page *page);

/* The buffer's bytes, or NULL. The list has the latest one first. */
char *hte_near_map_find(struct hte_link_ring *maps, const struct hte_desc_host *host,
                        const struct hte_desc_buffer *buffer);
void  hte_near_unmap(struct hte_near_map *map);

#endif
