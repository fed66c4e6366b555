/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/iov.h"

int uct_ha_iov_are_valid(const uct_iov_t *iov, size_t iovcnt, unsigned max)
{
    if (iovcnt > max) {
        return 0;
    }
    for (size_t i = 0; i < iovcnt; i++) {
        if (iov[i].memh == UCT_MEM_HANDLE_NULL && iov[i].length * iov[i].count != 0) {
            return 0;
        }
    }
    return 1;
}

unsigned uct_ha_iov_fill_all(struct uct_ha_txop *txop, unsigned first, const uct_iov_t *iov, size_t iovcnt)
{
    unsigned n = first;

    for (size_t i = 0; i < iovcnt; i++) {
        size_t length = iov[i].length * iov[i].count;

        if (length == 0) {
            continue;
        }
        uct_ha_piece_set(&txop->more->piece[n++], iov[i].buffer, length, uct_ha_mem(iov[i].memh));
    }
    return n;
}
