/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_COUNTERS_H_
#define UCT_HA_COUNTERS_H_

/*
 * Every counter of struct uct_ha_stats, in its order: field, kind, how many, name for Prometheus, what it is.
 * Whoever shows counters makes his list of this one: UCX's virtual file system, the statistics file, the
 * MPI_T variables of the Open MPI component, docs/counters.md.
 *
 *   TOTAL      only grows; LEVEL: the present state
 *   TOTAL_NS, LEVEL_NS    the same in nanoseconds; Prometheus gets seconds
 *   HIST       UCT_HA_STATS_SETUP_BINS durations: [0] below 1 ms, [i] from 2^(i-1) to below 2^i ms, the last or longer
 */

#define UCT_HA_COUNTERS(_X)                                                                                           \
    _X(failovers, TOTAL, 1, "failovers_total", "endpoint pairs that moved to another rail")                           \
    _X(replayed, TOTAL, 1, "resent_total", "operations posted again after a failover")                                \
    _X(retired, TOTAL, 1, "confirmed_total", "operations that the peer proved executed: not sent again")              \
    _X(false_alarms, TOTAL, 1, "false_alarms_total", "lanes fenced on suspicion whose rail was well")                 \
    _X(ep_errors, TOTAL, 1, "endpoint_errors_total", "endpoints that ended with an error")                            \
    _X(outage_ns_total, TOTAL_NS, 1, "move_seconds_total",                                                            \
       "from the loss of a lane, once noticed, until work resumed")                                                   \
    _X(outage_ns_last, LEVEL_NS, 1, "last_move_seconds", "... of the latest failover")                                \
    _X(rails_up, LEVEL, 1, "rails_up", "rails open in this process whose port is ACTIVE")                             \
    _X(rails_down, LEVEL, 1, "rails_down", "... whose port is not")                                                   \
    _X(ctl_tx, TOTAL, 1, "control_sent_total", "control packets sent")                                                \
    _X(ctl_rx, TOTAL, 1, "control_received_total", "control packets received and accepted")                           \
    _X(ctl_dropped, TOTAL, 1, "control_dropped_total", "stray, stale, short or forged control packets")               \
    _X(heartbeats_missed, TOTAL, 1, "heartbeats_missed_total", "probes without an answer in time")                    \
    _X(pairs, LEVEL, 1, "pairs", "endpoint pairs that can send")                                                      \
    _X(standbys, LEVEL, 1, "standbys", "... that have a second lane ready on both sides")                             \
    _X(connecting, LEVEL, 1, "connecting", "pairs whose set-up this process began and which cannot send yet")         \
    _X(accepting, LEVEL, 1, "accepting", "... whose set-up a peer began")                                             \
    _X(connects, TOTAL, 1, "connects_total", "set-ups begun here that succeeded")                                     \
    _X(accepts, TOTAL, 1, "accepts_total", "set-ups begun by a peer that succeeded")                                  \
    _X(connect_failures, TOTAL, 1, "connect_failures_total",                                                          \
       "set-ups begun here that failed before anything was sent")                                                     \
    _X(accept_failures, TOTAL, 1, "accept_failures_total", "... begun by a peer")                                     \
    _X(connect_ns_total, TOTAL_NS, 1, "connect_seconds_total",                                                        \
       "sum over connects: endpoint created until it can send")                                                       \
    _X(connect_ns_max, LEVEL_NS, 1, "connect_seconds_max", "the longest of them")                                     \
    _X(accept_ns_total, TOTAL_NS, 1, "accept_seconds_total", "sum over accepts: first packet seen until it can send") \
    _X(accept_ns_max, LEVEL_NS, 1, "accept_seconds_max", "the longest of them")                                       \
    _X(setup_hist, HIST, UCT_HA_STATS_SETUP_BINS, "setup_seconds", "connects and accepts by duration")                \
    _X(failbacks, TOTAL, 1, "failbacks_total", "of the failovers: back to the rail that UCX chose")                   \
    _X(late_mrs, TOTAL, 1, "late_registrations_total", "memory registered on a rail because a failover led there")    \
    _X(rx_bytes, LEVEL, 1, "receive_buffer_bytes", "receive buffers of all lanes")                                    \
    _X(bounced, TOTAL, 1, "bounced_total", "operations sent again from a copy: their memory is not registered there") \
    _X(proofs_psn, TOTAL, 1, "proofs_psn_total", "own lanes proven to the peer by packet number")                     \
    _X(proofs_count, TOTAL, 1, "proofs_count_total", "... by count of receives")                                      \
    _X(proofs_ledger, TOTAL, 1, "proofs_ledger_total", "... by ledger")                                               \
    _X(in_doubt, TOTAL, 1, "in_doubt_total", "operations ended with an error: executed or not, nobody can tell")      \
    _X(paced, TOTAL, 1, "paced_total", "times that a new lane had to wait its turn")                                  \
    _X(ctl_malformed, TOTAL, 1, "control_malformed_total", "of control_dropped: length, version or fields are wrong") \
    _X(ctl_stray, TOTAL, 1, "control_stray_total", "... for, or from, an instance that is not known here")            \
    _X(ctl_unfit, TOTAL, 1, "control_unfit_total", "... records that contradict the pair")                            \
    _X(ctl_stale, TOTAL, 1, "control_stale_total", "... packets that came before, records of pairs that are gone")    \
    _X(proofs_none, TOTAL, 1, "proofs_none_total", "own lanes of which the device proved nothing: messages counted")  \
    _X(silent_ns_total, TOTAL_NS, 1, "silent_seconds_total",                                                          \
       "sum over failovers: silence before the loss was noticed")                                                     \
    _X(silent_hist, HIST, UCT_HA_STATS_SETUP_BINS, "silent_seconds", "failovers by the silence before them")          \
    _X(move_hist, HIST, UCT_HA_STATS_SETUP_BINS, "move_seconds", "failovers by duration of the move")                 \
    _X(unprotected, LEVEL, 1, "unprotected", "pairs that have been without a standby for UCX_HA_RC_STANDBY_WARN")     \
    _X(probes_urgent, TOTAL, 1, "probes_urgent_total", "probes of peers with work under way and no sign of life")     \
    _X(probes_doubt, TOTAL, 1, "probes_doubt_total", "... of peers that have not answered the latest one")            \
    _X(probes_turn, TOTAL, 1, "probes_turn_total", "... of all others, in turn")                                      \
    _X(probes_held, TOTAL, 1, "probes_held_total", "times that a probe had to wait for the budget")                   \
    _X(ctl_forged, TOTAL, 1, "control_forged_total", "of control_dropped: not sealed by one that has our address")    \
    _X(rx_shared_low, TOTAL, 1, "shared_receives_low_total",                                                          \
       "times that a shared receive queue had few left and was made larger")                                          \
    _X(rx_lost, TOTAL, 1, "receives_lost_total", "receives that a dead queue pair took along, replaced since")        \
    _X(ctl_tx_state, TOTAL, 1, "control_sent_state_total", "of control_sent: the state of connections")               \
    _X(ctl_tx_ping, TOTAL, 1, "control_sent_ping_total", "... questions whether the peer is there")                   \
    _X(ctl_tx_pong, TOTAL, 1, "control_sent_pong_total", "... answers to them")                                       \
    _X(ctl_tx_bye, TOTAL, 1, "control_sent_bye_total", "... that this process leaves")                                \
    _X(ctl_held, TOTAL, 1, "control_held_total", "times that a state was not sent again yet, because so many were")   \
    _X(visits, TOTAL, 1, "visits_total", "times that packets and timers looked at a connection under the lock")       \
    _X(cold, LEVEL, 1, "cold_pairs",                                                                                  \
       "of pairs: those beyond UCX_HA_RC_STANDBYS, whose second lane is built when needed")                           \
    _X(stalled, LEVEL, 1, "stalled_peers", "peers that are silent and waited for: stopped, or without a processor")

#endif
