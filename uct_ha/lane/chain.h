/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CHAIN_H_
#define UCT_HA_CHAIN_H_

/*
 * Receives that have been consumed, to be posted together: in the order in which they were. So messages come to the
 * same buffers in the same order, for ever, one behind the other as they were laid out, and the processor, which looks
 * at each of them, finds that out. The last one has no end until they are taken. Progress.
 */

#include "verbs/ha_qp.h"

#include <stddef.h>

struct uct_ha_chain {
    struct ha_recv  *first; /* NULL: none */
    struct ha_recv **end;   /* where the next one is entered */
};

static inline void uct_ha_chain_init(struct uct_ha_chain *chain)
{
    chain->first = NULL;
    chain->end   = &chain->first;
}

static inline void uct_ha_chain_add(struct uct_ha_chain *chain, struct ha_recv *recv)
{
    *chain->end = recv;
    chain->end  = &recv->next;
}

/* All of them, or NULL; there are none then. */
static inline struct ha_recv *uct_ha_chain_take(struct uct_ha_chain *chain)
{
    struct ha_recv *first;

    *chain->end = NULL;
    first       = chain->first;
    uct_ha_chain_init(chain);
    return first;
}

/* Before the others: a list that has an end. */
static inline void uct_ha_chain_put_back(struct uct_ha_chain *chain, struct ha_recv *list)
{
    struct ha_recv *last = list;

    while (last->next != NULL) {
        last = last->next;
    }
    if (chain->first == NULL) {
        chain->end = &last->next;
    }
    last->next   = chain->first;
    chain->first = list;
}

#endif
