/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_WATCH_H_
#define UCT_HA_WATCH_H_

/*
 * Asynchronous events of the rails, delivered to every interface that uses
 * them; those of a queue pair only to the interface that has made it. A rail is one per process and a file descriptor
 * can have only one handler, hence this fan-out. Callbacks run on UCX's async thread, or on the rail's job thread that
 * has looked at its port.
 */

#include "abi/uct_ha_abi.h"
#include "verbs/ha_rail.h"

/* `kept`: the port still has the address that it had before the event, be it another one's now that is
 * chosen. */
typedef void (*uct_ha_watch_cb)(void *arg, int slot, const struct ha_rail_event *event, int kept);

struct uct_ha_watch {
    struct uct_ha_watch *next;
    struct ha_rail      *rail;
    const void          *owner; /* of its queue pairs: their events are for it alone. Set by the caller */
    uct_ha_watch_cb      cb;
    void                *arg;
    int                  slot; /* handed back to the callback */
};

/* Fill `watch` (owned by the caller until removed) and start delivery. */
ucs_status_t uct_ha_watch_add(struct uct_ha_watch *watch, struct ha_rail *rail, unsigned rail_no, uct_ha_watch_cb cb,
                              void *arg, int slot);

/* After this returns the callback does not run any more. The caller must not
 * hold a lock that the callback takes. */
void uct_ha_watch_remove(struct uct_ha_watch *watch);

/* Is a device being removed without a word? Once a second, whoever asks; from UCX's async thread, under no lock. */
void uct_ha_watch_check(uint64_t now);

/* Rails watched in this process, by state. */
void uct_ha_watch_count(unsigned *up, unsigned *down);

#endif
