/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PEER_H_
#define UCT_HA_PEER_H_

/*
 * Another instance (interface) that we share connections with: how to reach
 * its control ports and how each rail towards it is doing. Heartbeats are per
 * peer and rail, not per endpoint. All under the control lock.
 */

#include "core/ha_beat.h"
#include "core/ha_damp.h"
#include "core/ha_lossy.h"
#include "core/ha_packet.h"
#include "core/ha_slow.h"
#include "pair/pairs.h"
#include "verbs/ha_ud.h"

struct uct_ha_tcp_link; /* of a carrier above */
struct uct_ha_way;      /* ctl/path.h */

struct uct_ha_peer_rail {
    struct uct_ha_rail_where where;
    uint32_t                 ud_qpn;
    struct uct_ha_way       *way;      /* to its control port; NULL before it is found */
    uint8_t                  known;    /* an address is known and can match ours */
    uint8_t                  ah_busy;  /* a job resolves it */
    uint32_t                 ah_job;   /* ... this one; an older one may still wait */
    unsigned                 ah_fails; /* so many in vain, in a row */
    int                      ah_error; /* errno of the latest one, 0 = it worked */
    uint8_t                  used;     /* a packet of the peer has come by it */
    uint8_t                  peer_up;  /* the peer says that its port is up */
    uint8_t                  bad;      /* silent: not used for new lanes until it answers */
    uint8_t                  looking;  /* a job asks whether packets arrive */
    uint8_t                  flows;    /* ... they did, at the last look */
    uint8_t                  waiting;  /* a ping is out */
    uint8_t                  counted;  /* ... and is one of `missed` */
    uint8_t                  lives;    /* data went through since the round before */
    uint32_t                 moved;    /* ... so many messages and operations */
    unsigned                 missed;   /* pings in a row without an answer */
    unsigned                 answered; /* ... and with one */
    uint64_t                 bad_at;   /* suspected then */
    uint32_t                 nonce;    /* of the newest ping */
    uint32_t                 heard;    /* of the newest ping that was answered */
    uint32_t                 addr_seq; /* raised when the address changes */
    uint64_t                 retry_at; /* next try to resolve it */
    uint64_t                 first_at; /* once heard, it goes before others looked for in vain, but not before then */
    uint64_t                 fresh_at; /* with no answer until then the path is resolved anew */
    uint8_t                  renewed;  /* it was, and no question has been asked since */
    uint64_t                 last_rx;
    struct ha_damp           damp;       /* cool-down, grows when it flaps */
    struct ha_slow           slow;       /* round trips of its pings */
    struct ha_beat           beat;       /* the silences between them */
    struct ha_lossy          lossy;      /* ... and those without an answer */
    uint8_t                  lossy_left; /* work has left it for that, and does not come back yet */
    uint8_t                  slow_left;  /* ... because it is slow */
    uint64_t                 ping_at;
};

#define UCT_HA_QUESTIONS 3 /* one may be lost */
#define UCT_HA_RETELLS   3 /* so may one of these */

struct uct_ha_stall { /* is its process still there, though it is silent: ctl/stall.h */
    uint64_t called_at, answered_at;
    uint8_t  stalled;
};

struct uct_ha_peer {
    struct uct_ha_pairs    *pairs;
    ucs_list_link_t         list;      /* pairs->peers */
    ucs_list_link_t         conns;     /* uct_ha_conn::peer_link */
    ucs_list_link_t         turn_link; /* pairs->turns */
    struct uct_ha_busy      busy;
    uint8_t                 held;  /* the budget has kept this round's probe back */
    uint32_t                round; /* asked in that one */
    struct uct_ha_hash_link by_cookie;
    struct uct_ha_due_peer  due;
    uint64_t                cookie;
    struct ha_secret        secret; /* if its address was here */
    uint8_t                 secret_known;
    uint64_t                told;   /* number of our latest packet to it */
    uint64_t                newest; /* the highest of its own, by any carrier */
    struct ha_window        heard[HA_CARRIERS];
    unsigned                slots;
    unsigned                credits;
    unsigned                caps; /* HA_CAP_*, constant while it has connections */
    struct ha_opts          opts; /* connect options, with its first packet; then constant */
    uint8_t                 opts_known;
    uint8_t                 refused;      /* they are impossible, or a standby is: no connection to it */
    uint8_t                 standby_open; /* connected to before its second rail was known: ctl/standby.h */
    uint32_t                next_sn;
    uint32_t                nonce;  /* of the last STATE sent */
    uint32_t                wanted; /* of the last STATE that wanted an answer */
    uint64_t                born;
    uint64_t                last_rx;
    struct uct_ha_stall     stall;
    uint64_t                bye_at;    /* it said so last then */
    uint8_t                 bye_rx;    /* it leaves and owes us nothing */
    uint8_t                 scarce;    /* a message may have to wait there for a receive, it says */
    uint8_t                 lost;      /* every connection to it has failed: silent for too long */
    uint8_t                 retells;   /* so often it is told how things are, when it is heard: ctl/msg.c */
    unsigned                asked;     /* questions since it was heard, */
    uint64_t                asked_at;  /* the first one then */
    uint64_t                last_call; /* nothing was heard for DEAD_PEER, and it was asked once more */
    uint64_t                told_at;   /* an error line about it was written then, 0 = never */
    uint8_t                 all_dead;  /* while leaving: no connection to it works */
    struct uct_ha_tcp_addr  tcp_addr;  /* port 0 = it has no TCP carrier */
    struct uct_ha_tcp_link *tcp_link;  /* NULL before it is needed */
    struct uct_ha_peer_rail rail[HA_SLOTS];
};

struct uct_ha_peer *uct_ha_peer_find(struct uct_ha_pairs *pairs, uint64_t cookie);

/* From the address that UCX brought, or from the header of a first packet. */
struct uct_ha_peer *uct_ha_peer_create(struct uct_ha_pairs *pairs, uint64_t cookie, unsigned slots, unsigned credits);

/* Its address was here: who reads that may speak to it. */
void uct_ha_peer_trust(struct uct_ha_peer *peer, const struct ha_secret *secret);

/* The highest number of a packet of this instance that is remembered, 0: none. Nothing up to there
 * is news of one that is no peer at present. */
uint64_t uct_ha_peer_heard(struct uct_ha_pairs *pairs, uint64_t cookie);

/* Is the packet with this number news? Then it is not any more. */
int uct_ha_peer_hear(struct uct_ha_peer *peer, int carrier, uint64_t number);

/* Up to this number nothing is news, whatever carries it. */
void uct_ha_peer_heard_until(struct uct_ha_peer *peer, uint64_t number);

/* No way leads to it any more. To forget it: it may live all the same, and numbers of pairs
 * are not used twice. */
void uct_ha_peer_destroy(struct uct_ha_peer *peer);
void uct_ha_peer_forget(struct uct_ha_peer *peer);

/* What connections to it are made by, from its address or the packet that asks for one.
 * Constant while there are any. */
void uct_ha_peer_offers(struct uct_ha_peer *peer, unsigned slots, unsigned credits, unsigned caps);

/* Can this rail of the peer talk to ours, as far as both are known now? */
void uct_ha_peer_judge(struct uct_ha_peer *peer, int slot);

/* The zone of the peer's rail, known from its address or said by the peer. 0 = not
 * known: nothing changes. */
void uct_ha_peer_set_zone(struct uct_ha_peer *peer, int slot, ha_zone_t zone);

/* May a new lane be built on this rail? */
int uct_ha_peer_rail_usable(const struct uct_ha_peer *peer, int slot);

/* Are pings on this rail answered at present? */
int uct_ha_peer_rail_answers(const struct uct_ha_peer *peer, int slot, uint64_t now);

/* A lane of this rail failed for this reason. Returns how long the rail is to be left
 * alone (ns), 0 when the rail is not to blame. */
uint64_t uct_ha_peer_rail_failed(struct uct_ha_peer *peer, int slot, unsigned cause, uint64_t born, uint64_t now);

/* Is it there at present, and reachable by a rail? Then what it owes us may still come. */
int uct_ha_peer_is_alive(const struct uct_ha_peer *peer, uint64_t now);

#endif
