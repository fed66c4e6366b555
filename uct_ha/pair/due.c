/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/due.h"

#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX

void uct_ha_dues_open(struct uct_ha_dues *dues)
{
    ucs_list_head_init(&dues->touched);
    ucs_list_head_init(&dues->peers);
}

void uct_ha_dues_close(struct uct_ha_dues *dues)
{
    free(dues->heap);
}

int uct_ha_due_begin(struct uct_ha_due *due, struct uct_ha_dues *dues, uint32_t conns)
{
    uint32_t            room = dues->heap_room;
    struct uct_ha_due **heap;

    if (conns >= room) { /* the heap has a place for each, so that nothing can fail later */
        room = 2 * conns + 16;
        heap = realloc(dues->heap, room * sizeof(struct uct_ha_due *));
        if (heap == NULL) {
            return -ENOMEM;
        }
        dues->heap      = heap;
        dues->heap_room = room;
    }
    due->dues = dues;
    due->at   = NOWHERE;
    return 0;
}

void uct_ha_due_end(struct uct_ha_due *due)
{
    uct_ha_due_set(due, UINT64_MAX);
    if (due->touched) {
        ucs_list_del(&due->touched_link);
    }
    if (due->to_send) {
        ucs_list_del(&due->send_link);
    }
}

void uct_ha_due_peer_begin(struct uct_ha_due_peer *peer)
{
    ucs_list_head_init(&peer->conns);
}

void uct_ha_due_peer_end(struct uct_ha_due_peer *peer)
{
    if (peer->to_send) {
        ucs_list_del(&peer->link);
    }
}

/* ---- lists ---- */

void uct_ha_due_touch(struct uct_ha_due *due)
{
    if (!due->touched) {
        due->touched = 1;
        ucs_list_add_tail(&due->dues->touched, &due->touched_link);
    }
}

void uct_ha_due_send(struct uct_ha_due *due, struct uct_ha_due_peer *peer, int want)
{
    due->want |= (uint8_t)want;
    if (!due->to_send) {
        due->to_send = 1;
        ucs_list_add_tail(&peer->conns, &due->send_link);
    }
    if (!peer->to_send) {
        peer->to_send = 1;
        ucs_list_add_tail(&due->dues->peers, &peer->link);
    }
}

struct uct_ha_due *uct_ha_due_next_touched(struct uct_ha_dues *dues)
{
    struct uct_ha_due *due;

    if (ucs_list_is_empty(&dues->touched)) {
        return NULL;
    }
    due = ucs_list_head(&dues->touched, struct uct_ha_due, touched_link);
    ucs_list_del(&due->touched_link);
    due->touched = 0;
    UCT_HA_STATS_ADD(visits, 1);
    return due;
}

struct uct_ha_due_peer *uct_ha_due_next_peer(struct uct_ha_dues *dues)
{
    struct uct_ha_due_peer *peer;

    if (ucs_list_is_empty(&dues->peers)) {
        return NULL;
    }
    peer = ucs_list_head(&dues->peers, struct uct_ha_due_peer, link);
    ucs_list_del(&peer->link);
    peer->to_send = 0;
    return peer;
}

struct uct_ha_due *uct_ha_due_next_to_send(struct uct_ha_due_peer *peer)
{
    struct uct_ha_due *due;

    if (ucs_list_is_empty(&peer->conns)) {
        return NULL;
    }
    due = ucs_list_head(&peer->conns, struct uct_ha_due, send_link);
    ucs_list_del(&due->send_link);
    due->to_send = 0;
    UCT_HA_STATS_ADD(visits, 1);
    return due;
}

/* ---- the heap: heap[i] is due no later than heap[2 i + 1] and heap[2 i + 2] ---- */

static void put(struct uct_ha_dues *dues, uint32_t at, struct uct_ha_due *due)
{
    dues->heap[at] = due;
    due->at        = at;
    UCT_HA_STATS_ADD(visits, 1);
}

static void up(struct uct_ha_dues *dues, struct uct_ha_due *due)
{
    uint32_t at = due->at, parent;

    while (at > 0 && dues->heap[parent = (at - 1) / 2]->when > due->when) {
        put(dues, at, dues->heap[parent]);
        at = parent;
    }
    put(dues, at, due);
}

static void down(struct uct_ha_dues *dues, struct uct_ha_due *due)
{
    uint32_t at = due->at, child;

    while ((child = 2 * at + 1) < dues->heap_len) {
        if (child + 1 < dues->heap_len && dues->heap[child + 1]->when < dues->heap[child]->when) {
            child++;
        }
        if (dues->heap[child]->when >= due->when) {
            break;
        }
        put(dues, at, dues->heap[child]);
        at = child;
    }
    put(dues, at, due);
}

static void leave(struct uct_ha_dues *dues, struct uct_ha_due *due)
{
    struct uct_ha_due *last = dues->heap[--dues->heap_len];

    if (last != due) {
        put(dues, due->at, last);
        up(dues, last);
        down(dues, last);
    }
    due->at = NOWHERE;
}

void uct_ha_due_set(struct uct_ha_due *due, uint64_t when)
{
    struct uct_ha_dues *dues = due->dues;

    if (when == UINT64_MAX) {
        if (due->at != NOWHERE) {
            leave(dues, due);
        }
        return;
    }
    if (due->at != NOWHERE && due->when == when) {
        return;
    }
    due->when = when;
    if (due->at == NOWHERE) {
        put(dues, dues->heap_len++, due);
    }
    up(dues, due);
    down(dues, due);
}
