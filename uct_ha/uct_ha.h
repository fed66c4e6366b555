/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_H_
#define UCT_HA_H_

/*
 * The only public header of libuct_ha.so.0. Everything else reaches the library
 * through UCX. Resolve the functions with dlsym(); the library need not be there.
 *
 * The library itself links no UCX: it loads the transport for the UCX that it
 * finds in the process. Preloaded, it sees one that comes later, too. Opened with
 * dlopen(), it must come after UCX, or with RTLD_GLOBAL.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UCT_HA_STATS_SETUP_BINS 16

/* Totals of this process since it loaded the library. Fields are only ever
 * added at the end. Counts unless a unit is given. docs/counters.md lists them. */
struct uct_ha_stats {
    uint64_t failovers;         /* an endpoint pair moved to another rail */
    uint64_t replayed;          /* operations posted again after a failover */
    uint64_t retired;           /* operations completed by the peer's proof */
    uint64_t false_alarms;      /* lanes fenced on suspicion whose rail was well */
    uint64_t ep_errors;         /* endpoints that ended with an error */
    uint64_t outage_ns_total;   /* sum over failovers: lane lost, as noticed -> work resumes */
    uint64_t outage_ns_last;    /* of the latest failover */
    uint64_t rails_up;          /* rails this process has open whose port is ACTIVE, now */
    uint64_t rails_down;        /* ... whose port is not, now */
    uint64_t ctl_tx;            /* control packets sent */
    uint64_t ctl_rx;            /* control packets received and accepted */
    uint64_t ctl_dropped;       /* stray, stale, short or forged control packets */
    uint64_t heartbeats_missed; /* pings without an answer in time */
    uint64_t pairs;             /* endpoint pairs that can send, now */
    uint64_t standbys;          /* ... that have a second lane ready on both sides, now */
    uint64_t connecting;        /* pairs whose set-up this process began and which cannot send yet, now */
    uint64_t accepting;         /* ... whose set-up a peer began, now */
    uint64_t connects;          /* set-ups begun here that succeeded */
    uint64_t accepts;           /* set-ups begun by a peer that succeeded */
    uint64_t connect_failures;  /* set-ups begun here that ended with an error before anything could be sent */
    uint64_t accept_failures;   /* ... begun by a peer */
    uint64_t connect_ns_total;  /* sum over `connects`: endpoint created -> can send */
    uint64_t connect_ns_max;    /* the longest of them */
    uint64_t accept_ns_total;   /* sum over `accepts`: first packet seen by progress -> can send */
    uint64_t accept_ns_max;     /* the longest of them */
    uint64_t setup_hist[UCT_HA_STATS_SETUP_BINS]; /* connects and accepts by duration: [0] below 1 ms,
                                                     [i] from 2^(i-1) to below 2^i ms, the last one: or longer */
    uint64_t failbacks;                           /* of the failovers: back to the rail that UCX chose */
    uint64_t late_mrs;                            /* local memory registered on a rail because a failover led there */
    uint64_t rx_bytes;                            /* receive buffers of all lanes, now */
    uint64_t bounced;         /* operations sent again from a copy: their memory is not registered there */
    uint64_t proofs_psn;      /* own lanes proven to the peer by packet number */
    uint64_t proofs_count;    /* ... by count of receives */
    uint64_t proofs_ledger;   /* ... by ledger */
    uint64_t in_doubt;        /* operations ended with an error: executed or not, or with what
                               * result, nobody can tell */
    uint64_t paced;           /* times that a new lane had to wait its turn */
    uint64_t ctl_malformed;   /* of ctl_dropped: too short or long, of another version, fields out of range */
    uint64_t ctl_stray;       /* ... meant for, or sent by, an instance that is not known here */
    uint64_t ctl_unfit;       /* ... records that contradict the pair: tag, generation, epoch */
    uint64_t ctl_stale;       /* ... packets that came once again, records of pairs that are gone */
    uint64_t proofs_none;     /* own lanes of which the device proved nothing: messages were counted, and no more */
    uint64_t silent_ns_total; /* sum over failovers: silence before the loss was noticed */
    uint64_t silent_hist[UCT_HA_STATS_SETUP_BINS]; /* failovers by that silence, bins as in setup_hist */
    uint64_t move_hist[UCT_HA_STATS_SETUP_BINS];   /* failovers by duration of the move (outage_ns_*) */
    uint64_t unprotected;   /* pairs that have been without a standby for UCX_HA_RC_STANDBY_WARN, now */
    uint64_t probes_urgent; /* probes of peers with work under way and no sign of life */
    uint64_t probes_doubt;  /* ... of peers that have not answered the latest one */
    uint64_t probes_turn;   /* ... of all others, in turn */
    uint64_t probes_held;   /* times that a probe had to wait for the budget */
    uint64_t ctl_forged;    /* of ctl_dropped: not sealed by one that has our address */
    uint64_t rx_shared_low; /* times that a shared receive queue had few left and was made larger */
    uint64_t rx_lost;       /* receives that a dead queue pair took along, replaced since */
    uint64_t ctl_tx_state;  /* of ctl_tx: the state of connections */
    uint64_t ctl_tx_ping;   /* ... questions whether the peer is there: the probes, those over TCP as well */
    uint64_t ctl_tx_pong;   /* ... answers to them */
    uint64_t ctl_tx_bye;    /* ... that this process leaves */
    uint64_t ctl_held;      /* times that a state was not sent again yet, because so many were */
    uint64_t visits;        /* times that packets and timers looked at a connection under the control lock */
    uint64_t cold;    /* of pairs: those beyond UCX_HA_RC_STANDBYS, whose second lane is built when it is needed */
    uint64_t stalled; /* peers that are silent and waited for: stopped, or without a processor */
};

/* Copy at most `size` bytes of the totals to `stats`; bytes of a newer, larger
 * structure of the caller that this library does not know are set to zero. All
 * zero while there is no transport: no UCX yet, or a refused one.
 * Returns 0, or -EINVAL when stats is NULL. Thread-safe, never blocks. */
int uct_ha_stats_get(struct uct_ha_stats *stats, size_t size);

/* One rail that this process has used. Fields are only ever added at the end. */
struct uct_ha_rail_stats {
    char     name[32];  /* "device:port" */
    uint64_t mrs;       /* memory registrations on it, now */
    uint64_t mrs_total; /* ... made since it was opened first */
    uint64_t mr_bytes;  /* registered, now; memory registered twice counts twice */
};

/* Rail `index`, from 0 on; `size` as above. 0, -ENOENT when there is none with
 * this index, -EINVAL when stats is NULL or behind the last possible index:
 * ask until then. While there is no transport every index is. Thread-safe; waits
 * for short locks only. */
int uct_ha_rail_stats_get(unsigned index, struct uct_ha_rail_stats *stats, size_t size);

/* Why this process, which has UCX, has no ha_rc although the library is loaded:
 * one line of text, valid for ever, which has been said already where somebody
 * used UCX. NULL: nothing is wrong; it is registered, or there is no UCX yet. */
const char *uct_ha_refusal(void);

#ifdef __cplusplus
}
#endif
#endif
