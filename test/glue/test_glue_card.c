/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A card that is gone is a rail that is gone: reset, overrun, silent. Traffic goes on over the
 * other rail; nothing is lost, doubled or out of order. What nobody can know ends alone, with an error.
 */

#include "glue_rma.h"
#include "glue_tests.h"
#include "uct/iface.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PUTS     16
#define BOUND_NS 12000000000ull /* of an end that a time limit of 20 s must not be needed for */

static struct counted put_done[2][PUTS];

static void put_with_completions(int s)
{
    for (unsigned n = 0; n < PUTS; n++) {
        uct_completion_t *comp = count_completion(&put_done[s][n]);

        while (rma_put_one(s, 0, ZCOPY, comp) != UCS_OK) {
            pump();
        }
        if (n % 4 == 1) {
            am_post(s, 0, 1);
            rma_get_loose(s, 0, 1);
        }
    }
}

/* Every PUT ended once: well, and was executed once; or with an error, and at most once. */
static unsigned check_puts(int s)
{
    unsigned lost = 0;

    for (unsigned n = 0; n < PUTS; n++) {
        assert_int_equal(put_done[s][n].called, 1);
        if (put_done[s][n].status == UCS_OK) {
            assert_int_equal(rma_executions(s, n), 1);
        } else {
            assert_int_equal(put_done[s][n].status, UCS_ERR_IO_ERROR);
            assert_true(rma_executions(s, n) <= 1);
            lost++;
        }
    }
    rma_forget(s);
    return lost;
}

static int is_busy(void)
{
    return uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK ||
           uct_iface_flush(world.side[1].iface, 0, NULL) != UCS_OK;
}

static int ends_of_rail(int rail, int other)
{
    return rail % 2 == other % 2;
}

/* Work is out on both ends of the rail: some of it executed, some not; hardly anything acknowledged if
 * the rail is about to be lost. */
static void load(int rail, unsigned acks_lost)
{
    for (int r = A0; r <= B1; r++) {
        fake_set(r, FAKE_STALL, ends_of_rail(rail, r) ? 600 : 0);
        fake_set(r, FAKE_LOSE_ACK_OUT, ends_of_rail(rail, r) ? acks_lost : 0);
    }
    put_with_completions(0);
    put_with_completions(1);
    if (!is_busy()) { /* a starved machine: heartbeats were missed, and all has moved already */
        fail_msg("still not: %s", "work is out");
    }
}

static void unload(void)
{
    for (int r = A0; r <= B1; r++) {
        fake_set(r, FAKE_STALL, 0);
        fake_set(r, FAKE_LOSE_ACK_OUT, 0);
    }
}

static void all_ends(int busy)
{
    unsigned lost = 0;

    flush_all();
    pump_until(am_all_here());
    if (busy) {
        lost = check_puts(0) + check_puts(1);
    }
    assert_int_equal(stats().in_doubt, lost);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

/* On one rail alone, exactly as ever. */
static void goes_on(void)
{
    am_exchange(0, 30);
    rma_put(0, 0, 20);
    rma_put(1, 0, 20);
    redundant_check();
}

static void lose_card(uint64_t seed, const char *settings, int rail, enum fake_card how, int busy)
{
    int      active = rail % 2 == 0;
    uint64_t start;

    redundant_open(seed, settings);
    if (busy) {
        load(A0, active ? 700 : 0);
    }
    start = now_ns();
    fake_card_reset(rail, how);
    if (busy && how != FAKE_CARD_DEAD) {
        pump_ms(20);
    }
    pump_until(stats().proofs_none >= 1);
    unload();
    all_ends(busy);
    pump_until(stats().failovers == (active ? 2 : 0));
    assert_soon(start, BOUND_NS);
    assert_true(how != FAKE_CARD_OVERRUN || !busy || !active || fake_counts().unheard > 0);
    goes_on();
    assert_int_equal(stats().standbys, 0); /* the card never comes back to who had it open */
    if (rail == A0 && !busy) {             /* it takes seconds, until nothing can be on its way any more */
        pump_until(fake_card_held(rail) == 0);
    }
}

static void lose_cards(const char *proof, enum fake_card how, int busy)
{
    char settings[96];

    snprintf(settings, sizeof(settings), "PROOF=%s DEAD_PEER=40s HEARTBEAT=20ms", proof);
    for (int rail = A0; rail <= B1; rail++) {
        for (unsigned seed = 0; seed < (busy ? 4 : 1); seed++) {
            lose_card(900 + seed * 10 + (unsigned)rail, settings, rail, how, busy);
            world_close();
            (void)glue_setup(NULL);
        }
    }
}

#define CARD_TESTS(_proof)                                    \
    static void test_card_dead_busy_##_proof(void **state)    \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_DEAD, 1);               \
    }                                                         \
    static void test_card_dead_idle_##_proof(void **state)    \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_DEAD, 0);               \
    }                                                         \
    static void test_card_undead_busy_##_proof(void **state)  \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_UNDEAD, 1);             \
    }                                                         \
    static void test_card_undead_idle_##_proof(void **state)  \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_UNDEAD, 0);             \
    }                                                         \
    static void test_card_overrun_busy_##_proof(void **state) \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_OVERRUN, 1);            \
    }                                                         \
    static void test_card_overrun_idle_##_proof(void **state) \
    {                                                         \
        (void)state;                                          \
        lose_cards(#_proof, FAKE_CARD_OVERRUN, 0);            \
    }

CARD_TESTS(psn)
CARD_TESTS(count)
CARD_TESTS(ledger)

/* An undead card did execute after its owner was told, in the runs above: seen here once more, alone. Nothing
 * that was counted before is lost by it, and nothing is taken from it after. Its peer's fence may come before
 * any packet does: then once more. */
static void test_card_undead_executes(void **state)
{
    uint64_t seen = 0;

    (void)state;
    for (unsigned seed = 950; seen == 0; seed++) {
        if (seed == 990) {
            fail_msg("40 cards reset, and none of them executed anything after it");
        }
        redundant_open(seed, "PROOF=psn DEAD_PEER=40s HEARTBEAT=20ms");
        fake_set(A0, FAKE_STALL, 900);
        for (unsigned n = 0; n < 20; n++) {
            am_post(0, 0, 1);
        }
        fake_card_reset(B0, FAKE_CARD_UNDEAD);
        pump_until(fake_counts().after_reset > 0 || stats().failovers > 0);
        fake_set(A0, FAKE_STALL, 0);
        all_ends(0);
        pump_until(stats().failovers == 2);
        seen = fake_counts().after_reset;
        goes_on();
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Both ends at once: each waits for the other, but not for ever. */
static void test_both_cards(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        redundant_open(960 + i, "DEAD_PEER=4s HEARTBEAT=20ms");
        load(A0, 700);
        fake_card_reset(A0, i == 0 ? FAKE_CARD_DEAD : FAKE_CARD_UNDEAD);
        fake_card_reset(B0, FAKE_CARD_DEAD);
        pump_until(stats().proofs_none >= 2);
        unload();
        all_ends(1);
        pump_until(stats().failovers == 2);
        goes_on();
        world_close();
        (void)glue_setup(NULL);
    }
}

/* A PUT without a completion cannot say that it is in doubt: its endpoint ends, soon, and at both sides. The
 * other endpoint of the same cards goes on. */
static void test_doubt_ends_alone(void **state)
{
    (void)state;
    redundant_open(970, "PROOF=psn DEAD_PEER=40s HEARTBEAT=20ms");
    ep_open(0, 1);
    ep_open(1, 1);
    am_exchange(1, 10);
    wait_standbys(4);
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    assert_int_equal(rma_put_one(0, 0, BCOPY, NULL), UCS_OK);
    pump_ms(5);
    fake_card_reset(B0, FAKE_CARD_DEAD);
    pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
    assert_int_equal(world.side[0].error, UCS_ERR_IO_ERROR);
    fake_set(B0, FAKE_LOSE_ACK_OUT, 0);
    am_exchange(1, 30);
    assert_int_equal(world.side[0].errors, 1);
    assert_true(rma_executions(0, 0) <= 1);
}

/* The marker, the flushed receives, or both never come. Nothing is in doubt by packet number. */
static void test_flushes_lost(void **state)
{
    static const char *const proofs[] = {"psn", "count", "ledger"};
    char                     settings[96];

    (void)state;
    for (unsigned i = 0; i < 18; i++) {
        int rail = i / 9 ? B0 : A0;

        /* those that are shared are not flushed */
        snprintf(settings, sizeof(settings), "PROOF=%s DEAD_PEER=3s HEARTBEAT=50ms SRQ_LEN=%u", proofs[i % 3],
                 i / 3 % 2 ? 0 : 4096);
        redundant_open(980 + i, settings);
        load(A0, 700);
        fake_set(rail, FAKE_LOSE_FLUSHES, 1 + i / 3 % 3);
        fake_port(A0, 0);
        unload();
        all_ends(1);
        if (i % 3 == 0 && stats().in_doubt != 0) { /* ... or nobody answered for DEAD_PEER */
            fail_msg("still not: %s", "a proof in time");
        }
        pump_until(stats().failovers == 2);
        assert_true(fake_counts().unheard > 0 || (i % 3 == 0 && i / 3 % 2 == 0));
        fake_set(rail, FAKE_LOSE_FLUSHES, 0);
        goes_on();
        fake_port(A0, 1);
        wait_standbys(2);
        fake_port(A1, 0); /* and back: its buffers are its own again */
        goes_on();
        world_close();
        (void)glue_setup(NULL);
    }
}

/* An idle one has nothing to wait for. */
static void test_nothing_out_needs_no_marker(void **state)
{
    uint64_t start;

    (void)state;
    redundant_open(999, "DEAD_PEER=40s HEARTBEAT=20ms");
    flush_all(); /* what is silent is out until something tells of it */
    fake_set(A0, FAKE_LOSE_FLUSHES, FAKE_FLUSHES_NO_SENDS);
    fake_set(B0, FAKE_LOSE_FLUSHES, FAKE_FLUSHES_NO_SENDS);
    start = now_ns();
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    assert_soon(start, BOUND_NS);
    assert_int_equal(stats().proofs_none, 0);
}

/* Memory that becomes known only when the card of its own rail is gone. */
static void test_memory_after_the_card(void **state)
{
    (void)state;
    world_open(1000, "DEAD_PEER=40s HEARTBEAT=20ms");
    ep_open(0, 0);
    ep_open(1, 0);
    wait_standbys(2);
    fake_card_reset(A0, FAKE_CARD_DEAD);
    pump_until(stats().failovers == 2);
    rma_open();
    goes_on();
    for (unsigned n = 0; n < 100; n++) { /* new receive and bounce buffers */
        am_exchange(0, 5);
    }
}

#define LATE_LEN 65536 /* more than a bounce buffer holds */

/* A program that computes notices nothing. What it registers and sends before it calls progress goes by the other
 * card. */
static void memory_unnoticed(uint64_t seed, void (*lose)(int rail))
{
    static uint8_t memory[LATE_LEN];
    struct side   *side = &world.side[0];
    struct counted done;
    uct_mem_h      memh;
    uct_iov_t      iov = {.buffer = memory, .length = LATE_LEN, .count = 1};

    world_open(seed, "DEAD_PEER=40s HEARTBEAT=20ms");
    ep_open(0, 0);
    ep_open(1, 0);
    wait_standbys(2);
    memory_open(LATE_LEN);
    am_exchange(0, 4);
    flush_all();
    memset(memory, (int)seed, sizeof(memory));
    lose(A0);
    wait_until(ha_rail_is_gone(uct_ha_iface(side->iface)->lanes.rail[0]));
    assert_int_equal(uct_md_mem_reg(side->md, memory, LATE_LEN, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    iov.memh = memh;
    assert_int_equal(uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)world.side[1].memory, side->rkey.rkey,
                                      count_completion(&done)),
                     UCS_INPROGRESS);
    pump_until(done.called == 1);
    assert_int_equal(done.status, UCS_OK);
    flush_all();
    assert_memory_equal(world.side[1].memory, memory, LATE_LEN);
    pump_until(stats().failovers == 2);
    assert_int_equal(uct_md_mem_dereg(side->md, memh), UCS_OK);
}

static void die(int rail)
{
    fake_card_reset(rail, FAKE_CARD_DEAD);
}

static void test_memory_on_a_dead_card_unnoticed(void **state)
{
    (void)state;
    memory_unnoticed(1041, die);
}

static void test_memory_on_a_removed_card_unnoticed(void **state)
{
    (void)state;
    memory_unnoticed(1042, fake_card_remove);
}

/* The kernel removes a card that works, and waits for us: work moves away from it, exactly, and nothing of it stays
 * open. */
static void remove_card(int rail, const char *proof)
{
    char settings[96];
    int  active = rail % 2 == 0;

    snprintf(settings, sizeof(settings), "PROOF=%s DEAD_PEER=40s HEARTBEAT=20ms", proof);
    redundant_open(1020 + (unsigned)rail, settings);
    pump_until(fake_card_held(rail) > 4); /* the way to the peer may be the last */
    load(A0, 0);
    fake_card_remove(rail);
    unload();
    for (uint64_t start = now_ns(); stats().failovers < 2 && active && now_ns() - start < BOUND_NS;) {
        am_exchange(0, 5);
    }
    all_ends(1);
    pump_until(fake_card_held(rail) == 0);
    assert_int_equal(stats().failovers, active ? 2 : 0);
    assert_int_equal(stats().in_doubt, 0);
    assert_int_equal(stats().proofs_none, 0);
    assert_int_equal(stats().standbys, 0);
    goes_on();
    ep_open(0, 1); /* a connection that begins now */
    ep_open(1, 1);
    am_exchange(1, 10);
}

static void test_card_removed(void **state)
{
    static const char *const proofs[] = {"psn", "count"};

    (void)state;
    for (int rail = A0; rail <= B1; rail++) {
        remove_card(rail, proofs[rail / 2]);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* The driver is loaded anew: who comes now has the card, with registrations of its own. */
static void test_card_comes_back(void **state)
{
    int back;

    (void)state;
    redundant_open(1010, "DEAD_PEER=40s HEARTBEAT=20ms");
    fake_card_reset(A0, FAKE_CARD_DEAD);
    pump_until(stats().failovers == 2);
    goes_on();
    flush_all();
    memory_close();
    side_close(0);
    side_close(1);
    back = fake_card_back(A0);
    side_open(0, "HEARTBEAT=20ms");
    side_open(1, "HEARTBEAT=20ms");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    wait_standbys(2);
    goes_on();
    assert_true(fake_last_path(back).mtu != 0);
    fake_port(back, 0);
    pump_until(stats().failovers == 4);
    goes_on();
}

#define CARD_TEST_LIST(_proof)                                                                \
    GLUE_TEST(test_card_dead_busy_##_proof), GLUE_TEST(test_card_dead_idle_##_proof),         \
        GLUE_TEST(test_card_undead_busy_##_proof), GLUE_TEST(test_card_undead_idle_##_proof), \
        GLUE_TEST(test_card_overrun_busy_##_proof), GLUE_TEST(test_card_overrun_idle_##_proof)

static const struct CMUnitTest tests[] = {
    CARD_TEST_LIST(psn),
    CARD_TEST_LIST(count),
    CARD_TEST_LIST(ledger),
    GLUE_TEST(test_card_undead_executes),
    GLUE_TEST(test_both_cards),
    GLUE_TEST(test_doubt_ends_alone),
    GLUE_TEST(test_flushes_lost),
    GLUE_TEST(test_nothing_out_needs_no_marker),
    GLUE_TEST(test_memory_after_the_card),
    GLUE_TEST(test_memory_on_a_dead_card_unnoticed),
    GLUE_TEST(test_memory_on_a_removed_card_unnoticed),
    GLUE_TEST(test_card_removed),
    GLUE_TEST(test_card_comes_back),
};

int glue_card(void)
{
    return cmocka_run_group_tests_name("card", tests, NULL, NULL);
}
