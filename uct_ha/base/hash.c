/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST 64 /* chains */

static struct uct_ha_hash_link **place(const struct uct_ha_hash *hash, uint64_t key)
{
    return &hash->chains[(key ^ key >> 32) & hash->mask];
}

static void put(struct uct_ha_hash *hash, struct uct_ha_hash_link *link)
{
    struct uct_ha_hash_link **chain = place(hash, link->key);

    link->next = *chain;
    *chain     = link;
}

/* Without memory the chains grow longer: slower, not wrong. */
static void grow(struct uct_ha_hash *hash)
{
    struct uct_ha_hash       old = *hash;
    struct uct_ha_hash_link *link;

    hash->mask   = old.chains == NULL ? FIRST - 1 : 2 * old.mask + 1;
    hash->chains = calloc((size_t)hash->mask + 1, sizeof(*hash->chains));
    if (hash->chains == NULL) {
        *hash = old;
        return;
    }
    for (uint32_t i = 0; old.chains != NULL && i <= old.mask; i++) {
        while ((link = old.chains[i]) != NULL) {
            old.chains[i] = link->next;
            put(hash, link);
        }
    }
    free(old.chains);
}

int uct_ha_hash_add(struct uct_ha_hash *hash, struct uct_ha_hash_link *link, uint64_t key)
{
    if (hash->chains == NULL || hash->count > hash->mask) {
        grow(hash);
    }
    if (hash->chains == NULL) {
        return -ENOMEM;
    }
    link->key = key;
    put(hash, link);
    hash->count++;
    return 0;
}

void uct_ha_hash_remove(struct uct_ha_hash *hash, struct uct_ha_hash_link *link)
{
    struct uct_ha_hash_link **at;

    for (at = place(hash, link->key); *at != link; at = &(*at)->next) {
    }
    *at = link->next;
    hash->count--;
}

void uct_ha_hash_cleanup(struct uct_ha_hash *hash)
{
    free(hash->chains);
    *hash = (struct uct_ha_hash){0};
}
