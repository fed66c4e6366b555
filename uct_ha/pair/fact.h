/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FACT_H_
#define UCT_HA_FACT_H_

/*
 * Facts as others see them, made into events for the core of each connection that they
 * concern. Those of progress take the lock themselves, and what follows is sent at once.
 */

#include "core/ha_pair.h"

struct uct_ha_conn;
struct uct_ha_lane;
struct uct_ha_pairs;
struct uct_ha_peer;

/* ---- progress; the lock is not held ------------------------------------------------- */

void uct_ha_fact(struct uct_ha_conn *conn, const struct ha_event *event);

/* A lane's queue pair reported its end. */
void uct_ha_fact_lane_down(struct uct_ha_lane *lane, enum ha_cause cause);

/* A receive came back flushed: nothing executes on this lane any more. */
void uct_ha_fact_flushed(struct uct_ha_lane *lane);

/* The drain marker came back: everything before it has come back. */
void uct_ha_fact_drained(struct uct_ha_lane *lane);

/* A card failed on this lane. Is its rail well, as far as is known? */
int uct_ha_fact_rail_is_well(struct uct_ha_lane *lane);

/* Has the peer taken its leave in order? */
int uct_ha_fact_has_left(const struct uct_ha_conn *conn);

/* ---- any thread, with the lock ------------------------------------------------------ */

/* A connection begins: which rails can be used. */
void uct_ha_fact_start_locked(struct uct_ha_conn *conn);

/* The barrier behind a fence has been passed: read the proof. */
void uct_ha_fact_settle_locked(struct uct_ha_lane *lane, enum ha_context ctx);

/* A device has stopped a lane, or refuses to; for lanes->stopped. */
void uct_ha_fact_stopped_locked(struct uct_ha_lane *lane);

/* ... has said how far it came; for lanes->answered. */
void uct_ha_fact_answered_locked(struct uct_ha_lane *lane);

/* A queue pair is built, or was refused: progress takes it up. For lanes->built. */
void uct_ha_fact_built_locked(struct uct_ha_lane *lane);

/* Which rails towards this peer are good for new lanes. */
void uct_ha_fact_usable_locked(struct uct_ha_peer *peer);

/* The peer is not there any more (enum ha_fail): what still waits for it, waits in vain. */
void uct_ha_fact_peer_lost_locked(struct uct_ha_peer *peer, unsigned why);

#endif
