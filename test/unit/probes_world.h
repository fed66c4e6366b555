/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBES_WORLD_H_
#define PROBES_WORLD_H_

/* Peers of one interface, as a round of heartbeats sees them: for test_probes and test_stall. The clock is the test's,
 * the peers answer at once or not at all. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/stats.h"
#include "ctl/beat.h"
#include "ctl/fall.h"
#include "ctl/stall.h"
#include "pair/conn.h"
#include "pair/peer.h"

#define MS       1000000ull
#define SEC      1000000000ull
#define WINDOW   (1900 * MS) /* of the hardware, with the defaults */
#define MANY     4096
#define PER_HOST 64

extern struct probes_world {
    uint64_t                   now, next;
    unsigned                   count;
    uint64_t                   random;
    struct uct_ha_iface_config config;
    struct uct_ha_lanes        lanes;
    struct uct_ha_pairs        pairs;
    struct uct_ha_ctl          ctl;
    struct entry {
        struct uct_ha_peer  peer;
        struct uct_ha_conn  conn;
        struct uct_ha_txlog tx;
        struct uct_ha_road  road;
        struct uct_ha_lane  lane[HA_SLOTS];
        uint8_t             mute[HA_SLOTS], moves;
        unsigned            loss[HA_SLOTS], still; /* per mille: probes lost; rounds without any progress */
        uint64_t            suspected[HA_SLOTS], asked, lost, left;
        unsigned            pings, cause, calls;
        uint8_t             exists, runs; /* as its kernel says; as it answers calls itself */
        uint8_t             no_tcp;       /* it cannot be called */
    } * entry;
    unsigned pings;
} w;

void world_open(unsigned count);
void world_close(void);

/* Time goes on in rounds; what works makes progress all the time. */
void run(uint64_t ns);

/* ... until everybody has been asked. */
void calm(void);

/* An operation begins. */
void post(struct entry *entry);

#endif
