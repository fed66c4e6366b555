/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TELL_H_
#define UCT_HA_TELL_H_

#include "uct/addr.h"

struct uct_ha_conn;
struct uct_ha_iface;

/* Say in the log why an endpoint ends with an error (enum ha_fail), the state of its
 * rails, and what to look at. At most one line in a while; the control lock is held. */
void uct_ha_tell_failure(const struct uct_ha_conn *conn, unsigned why);

/* Say once, on the level "diag", why our first rail and that one of a peer cannot talk and
 * what would help. Where there are two fabrics that is so by design for every second pair;
 * where UCX then calls the destination unreachable it is the reason. Any thread. */
void uct_ha_tell_unreachable(const struct uct_ha_iface *iface, const struct uct_ha_rail_where *own,
                             const struct uct_ha_rail_where *peer, enum ha_match match);

#endif
