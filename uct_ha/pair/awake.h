/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_AWAKE_H_
#define UCT_HA_AWAKE_H_

/*
 * Which connections have work under way or something to settle, and which peers something that is due: those the timer
 * looks at each time, and no others. Progress puts a connection there when it posts and the connection sleeps: that
 * is one flag on the fast path, and no lock. The timer lets it sleep again when it has found nothing under way twice:
 * what progress posts while it still sees the flag is seen at the second look. A connection and a peer bring a part of
 * this with them.
 */

#include "abi/uct_ha_abi.h"
#include "pair/txlog.h"

#include <stdint.h>

struct uct_ha_busy { /* of a peer */
    ucs_list_link_t link;
    unsigned        awake; /* its connections that are */
    uint8_t         busy;
};

struct uct_ha_awake { /* of a connection */
    struct uct_ha_wakes *wakes;
    struct uct_ha_busy  *peer;
    struct uct_ha_txlog *tx;
    struct uct_ha_awake *woken_next;
    ucs_list_link_t      link;
    uint8_t              woken; /* atomic: it is in the stack */
    uint8_t              listed, dozing;
    uint8_t              fresh; /* it has slept since the latest look */
};

struct uct_ha_wakes { /* of an interface */
    ucs_list_link_t      awake, busy;
    struct uct_ha_awake *woken; /* atomic: a stack that progress fills */
};

void uct_ha_wakes_open(struct uct_ha_wakes *wakes);

/* Progress has posted, and found tx->awake unset. No lock. */
void uct_ha_awake_posted(struct uct_ha_awake *awake);

/* The control lock is held, from here on. A connection begins, awake, and ends: in progress. */
void uct_ha_awake_begin(struct uct_ha_awake *awake, struct uct_ha_wakes *wakes, struct uct_ha_busy *peer,
                        struct uct_ha_txlog *tx);
void uct_ha_awake_end(struct uct_ha_awake *awake);

/* Those that progress has put there since. */
void uct_ha_awake_collect(struct uct_ha_wakes *wakes);

/* Something about it is to be settled. */
void uct_ha_awake_now(struct uct_ha_awake *awake);

/* The timer has looked at it. May it sleep? `due`: it wants the timer then, UINT64_MAX: not at all. */
void uct_ha_awake_looked(struct uct_ha_awake *awake, uint64_t due);

/* Something about the peer is due, or in doubt; nothing any more. */
void uct_ha_busy_begin(struct uct_ha_busy *peer, struct uct_ha_wakes *wakes);
void uct_ha_busy_end(struct uct_ha_busy *peer);

#endif
