/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_LIST_H_
#define HTE_LIST_H_

/* Doubly linked ring with a head; a link that is in no list points to itself. */

#include <stdbool.h>
#include <stddef.h>

struct hte_link_ring {
    struct hte_link_ring *next, *prev;
};

#define HTE_OBJECT_OF(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline void hte_ring_init(struct hte_link_ring *link)
{
    link->next = link->prev = link;
}

static inline bool hte_ring_is_empty(const struct hte_link_ring *head)
{
    return head->next == head;
}

static inline void hte_ring_append(struct hte_link_ring *head, struct hte_link_ring *link)
{
    link->prev       = head->prev;
    link->next       = head;
    head->prev->next = link;
    head->prev       = link;
}

static inline void hte_ring_remove(struct hte_link_ring *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    hte_ring_init(link);
}

#endif
