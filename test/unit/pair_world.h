/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PAIR_WORLD_H_
#define PAIR_WORLD_H_

/*
 * Two pairs that talk to each other over a perfect wire, with queue pairs that
 * do at once what they are asked. Bad luck is the simulator's business, see
 * test/sim.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/ha_pair.h"

extern const struct ha_pair_config config;

struct side {
    struct ha_pair     pair;
    uint32_t           value;           /* answer to CHECK_CLOSE besides k */
    uint32_t           psn;             /* responder's packet number, also on re-reading */
    int                moves;           /* the proof moves after the fence */
    int                no_proof, stuck; /* the device says nothing; it does not even stop */
    uint8_t            offer, kind;     /* of proof; 0 = PSN */
    uint32_t           received, received_later;
    struct ha_evidence peer;        /* what it was told to resolve with */
    uint64_t           ledger_addr; /* ... and where to leave marks, when it connected */
    uint32_t           ledger_key;
    int                marks;
    unsigned           created, fenced, destroyed, gone, failed, sent;
    uint32_t           fail;
};

extern struct side side[2];
extern unsigned    on_wire;
extern uint64_t    now;          /* ns */
extern int         cut;          /* control packets are lost */
extern unsigned    peer_answers; /* say the heartbeats */

/* A fact for side x. */
void give(int x, struct ha_event event);
void rail(int x, int slot, int usable);
void down(int x, int slot);

/* Do what the core asks side x for. */
void perform(int x, const struct ha_action *action);

/* Everything that is possible, in progress. */
void run(int x);

/* Let `rounds` of 500 ns pass. */
void pass(int rounds);

/* Work goes over `slot` on both sides. */
void expect_active(int slot, uint32_t epoch);

/* Setups for cmocka: both have begun; both are connected with a standby. */
int pair_setup(void **state);
int pair_setup_connected(void **state);

#endif
