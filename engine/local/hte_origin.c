/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_origin.h"

#include <stdlib.h>

void hte_origins_init(struct hte_origins *origins)
{
    pthread_mutex_init(&origins->lock, NULL);
    hte_ring_init(&origins->list);
}

void hte_origins_cleanup(struct hte_origins *origins)
{
    pthread_mutex_destroy(&origins->lock);
}

/* With the lock held. */
static struct hte_origin *find(struct hte_origins *origins, uint64_t id)
{
    struct hte_link_ring *link;
    struct hte_origin    *origin;

    for (link = origins->list.next; link != &origins->list; link = link->next) {
        origin = HTE_OBJECT_OF(link, struct hte_origin, link);
        if (origin->id == id) {
            return origin;
        }
    }
    origin = calloc(1, sizeof(*origin));
    if (origin != NULL) {
        origin->id = id;
        pthread_rwlock_init(&origin->lock, NULL);
        hte_ring_append(&origins->list, &origin->link);
    }
    return origin;
}

struct hte_origin *hte_origin_get(struct hte_origins *origins, uint64_t id)
{
    struct hte_origin *origin;

    pthread_mutex_lock(&origins->lock);
    origin = find(origins, id);
    if (origin != NULL) {
        ++origin->refs;
    }
    pthread_mutex_unlock(&origins->lock);
    return origin;
}

void hte_origin_put(struct hte_origins *origins, struct hte_origin *origin)
{
    pthread_mutex_lock(&origins->lock);
    if (--origin->refs == 0) {
        hte_ring_remove(&origin->link);
        pthread_rwlock_destroy(&origin->lock);
        free(origin);
    }
    pthread_mutex_unlock(&origins->lock);
}

static void advance(struct hte_origin *origin, uint64_t epoch)
{
    pthread_rwlock_wrlock(&origin->lock); /* nobody is writing bytes of before any more */
    if (epoch > origin->epoch) {
        origin->epoch = epoch;
    }
    pthread_rwlock_unlock(&origin->lock);
}

int hte_origin_enter(struct hte_origin *origin, uint64_t epoch)
{
    pthread_rwlock_rdlock(&origin->lock);
    if (epoch > origin->epoch) {
        pthread_rwlock_unlock(&origin->lock);
        advance(origin, epoch);
        pthread_rwlock_rdlock(&origin->lock);
    }
    if (epoch == origin->epoch) {
        return HTE_OK;
    }
    pthread_rwlock_unlock(&origin->lock);
    return HTE_ERR_CANCELED;
}

void hte_origin_leave(struct hte_origin *origin)
{
    pthread_rwlock_unlock(&origin->lock);
}
