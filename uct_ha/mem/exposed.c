/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/exposed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256 /* a power of two; keys of a device are dense */

struct entry {
    struct entry *next;
    unsigned      rail_no;
    uint32_t      key;
    uintptr_t     start;
    size_t        length;
};

static struct entry   *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Devices number their keys in steps of 1 or 256. */
static struct entry **bucket_of(uint32_t key)
{
    return &buckets[(key ^ key >> 8 ^ key >> 16) & (BUCKETS - 1)];
}

static struct entry **find(unsigned rail_no, uint32_t key)
{
    struct entry **link = bucket_of(key);

    while (*link != NULL && ((*link)->key != key || (*link)->rail_no != rail_no)) {
        link = &(*link)->next;
    }
    return link;
}

int uct_ha_exposed_add(unsigned rail_no, uint32_t key, const void *address, size_t length)
{
    struct entry *entry = malloc(sizeof(*entry));

    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->rail_no = rail_no;
    entry->key     = key;
    entry->start   = (uintptr_t)address;
    entry->length  = length;
    pthread_mutex_lock(&lock);
    entry->next     = *bucket_of(key);
    *bucket_of(key) = entry;
    pthread_mutex_unlock(&lock);
    return 0;
}

void uct_ha_exposed_remove(unsigned rail_no, uint32_t key)
{
    struct entry **link, *entry;

    pthread_mutex_lock(&lock);
    link  = find(rail_no, key);
    entry = *link;
    if (entry != NULL) {
        *link = entry->next;
    }
    pthread_mutex_unlock(&lock);
    free(entry);
}

int uct_ha_exposed_covers(unsigned rail_no, uint32_t key, uint64_t address, size_t size)
{
    const struct entry *entry;
    int                 covers;

    pthread_mutex_lock(&lock);
    entry = *find(rail_no, key);
    /* no sum that could wrap */
    covers = entry != NULL && address >= entry->start && size <= entry->length &&
             address - entry->start <= entry->length - size;
    pthread_mutex_unlock(&lock);
    return covers;
}
