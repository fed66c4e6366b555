/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_DESC_H_
#define UCT_HA_DESC_H_

/* Buffers of an interface, registered on both rails in chunks: what is sent from
 * copies, and what messages are received in. Owned by progress: no lock. */

#include "uct/iface.h"

/* A buffer of config.seg_size bytes, or NULL when memory is short. */
struct uct_ha_desc *uct_ha_desc_alloc_slow(struct uct_ha_iface *iface);

static inline struct uct_ha_desc *uct_ha_desc_alloc(struct uct_ha_iface *iface)
{
    struct uct_ha_desc *desc = iface->free_desc;

    if (ucs_unlikely(desc == NULL)) {
        return uct_ha_desc_alloc_slow(iface);
    }
    iface->free_desc = desc->next;
    return desc;
}

static inline void uct_ha_desc_free(struct uct_ha_iface *iface, struct uct_ha_desc *desc)
{
    desc->next       = iface->free_desc;
    iface->free_desc = desc;
}

/* The operation sends `length` bytes of the buffer, or receives them there, and
 * holds it until its end. */
static inline void uct_ha_desc_use(const struct uct_ha_iface *iface, struct uct_ha_txop *txop,
                                   struct uct_ha_desc *desc, size_t length)
{
    txop->desc   = desc;
    txop->pieces = 1;
    uct_ha_piece_set(&txop->piece[0], desc->data, length, desc->mem, iface->rail_no);
}

/* From another thread than progress; uct_ha_desc_alloc_slow() finds it. */
void uct_ha_desc_return(struct uct_ha_iface *iface, struct uct_ha_desc *desc);

void uct_ha_desc_cleanup(struct uct_ha_iface *iface);

#endif
