/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_depths.h"

#include <errno.h>

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The least power of two that is enough, or else the largest that fits; 2^31 at most. */
static uint32_t power_of_two(uint32_t enough, uint32_t limit)
{
    uint32_t p = 1;

    while (p < enough && p <= limit / 2) {
        p *= 2;
    }
    return p;
}

int ha_depths(uint32_t tx_queue_len, uint32_t rx_queue_len, uint32_t rx_queue_init, uint32_t max_qp_wr,
              struct ha_depths *depths)
{
    if (max_qp_wr < HA_DEPTHS_WR_MIN) {
        return -ENOSPC;
    }
    depths->sends   = power_of_two(clamp(tx_queue_len, HA_DEPTHS_SENDS_MIN, UINT32_MAX), max_qp_wr);
    depths->window  = clamp(rx_queue_len, HA_DEPTHS_RECVS_MIN, max_qp_wr - HA_DEPTHS_RESERVE);
    depths->credits = clamp(rx_queue_init, HA_DEPTHS_RECVS_MIN, depths->window);
    depths->credits = power_of_two(depths->credits, depths->credits);
    depths->recvs   = depths->window + HA_DEPTHS_RESERVE;
    return 0;
}
