/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slab.h"

/* In a build that watches memory, who uses a block that was given back is noticed. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size)   ((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

#define BLOCKS_FEW 16 /* in a chunk, */
#define FEW        2  /* ... of which the first so many are; then a huge page each */

struct uct_ha_slab_chunk {
    struct uct_ha_slab_chunk *next;
};

/* Blocks begin one line behind the chunk. */
static void *block_of(const struct uct_ha_slab *slab, struct uct_ha_slab_chunk *chunk, size_t i)
{
    return (char *)chunk + UCT_HA_LINE + i * slab->size;
}

static int add_chunk(struct uct_ha_slab *slab)
{
    int                       huge   = slab->num_chunks >= FEW;
    size_t                    bytes  = huge ? UCT_HA_HUGE_PAGE : UCT_HA_LINE + BLOCKS_FEW * slab->size;
    struct uct_ha_slab_chunk *chunk  = huge ? uct_ha_huge_alloc() : aligned_alloc(UCT_HA_LINE, bytes);
    size_t                    blocks = (bytes - UCT_HA_LINE) / slab->size;

    if (chunk == NULL) {
        return -1;
    }
    chunk->next  = slab->chunks;
    slab->chunks = chunk;
    slab->num_chunks++;
    while (blocks-- > 0) { /* the first one is taken first */
        uct_ha_slab_free(slab, block_of(slab, chunk, blocks));
    }
    return 0;
}

void *uct_ha_slab_alloc(struct uct_ha_slab *slab)
{
    void *block;

    if (slab->free == NULL && add_chunk(slab) != 0) {
        return NULL;
    }
    block      = slab->free;
    slab->free = *(void **)block;
    ASAN_UNPOISON_MEMORY_REGION(block, slab->size);
    return block;
}

void uct_ha_slab_free(struct uct_ha_slab *slab, void *block)
{
    *(void **)block = slab->free;
    slab->free      = block;
    ASAN_POISON_MEMORY_REGION((char *)block + sizeof(void *), slab->size - sizeof(void *));
}

void uct_ha_slab_cleanup(struct uct_ha_slab *slab)
{
    struct uct_ha_slab_chunk *chunk;

    while ((chunk = slab->chunks) != NULL) {
        slab->chunks = chunk->next;
        free(chunk); /* poisoned or not */
    }
    slab->free       = NULL;
    slab->num_chunks = 0;
}
