/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IOV_H_
#define UCT_HA_IOV_H_

/* Gather lists of the user. */

#include "pair/txlog.h"
#include "uct/md_mem.h"

int      uct_ha_iov_are_valid(const uct_iov_t *iov, size_t iovcnt, unsigned max);
unsigned uct_ha_iov_fill_all(struct uct_ha_txop *txop, unsigned first, const uct_iov_t *iov, size_t iovcnt);

/* Are there at most `max` pieces, all of registered memory? Asked before an
 * operation is begun. */
static inline int uct_ha_iov_is_valid(const uct_iov_t *iov, size_t iovcnt, unsigned max)
{
    if (ucs_likely(iovcnt == 1 && iov->memh != UCT_MEM_HANDLE_NULL)) {
        return iovcnt <= max;
    }
    return uct_ha_iov_are_valid(iov, iovcnt, max);
}

/* Pieces of a valid gather list, of `length` bytes, from `first` on; returns the count used. */
static inline unsigned uct_ha_iov_fill(struct uct_ha_txop *txop, unsigned first, const uct_iov_t *iov, size_t iovcnt,
                                       size_t length)
{
    if (ucs_likely(iovcnt == 1 && length != 0)) {
        uct_ha_piece_set(&txop->more->piece[first], iov->buffer, length, uct_ha_mem(iov->memh));
        return first + 1;
    }
    return uct_ha_iov_fill_all(txop, first, iov, iovcnt);
}

#endif
