/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ATTEND_H_
#define UCT_HA_ATTEND_H_

/* What only progress may do for a connection that has called for attention: drain and close
 * its lanes, and the pair itself when nobody needs it any more. */

struct uct_ha_conn;

/* `idle`: besides the log nothing is under way. The control lock is held. */
void uct_ha_attend_locked(struct uct_ha_conn *conn, int idle);

#endif
