/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TELL_H_
#define UCT_HA_TELL_H_

struct uct_ha_conn;

/* Say in the log why an endpoint ends with an error (enum ha_fail), the state of its
 * rails, and what to look at. At most one line in a while; the control lock is held. */
void uct_ha_tell_failure(const struct uct_ha_conn *conn, unsigned why);

#endif
