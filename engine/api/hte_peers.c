/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_peers.h"

#include <stdlib.h>

#include "base/hte_error.h"
#include "wire/hte_conn.h"

#define TRIES 8

static int by_slot(const void *key, const void *sum)
{
    uint32_t wanted = *(const uint32_t *)key, slot = ((const struct hte_peer_sum *)sum)->segment->slot;

    return (wanted > slot) - (wanted < slot);
}

/* Of one that was closed and still has requests under way the slot may be another's by now. */
static struct hte_peer_sum *find(const struct hte_peers *peers, const struct hte_segment *segment)
{
    struct hte_peer_sum *sum = bsearch(&segment->slot, peers->list, peers->count, sizeof(*sum), by_slot);

    return sum != NULL && sum->segment == segment ? sum : NULL;
}

static void add_lane(struct hte_peers *peers, struct hte_lane *lane)
{
    const struct hte_conn *conn;
    struct hte_link_ring  *at;
    struct hte_peer_sum   *sum;

    pthread_mutex_lock(&lane->lock);
    for (at = lane->conns.next; at != &lane->conns; at = at->next) {
        conn = HTE_OBJECT_OF(at, struct hte_conn, link);
        sum  = find(peers, conn->segment);
        if (sum != NULL) {
            sum->transferred += atomic_load(&conn->transferred);
            sum->reconnects += atomic_load(&conn->reconnects);
            sum->connected[conn->way] += atomic_load(&conn->step) == HTE_CONN_UP;
        }
    }
    pthread_mutex_unlock(&lane->lock);
}

static uint64_t count_ended(const struct hte_engine *engine)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < engine->workers.count; ++i) {
        sum += atomic_load(&hte_workers_lane(&engine->workers, i)->conns_ended);
    }
    return sum;
}

static void add_up(struct hte_engine *engine, struct hte_peers *peers)
{
    struct hte_segment *segment;
    size_t              i;
    unsigned            lane;

    for (i = 0; i < peers->count; ++i) {
        segment        = peers->list[i].segment;
        peers->list[i] = (struct hte_peer_sum){.segment     = segment,
                                               .transferred = atomic_load(&segment->past_transferred),
                                               .reconnects  = atomic_load(&segment->past_reconnects)};
    }
    for (lane = 0; lane < engine->workers.count; ++lane) {
        add_lane(peers, hte_workers_lane(&engine->workers, lane));
    }
}

/* A connection that ended while they were added up is missing, or there twice: then once more. A sum that shrinks for a
 * moment would be taken for a counter that began anew. */
int hte_peers_gather(struct hte_engine *engine, struct hte_peers *peers)
{
    struct hte_segment **all = hte_segments_all(&engine->segments, &peers->count);
    unsigned             tries;
    uint64_t             ended;
    size_t               i;

    peers->list = calloc(peers->count + 1, sizeof(*peers->list));
    for (i = 0; i < peers->count; ++i) {
        if (peers->list == NULL) {
            hte_segment_put(all[i]);
        } else {
            peers->list[i].segment = all[i];
        }
    }
    free(all);
    if (all == NULL || peers->list == NULL) {
        free(peers->list);
        return hte_fail(HTE_ERR_MEMORY, "no memory for a list of peers");
    }
    for (tries = 0; tries < TRIES; ++tries) {
        ended = count_ended(engine);
        add_up(engine, peers);
        if (count_ended(engine) == ended) {
            break;
        }
    }
    return HTE_OK;
}

void hte_peers_free(struct hte_peers *peers)
{
    size_t i;

    for (i = 0; i < peers->count; ++i) {
        hte_segment_put(peers->list[i].segment);
    }
    free(peers->list);
}
