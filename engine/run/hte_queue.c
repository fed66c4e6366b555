/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_queue.h"

#include "job/hte_batch.h"

void hte_queue_init(struct hte_queue *queue)
{
    unsigned i;

    pthread_mutex_init(&queue->lock, NULL);
    for (i = 0; i < HTE_PRIORITIES; ++i) {
        hte_ring_init(&queue->waiting[i]);
    }
    hte_lines_init(queue->local, NULL);
    atomic_init(&queue->count, 0);
    atomic_init(&queue->pushes, 0);
}

void hte_queue_cleanup(struct hte_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
}

bool hte_queue_push(struct hte_queue *queue, unsigned priority, struct hte_segment *segment,
                    struct hte_link_ring *pieces, uint64_t count)
{
    struct hte_line      *line = segment == NULL ? &queue->local[priority] : &hte_target_of(segment)->lines[priority];
    struct hte_link_ring *head = &line->pieces;
    bool                  was_empty;

    pthread_mutex_lock(&queue->lock);
    was_empty = hte_ring_is_empty(head);
    if (was_empty) {
        hte_ring_append(&queue->waiting[priority], &line->link);
    }
    pieces->next->prev = head->prev;
    head->prev->next   = pieces->next;
    pieces->prev->next = head;
    head->prev         = pieces->prev;
    atomic_fetch_add(&queue->count, count);
    atomic_fetch_add(&queue->pushes, 1);
    pthread_mutex_unlock(&queue->lock);
    hte_ring_init(pieces);
    return was_empty;
}

/* Returns how many operations they take. Behind the others it goes with what is left of it. */
static unsigned take_of(struct hte_queue *queue, unsigned priority, struct hte_line *line, unsigned max, uint64_t bytes,
                        struct hte_link_ring *taken)
{
    struct hte_piece *piece;
    unsigned          count = 0, pieces = 0;
    uint64_t          length = 0;

    while (count < max && length < bytes && !hte_ring_is_empty(&line->pieces)) {
        piece = HTE_OBJECT_OF(line->pieces.next, struct hte_piece, link);
        length += piece->state.left;
        hte_ring_remove(&piece->link);
        hte_ring_append(taken, &piece->link);
        count += piece->weight;
        ++pieces;
    }
    atomic_fetch_sub(&queue->count, pieces);
    if (count > 0) {
        hte_ring_remove(&line->link);
    }
    if (count > 0 && !hte_ring_is_empty(&line->pieces)) {
        hte_ring_append(&queue->waiting[priority], &line->link);
    }
    return count;
}

static unsigned take_priority(struct hte_queue *queue, struct hte_flows *flows, unsigned priority, unsigned max,
                              struct hte_link_ring *taken)
{
    struct hte_link_ring *head = &queue->waiting[priority], *link, *next, *last = head->prev;
    struct hte_line      *line;
    unsigned              count = 0;
    uint64_t              room;
    bool                  is_last = hte_ring_is_empty(head);

    for (link = head->next; !is_last && count < max; link = next) {
        next    = link->next;
        is_last = link == last;
        line    = HTE_OBJECT_OF(link, struct hte_line, link);
        room    = hte_flow_room(flows, hte_flow_of(flows, line->segment));
        count += take_of(queue, priority, line, room < max - count ? (unsigned)room : max - count,
                         room * flows->slice_size, taken);
    }
    return count;
}

void hte_queue_take(struct hte_queue *queue, struct hte_flows *flows, unsigned max, struct hte_link_ring *taken)
{
    unsigned i, count = 0;

    pthread_mutex_lock(&queue->lock);
    for (i = 0; i < HTE_PRIORITIES && count == 0; ++i) {
        count = take_priority(queue, flows, i, max, taken);
    }
    atomic_store(&flows->seen, atomic_load(&queue->pushes));
    pthread_mutex_unlock(&queue->lock);
}

static uint64_t take_canceled_of(struct hte_line *line, struct hte_link_ring *taken)
{
    struct hte_link_ring *link, *next;
    uint64_t              count = 0;

    for (link = line->pieces.next; link != &line->pieces; link = next) {
        next = link->next;
        if (atomic_load(&HTE_OBJECT_OF(link, struct hte_piece, link)->task->is_canceled)) {
            hte_ring_remove(link);
            hte_ring_append(taken, link);
            ++count;
        }
    }
    if (hte_ring_is_empty(&line->pieces)) {
        hte_ring_remove(&line->link);
    }
    return count;
}

void hte_queue_take_canceled(struct hte_queue *queue, struct hte_link_ring *taken)
{
    struct hte_link_ring *head, *link, *next;
    unsigned              i;

    pthread_mutex_lock(&queue->lock);
    for (i = 0; i < HTE_PRIORITIES; ++i) {
        head = &queue->waiting[i];
        for (link = head->next; link != head; link = next) {
            next = link->next;
            atomic_fetch_sub(&queue->count, take_canceled_of(HTE_OBJECT_OF(link, struct hte_line, link), taken));
        }
    }
    pthread_mutex_unlock(&queue->lock);
}
