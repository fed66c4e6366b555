/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_batch.h"

void hte_queue_init(struct hte_queue *queue)
{
    unsigned i;

    pthread_mutex_init(&queue->lock, NULL);
    for (i = 0; i < HTE_PRIORITIES; ++i) {
        hte_ring_init(&queue->waiting[i]);
    }
    atomic_init(&queue->count, 0);
}

void hte_queue_cleanup(struct hte_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
}

void hte_queue_push(struct hte_queue *queue, unsigned priority, struct hte_link_ring *pieces, uint64_t count)
{
    struct hte_link_ring *head = &queue->waiting[priority];

    if (hte_ring_is_empty(pieces)) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    pieces->next->prev = head->prev;
    head->prev->next   = pieces->next;
    pieces->prev->next = head;
    head->prev         = pieces->prev;
    atomic_fetch_add(&queue->count, count);
    pthread_mutex_unlock(&queue->lock);
    hte_ring_init(pieces);
}

void hte_queue_take(struct hte_queue *queue, unsigned max, uint64_t bytes, struct hte_link_ring *taken)
{
    struct hte_link_ring *head, *link;
    unsigned i, count = 0;
    uint64_t length   = 0;

    if (atomic_load(&queue->count) == 0) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    for (i = 0; i < HTE_PRIORITIES && count == 0; ++i) {
        head = &queue->waiting[i];
        while (count < max && length < bytes && !hte_ring_is_empty(head)) {
            link = head->next;
            length += HTE_OBJECT_OF(link, struct hte_piece, link)->state.left;
            hte_ring_remove(link);
            hte_ring_append(taken, link);
            ++count;
        }
    }
    atomic_fetch_sub(&queue->count, count);
    pthread_mutex_unlock(&queue->lock);
}

void hte_queue_take_canceled(struct hte_queue *queue, struct hte_link_ring *taken)
{
    struct hte_link_ring *head, *link, *next;
    unsigned i;

    pthread_mutex_lock(&queue->lock);
    for (i = 0; i < HTE_PRIORITIES; ++i) {
        head = &queue->waiting[i];
        for (link = head->next; link != head; link = next) {
            next = link->next;
            if (atomic_load(&HTE_OBJECT_OF(link, struct hte_piece, link)->task->is_canceled)) {
                hte_ring_remove(link);
                hte_ring_append(taken, link);
                atomic_fetch_sub(&queue->count, 1);
            }
        }
    }
    pthread_mutex_unlock(&queue->lock);
}
