/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_HASH_H_
#define UCT_HA_HASH_H_

/*
 * Things found by a number that was drawn at random, however many there are: chains, whose table doubles
 * with their number. A thing brings its own link. Not safe by itself: the owner has a lock.
 */

#include <stdint.h>

struct uct_ha_hash_link {
    struct uct_ha_hash_link *next;
    uint64_t                 key;
};

struct uct_ha_hash { /* all zero: empty */
    struct uct_ha_hash_link **chains;
    uint32_t                  mask, count;
};

/* 0 or -ENOMEM. */
int  uct_ha_hash_add(struct uct_ha_hash *hash, struct uct_ha_hash_link *link, uint64_t key);
void uct_ha_hash_remove(struct uct_ha_hash *hash, struct uct_ha_hash_link *link);
void uct_ha_hash_cleanup(struct uct_ha_hash *hash); /* what is in it is the owner's */

/* The first of its chain; those with this key are to be picked out. */
static inline struct uct_ha_hash_link *uct_ha_hash_chain(const struct uct_ha_hash *hash, uint64_t key)
{
    return hash->chains == 0 ? 0 : hash->chains[(key ^ key >> 32) & hash->mask];
}

#endif
