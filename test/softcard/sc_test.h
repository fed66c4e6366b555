/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_TEST_H_
#define SC_TEST_H_

/* An end of a connection over the card, as any program of libibverbs would make it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "sc_fabric.h"

#define BYTES (1u << 20)

struct end {
    struct ibv_context      *context;
    struct ibv_pd           *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_srq          *srq;
    struct ibv_qp           *qp;
    struct ibv_mr           *mr;
    uint8_t                 *memory;
};

/* What the other end must know. */
struct address {
    uint32_t qpn, rkey;
    uint64_t memory;
    uint16_t lid;
};

struct options {
    int      srq, timeout, retry_cnt, rnr_retry; /* 0: 14, 6, 7 */
    unsigned depth;                              /* 0: 64 */
};

struct sc_fabric *fabric_now(void);

void           end_open(struct end *end, const struct options *options);
void           end_close(struct end *end);
void           end_make_qp(struct end *end, const struct options *options); /* another one */
struct address end_address(const struct end *end);
void           end_connect(struct end *end, const struct address *peer, const struct options *options);
void           pair_open(struct end ends[2], const struct options *options);
void           pair_close(struct end ends[2]);

void end_fill(uint8_t *to, uint32_t length, unsigned seed); /* a pattern */
void end_post_recv(struct end *end, uint64_t id, uint32_t at, uint32_t length);
int  end_post(struct end *end, uint64_t id, enum ibv_wr_opcode opcode, uint32_t at, uint32_t length,
              const struct address *peer, uint32_t remote_at);

/* Only a hang takes so long, or a machine that is very busy. */
#define PATIENCE_MS 60000

/* Fails the test; by these words scripts/make_check knows a wait in vain, and tries again. A process that plays a role
 * ends with ROLE_WAITED instead, and who began it says them: one failure, one line. */
void still_not(const char *what);
void wait_readable(int fd, const char *what);

enum { ROLE_WAITED = 75, ROLE_ALONE /* the other end went first */ };
extern int plays_role;

/* The next completion, waited for. */
struct ibv_wc       end_wait(struct end *end);
void                end_expect(struct end *end, uint64_t id, enum ibv_wc_status status);
int                 end_is_quiet(struct end *end);
enum ibv_event_type end_event(struct end *end); /* the next asynchronous one, waited for */
uint64_t            now_ms(void);

void break_rule(uint32_t action, uint32_t ops, uint64_t nth, uint64_t times);
void delay_rule(unsigned place, uint32_t qpn, uint32_t ops, uint64_t nth, uint32_t ms);
void break_port(unsigned place, uint32_t trouble);
void mend(void);

/* test_softcard_two.c; test_play() is one of the two processes, its status the result. */
int  test_play(const char *role, int fd, int first);
void test_processes(void **state);
void test_processes_lossy(void **state);
void test_events(void **state);
void test_computing_target(void **state);
void test_killed(void **state);
void test_processes_late(void **state);

/* test_softcard_late.c */
void test_late(void **state);
void test_late_overtaken(void **state);
void test_late_and_cut(void **state);
void wait_for_late(struct end *end); /* until no packet is held back; meanwhile nothing may happen */

/* test_softcard_many.c */
void test_thousands(void **state);

#endif
