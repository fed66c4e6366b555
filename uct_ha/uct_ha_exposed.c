/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_exposed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256 /* a power of two; keys of a device are dense */

struct entry {
    struct entry *next;
    uint32_t      key;
    uintptr_t     start;
    size_t        length;
};

struct uct_ha_exposed {
    pthread_mutex_t lock;
    struct entry   *bucket[BUCKETS];
};

/* Devices number their keys in steps of 1 or 256. */
static unsigned bucket_of(uint32_t key)
{
    return (key ^ key >> 8 ^ key >> 16) & (BUCKETS - 1);
}

struct uct_ha_exposed *uct_ha_exposed_create(void)
{
    struct uct_ha_exposed *exposed = calloc(1, sizeof(*exposed));

    if (exposed != NULL) {
        pthread_mutex_init(&exposed->lock, NULL);
    }
    return exposed;
}

void uct_ha_exposed_destroy(struct uct_ha_exposed *exposed)
{
    struct entry *entry;

    for (unsigned i = 0; i < BUCKETS; i++) {
        while ((entry = exposed->bucket[i]) != NULL) {
            exposed->bucket[i] = entry->next;
            free(entry);
        }
    }
    pthread_mutex_destroy(&exposed->lock);
    free(exposed);
}

int uct_ha_exposed_add(struct uct_ha_exposed *exposed, uint32_t key, const void *address,
                       size_t length)
{
    struct entry *entry = malloc(sizeof(*entry));

    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->key    = key;
    entry->start  = (uintptr_t)address;
    entry->length = length;
    pthread_mutex_lock(&exposed->lock);
    entry->next = exposed->bucket[bucket_of(key)];
    exposed->bucket[bucket_of(key)] = entry;
    pthread_mutex_unlock(&exposed->lock);
    return 0;
}

void uct_ha_exposed_remove(struct uct_ha_exposed *exposed, uint32_t key)
{
    struct entry **link, *entry;

    pthread_mutex_lock(&exposed->lock);
    for (link = &exposed->bucket[bucket_of(key)]; (entry = *link) != NULL; link = &entry->next) {
        if (entry->key == key) {
            *link = entry->next;
            free(entry);
            break;
        }
    }
    pthread_mutex_unlock(&exposed->lock);
}

int uct_ha_exposed_covers(struct uct_ha_exposed *exposed, uint32_t key, uint64_t address,
                          size_t size)
{
    const struct entry *entry;
    int                 covers = 0;

    pthread_mutex_lock(&exposed->lock);
    for (entry = exposed->bucket[bucket_of(key)]; entry != NULL; entry = entry->next) {
        if (entry->key == key) {
            /* no sum that could wrap */
            covers = address >= entry->start && size <= entry->length &&
                     address - entry->start <= entry->length - size;
            break;
        }
    }
    pthread_mutex_unlock(&exposed->lock);
    return covers;
}
