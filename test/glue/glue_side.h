/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GLUE_SIDE_H_
#define GLUE_SIDE_H_

/*
 * Two interfaces of ha_rc in one process, opened through UCT's public API over
 * made-up hardware, and what the tests do with them. Side 0 has the rails a0
 * and a1, side 1 b0 and b1; networks 0 and 1.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <uct/api/uct.h>

#include "fake_verbs.h"
#include "uct_ha.h"

#define EPS_MAX       16
#define EPS_ROOM      512 /* for tests that want many; no zero-copy messages beyond EPS_MAX */
#define AM_ID         5
#define GLUE_HEADROOM 88 /* bytes before a message that the user wants */
#define AM_SLOTS      128
#define AM_SLOT       1024
#define PATIENCE_S    glue_patience() /* only a hang takes so long: 60 s, or $GLUE_PATIENCE */

enum { A0, A1, B0, B1 }; /* rails as the fake counts them */

struct side {
    ucs_async_context_t *async;
    uct_worker_h         worker;
    uct_md_h             md;
    uct_iface_h          iface;
    uct_iface_attr_t     attr;
    uint8_t              dev_addr[64], iface_addr[64];
    uct_ep_h             ep[EPS_ROOM];

    /* active messages: each stream counts */
    uint32_t     sent[EPS_ROOM], received[EPS_ROOM];
    unsigned     wrong; /* out of order, twice, or of wrong content */
    unsigned     errors;
    ucs_status_t error; /* the last one */

    /* registered memory: what is sent from, and what the peer writes to */
    uint8_t          *memory;
    uint8_t          *am_source; /* zero-copy messages, AM_SLOTS of a stream */
    uct_mem_h         memh, am_memh;
    uct_rkey_bundle_t rkey; /* of the peer's memory */
};

struct world {
    struct side         side[2];
    struct uct_ha_stats before;
    char                names[4][16];
    const char         *personality[2]; /* of each side's cards; NULL: $GLUE_PERSONALITY, or plain */
};

extern struct world world;

/* Settings "NAME=value" separated by blanks, on top of the tests' own. */
void world_open(uint64_t seed, const char *settings);
void world_open_small(uint64_t seed, uint32_t max_cqe, const char *settings); /* largest queue */
void side_open(int s, const char *settings);
void side_open_fails(int s, const char *settings, ucs_status_t status); /* its interface does */
void side_leave(int s); /* only the interface, its memory stays registered */
void side_close(int s);
void world_close(void); /* everything that is still open; nothing may be left */

/* Endpoint `i` of a side towards the other one. */
void         ep_open(int s, int i);
ucs_status_t ep_try(int s, int i);
void         ep_close(int s, int i);

/* Let both sides make progress once. */
void pump(void);

/* ... until the condition holds; fails the test when it does not. */
#define pump_until(_condition)                                    \
    do {                                                          \
        uint64_t _start = now_ns();                               \
        while (!(_condition)) {                                   \
            pump();                                               \
            if (now_ns() - _start > PATIENCE_S * 1000000000ull) { \
                world_print();                                    \
                fail_msg("still not: %s", #_condition);           \
            }                                                     \
        }                                                         \
    } while (0)

/* ... without progress. */
#define wait_until(_condition)                                    \
    do {                                                          \
        uint64_t _start = now_ns();                               \
        while (!(_condition)) {                                   \
            usleep(1000);                                         \
            if (now_ns() - _start > PATIENCE_S * 1000000000ull) { \
                fail_msg("still not: %s", #_condition);           \
            }                                                     \
        }                                                         \
    } while (0)

/* It has taken less than `_ns` since `_start`; else it is one of those that a busy machine may have kept waiting. */
#define assert_soon(_start, _ns)                                                                               \
    do {                                                                                                       \
        uint64_t _took = now_ns() - (_start);                                                                  \
        if (_took >= (_ns)) {                                                                                  \
            fail_msg("still not: over in less than %s, it took %lu ms", #_ns, (unsigned long)_took / 1000000); \
        }                                                                                                      \
    } while (0)

/* In a loop of the test's own that has gone on since `_start`. */
#define keep_patience(_start)                                   \
    do {                                                        \
        if (now_ns() - (_start) > PATIENCE_S * 1000000000ull) { \
            world_print();                                      \
            fail_msg("still not: %s", __func__);                \
        }                                                       \
    } while (0)

void     pump_ms(unsigned ms);
uint64_t now_ns(void);
unsigned glue_patience(void);
void     world_print(void); /* where it stands, for a test that fails */

/* The next message of stream `i`; UCS_ERR_NO_RESOURCE is left to the caller. */
enum how { SHORT, BCOPY, ZCOPY, HOWS };
ucs_status_t am_send(int s, int i, enum how how, unsigned length, uct_completion_t *comp);

/* `count` more messages of mixed kinds each way on endpoint `i`, all delivered. */
void         am_exchange(int i, unsigned count);
void         am_post(int s, int i, unsigned count); /* pumps while there is no room */
int          am_all_here(void);
ucs_status_t am_received(void *side, void *data, size_t length, unsigned flags); /* handler */
void         flush_all(void);
void         flush_all_of(int s);

/* Memory of `bytes` on both sides, registered, keys exchanged. */
void       memory_open(size_t bytes);
void       memory_close(void);
uct_rkey_t memory_key(int s, uct_mem_h memh); /* of a registration of side s, for the other one */

/* Statistics of the product since world_open(). */
struct uct_ha_stats stats(void);

/* Wait until `pairs` connections work and as many have a standby. */
void wait_standbys(unsigned count);

/* A completion that counts. */
struct counted {
    uct_completion_t comp;
    unsigned         called;
    ucs_status_t     status;
};
uct_completion_t *count_completion(struct counted *counted);

/* Per test. */
int glue_setup(void **state);
int glue_teardown(void **state);

#endif
