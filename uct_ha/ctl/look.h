/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LOOK_H_
#define UCT_HA_LOOK_H_

/*
 * Packets may arrive although no message is complete: the device knows, by the packet
 * number that a queue pair expects next. Asked only of a rail that may soon be suspected,
 * on a job thread, for a device that hangs does not answer.
 */

struct uct_ha_peer;

/* Compare with what the look before found, if that was not long ago: `flows` of the rail
 * becomes 1 when packets have arrived since. The control lock is held. */
void uct_ha_look_begin_locked(struct uct_ha_peer *peer, int slot);

#endif
