/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_DEPTHS_H_
#define HA_DEPTHS_H_

/* How deep the queues of a connection are: what the user wants, as far as the device
 * goes. Pure; any values. */

#include <stdint.h>

#define HA_DEPTHS_SENDS_MIN 16u /* as TX_QUEUE_LEN, RX_QUEUE_INIT allow */
#define HA_DEPTHS_RECVS_MIN 4u
#define HA_DEPTHS_RESERVE   4u                  /* receives for messages that carry only credits */
#define HA_DEPTHS_WR_MIN    HA_DEPTHS_SENDS_MIN /* no queue pair may be shallower */

struct ha_depths {
    uint32_t sends;   /* operations under way: a power of two */
    uint32_t credits; /* messages that the peer may send ahead, of a new connection (a power of two)... */
    uint32_t window;  /* ... and at most, of a busy one */
    uint32_t recvs;   /* the receive queue: the window and the reserve */
};

/* `max_qp_wr`: of the least of the devices. 0, or -ENOSPC when that is below
 * HA_DEPTHS_WR_MIN. */
int ha_depths(uint32_t tx_queue_len, uint32_t rx_queue_len, uint32_t rx_queue_init, uint32_t max_qp_wr,
              struct ha_depths *depths);

#endif
