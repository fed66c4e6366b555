/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_TABLE_H_
#define HTE_TABLE_H_

/*
 * Numbers for objects: slot index and generation of the slot. A number whose object was removed never finds what
 * took its slot later, until the generation wraps (bounded by gen_mask). The caller locks, and gives the memory.
 */

#include <stddef.h>
#include <stdint.h>

struct hte_slot {
    void    *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct hte_table {
    struct hte_slot *slots;
    uint32_t         count, first_free, last_free;
    uint32_t         gen_mask;
};

#define HTE_TABLE_NONE UINT32_MAX

/* slots: `count` of them, of the caller; generations run from 1 to gen_mask. */
static inline void hte_table_init(struct hte_table *table, struct hte_slot *slots, uint32_t count, uint32_t gen_mask)
{
    uint32_t i;

    *table = (struct hte_table){.slots = slots, .count = count, .last_free = count - 1, .gen_mask = gen_mask};
    for (i = 0; i < count; ++i) {
        slots[i] = (struct hte_slot){.generation = 1, .next_free = i + 1 < count ? i + 1 : HTE_TABLE_NONE};
    }
}

/* The index, or HTE_TABLE_NONE when full. The slot free longest is taken: numbers come back late. */
static inline uint32_t hte_table_add(struct hte_table *table, void *object)
{
    uint32_t index = table->first_free;

    if (index != HTE_TABLE_NONE) {
        table->slots[index].object = object;
        table->first_free          = table->slots[index].next_free;
    }
    return index;
}

static inline void *hte_table_find(const struct hte_table *table, uint32_t index, uint32_t generation)
{
    if (index >= table->count || table->slots[index].generation != generation) {
        return NULL;
    }
    return table->slots[index].object;
}

static inline void hte_table_remove(struct hte_table *table, uint32_t index)
{
    struct hte_slot *slot = &table->slots[index];

    slot->object     = NULL;
    slot->generation = slot->generation == table->gen_mask ? 1 : slot->generation + 1;
    slot->next_free  = HTE_TABLE_NONE;
    if (table->first_free == HTE_TABLE_NONE) {
        table->first_free = index;
    } else {
        table->slots[table->last_free].next_free = index;
    }
    table->last_free = index;
}

#endif
