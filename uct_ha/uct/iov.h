/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IOV_H_
#define UCT_HA_IOV_H_

/* Gather lists of the user. */

#include "pair/txlog.h"

/* Are there at most `max` pieces, all of registered memory? Asked before an
 * operation is begun. */
int uct_ha_iov_is_valid(const uct_iov_t *iov, size_t iovcnt, unsigned max);

/* Pieces of a valid gather list, from `first` on; returns the count used. `rail_no`: the rails
 * of the slots. */
unsigned uct_ha_iov_fill(struct uct_ha_txop *txop, unsigned first, const uct_iov_t *iov, size_t iovcnt,
                         const unsigned *rail_no);

#endif
