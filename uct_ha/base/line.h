/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LINE_H_
#define UCT_HA_LINE_H_

/* Cache lines: with many connections nothing of one is in the cache any more when its turn comes, and each line that an
 * operation touches costs as much as twenty instructions. What it needs is laid out together. */

#include <stdlib.h>
#include <string.h>

#define UCT_HA_LINE 64 /* bytes; where lines are longer, two of these are one */

/* Zeroed memory from the start of a line, for free(); NULL when there is none. */
static inline void *uct_ha_line_alloc(size_t size)
{
    size_t whole  = (size + UCT_HA_LINE - 1) & ~(size_t)(UCT_HA_LINE - 1);
    void  *memory = aligned_alloc(UCT_HA_LINE, whole);

    return memory == NULL ? NULL : memset(memory, 0, whole);
}

#endif
