/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Behind which barrier a proof is read, and what counts until then: packets that
 * execute late, queue pairs that stop late, successes that are polled late.
 */

#include "glue_tests.h"

#include "uct/iface.h"

#include <sys/mman.h>
#include <unistd.h>

static void progress_alone(int s, unsigned ms)
{
    uint64_t start = now_ns();

    while (now_ns() - start < ms * 1000000ull) {
        (void)uct_worker_progress(world.side[s].worker);
    }
}

static void flush_alone(int s)
{
    uint64_t start = now_ns();

    while (uct_iface_flush(world.side[s].iface, 0, NULL) != UCS_OK) {
        (void)uct_worker_progress(world.side[s].worker);
        keep_patience(start);
    }
}

/* One operation of side 0 is on its way to side 1, whose program computes and whose queue
 * pair dies; it arrives when the dead one has been asked `reads` times how far it is. */
static void open_late(uint64_t seed, unsigned reads)
{
    redundant_open(seed, "");
    flush_all();
    fake_set(A0, FAKE_STALL, 1000);
    fake_set(B0, FAKE_LATE, 1000);
    fake_set(B0, FAKE_LATE_READS, reads);
}

/* The process that computes proves by two equal reads; this packet comes
 * between them, or behind them and before the third, which is the proof. */
static void test_late_packet_between_reads(void **state)
{
    (void)state;
    for (unsigned reads = 1; reads <= 2; reads++) {
        open_late(420, reads);
        assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
        fake_event_one_qp_fatal(B0);
        flush_alone(0);
        assert_int_equal(fake_counts().late, 1);
        assert_int_equal(rma_executions(0, 0), 1);
        redundant_check();
        pump_until(stats().failovers == 2);
        assert_int_equal(stats().retired, 1);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* A card that still executes after two equal answers and the proof has lied: nobody goes
 * on as if nothing had happened. */
static void test_card_that_goes_on_after_its_proof(void **state)
{
    (void)state;
    open_late(421, 3);
    assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
    fake_event_one_qp_fatal(B0);
    flush_alone(0);
    pump_until(world.side[1].errors == 1);
    assert_int_equal(fake_counts().late, 1);
}

/* A message is executed by the packet number, but its receive came back flushed. What it
 * comes to is the protocol's business; for ever it must not take. */
static void test_message_lost_with_its_receive(void **state)
{
    (void)state;
    open_late(422, 1);
    fake_set(B0, FAKE_LATE_LOST, 1);
    assert_int_equal(am_send(0, 0, SHORT, 20, NULL), UCS_OK);
    fake_event_one_qp_fatal(B0);
    for (uint64_t start = now_ns(); fake_counts().late == 0 && now_ns() - start < PATIENCE_S * 1000000000ull;) {
        progress_alone(0, 1);
    }
    assert_int_equal(fake_counts().late, 1);
    pump_until(world.side[1].errors > 0 || (am_all_here() && stats().standbys == 2));
}

/* ---- a queue pair that takes its time to stop -------------------------------------- */

#define ADDS 60 /* far more than are polled at once */

static int is_being_stopped(int s)
{
    struct uct_ha_lanes *lanes = &uct_ha_iface(world.side[s].iface)->lanes;
    int                  found = 0;

    pthread_mutex_lock(&lanes->wake.lock);
    for (uint32_t i = 0; i < lanes->table_len; i++) {
        found |= lanes->table[i] != NULL && lanes->table[i]->fencing;
    }
    pthread_mutex_unlock(&lanes->wake.lock);
    return found;
}

/* The card hangs when it is told to stop, and executes meanwhile. All of that succeeded,
 * though nobody polls before the proof is here. */
static void test_successes_behind_a_slow_fence(void **state)
{
    struct side   *side = &world.side[0];
    uint64_t       old[ADDS], *word;
    struct counted done[ADDS];

    (void)state;
    redundant_open(423, "ATOMICS=hw TX_QUEUE_LEN=64 RTO=20s RTO_MAX=20s");
    word  = (uint64_t *)(void *)rma_place(1, 0);
    *word = 0;
    flush_all();
    fake_set(A0, FAKE_STALL, 1000);
    for (unsigned i = 0; i < ADDS; i++) {
        assert_int_equal(uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[i], (uintptr_t)word,
                                               side->rkey.rkey, count_completion(&done[i])),
                         UCS_INPROGRESS);
    }
    fake_set(A0, FAKE_HANG_MS, 1500);
    fake_set(B0, FAKE_HANG_MS, 1500);
    fake_event_one_qp_fatal(A0);
    wait_until(is_being_stopped(0));
    progress_alone(0, 20); /* this side knows that the lane is dead, its card does not */
    fake_set(A0, FAKE_STALL, 0);
    wait_until(__atomic_load_n(word, __ATOMIC_RELAXED) == ADDS);
    fake_set(A0, FAKE_HANG_MS, 0);
    fake_set(B0, FAKE_HANG_MS, 0);
    wait_until(!is_being_stopped(0) && !is_being_stopped(1));
    usleep(200000); /* the proof comes, and nobody polls */
    flush_all();
    for (unsigned i = 0; i < ADDS; i++) {
        assert_int_equal(done[i].called, 1);
        assert_int_equal(done[i].status, UCS_OK);
        assert_int_equal(old[i], i);
    }
    pump_until(stats().failovers == 2);
}

/* ... and with nothing under way: the marker that is to come back last is not a message. */
static void test_no_marker_on_a_lane_that_runs(void **state)
{
    uint64_t fences;

    (void)state;
    redundant_open(424, "");
    flush_all();
    fake_set(A0, FAKE_HANG_MS, 2000);
    fake_set(B0, FAKE_HANG_MS, 2000);
    fake_event_one_qp_fatal(A0);
    fences = fake_counts().fences; /* the self-test's */
    pump_ms(60);
    assert_int_equal(fake_counts().fences, fences); /* neither has stopped */
    assert_int_equal(stats().failovers, 0);
    fake_set(A0, FAKE_HANG_MS, 0);
    fake_set(B0, FAKE_HANG_MS, 0);
    pump_until(stats().failovers == 2);
    am_exchange(0, 20);
    redundant_check();
    wait_standbys(2);
}

/* Old packets may be on the wire: the number of a queue pair rests before it is free. */
static void test_queue_pairs_rest(void **state)
{
    uint64_t hasty;

    (void)state;
    redundant_open(425, "HEARTBEAT=10ms");
    hasty = fake_counts().hasty; /* the self-test's */
    for (int rail = A0; rail <= B1; rail++) {
        am_post(0, 0, 4);
        fake_port(rail, 0);
        redundant_check();
        fake_port(rail, 1);
        wait_standbys(2);
    }
    pump_until(fake_objects().rcs == 4);
    assert_int_equal(fake_counts().hasty, hasty);
}

/* ---- what a lane that is gone still holds ------------------------------------------- */

/* Its queue pair lives on until the card has stopped it, and may write to its receives:
 * nobody else gets those buffers before. */
static void test_buffers_of_a_lane_that_hangs(void **state)
{
    (void)state;
    world_open(432, "HEARTBEAT=1s RTO=20s RTO_MAX=20s RX_QUEUE_INIT=16 SRQ_LEN=0");
    for (int i = 0; i < 2; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 4);
    }
    wait_standbys(4);
    flush_all();
    for (int rail = A0; rail <= A1; rail++) {
        fake_set(rail, FAKE_SCRIBBLE, 1000);
        fake_set(rail, FAKE_HANG_MS, 100);
    }
    ep_close(0, 0);
    ep_close(1, 0);
    pump_until(stats().pairs == 2);
    fake_set(A0, FAKE_STALL, 1000);
    fake_set(A1, FAKE_STALL, 1000);
    for (unsigned i = 0; i < 12; i++) { /* copies, on their way while the old receives are flushed */
        assert_int_equal(am_send(0, 1, BCOPY, 1000, NULL), UCS_OK);
    }
    pump_ms(300);
    for (int rail = A0; rail <= A1; rail++) {
        fake_set(rail, FAKE_HANG_MS, 0);
        fake_set(rail, FAKE_STALL, 0);
    }
    pump_until(am_all_here());
    assert_int_equal(world.side[0].wrong + world.side[1].wrong, 0);
}

/* ---- packet numbers --------------------------------------------------------------- */

static void open_with_mtus(uint64_t seed, uint16_t a, uint16_t b0, uint16_t b1, const char *settings)
{
    world_open(seed, settings);
    for (int s = 0; s < 2; s++) {
        side_close(s);
    }
    fake_mtu(A0, a);
    fake_mtu(A1, a);
    fake_mtu(B0, b0);
    fake_mtu(B1, b1);
    for (int s = 0; s < 2; s++) {
        side_open(s, settings);
    }
    ep_open(0, 0);
    ep_open(1, 0);
}

/* The path takes what both of its ends take, and packets are counted by that. */
static void test_rails_of_different_mtu(void **state)
{
    (void)state;
    open_with_mtus(429, 1024, 512, 256, "HEARTBEAT=10ms");
    rma_open();
    am_exchange(0, 10);
    wait_standbys(2);
    for (unsigned cut = 0; cut < 8; cut++) {
        int rail = (int)(cut % 2);

        fake_set(B0 + rail, FAKE_LOSE_ACK_OUT, 1000);
        fake_set(A0 + rail, FAKE_LOSE_ACK_OUT, 1000);
        for (int s = 0; s < 2; s++) {
            am_post(s, 0, 4);
            rma_put(s, 0, 6);
            rma_get_loose(s, 0, 2);
        }
        redundant_check();
        fake_set(B0 + rail, FAKE_LOSE_ACK_OUT, 0);
        fake_set(A0 + rail, FAKE_LOSE_ACK_OUT, 0);
        wait_standbys(2);
    }
    assert_true(stats().failovers >= 16);
    assert_true(stats().retired > 0);
    assert_int_equal(fake_counts().too_long, 0);
}

#define HUGE (1u << 30) /* 2^22 packets of 256 bytes, half of what may be under way */

/* No more is posted than packet numbers can tell apart: the fake counts what is. */
static void test_packet_numbers_run_out(void **state)
{
    uint8_t     *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct side *side   = &world.side[0];
    uct_mem_h    memh;
    uct_iov_t    iov;

    (void)state;
    assert_ptr_not_equal(memory, MAP_FAILED);
    open_with_mtus(430, 256, 256, 256, "DEAD_PEER=300ms RTO=20s RTO_MAX=20s");
    memory_open(1 << 20);
    am_exchange(0, 4);
    flush_all();
    assert_int_equal(uct_md_mem_reg(side->md, memory, HUGE, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    iov = (uct_iov_t){.buffer = memory, .length = HUGE, .memh = memh, .count = 1};
    fake_set(A0, FAKE_STALL, 1000);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)world.side[1].memory, side->rkey.rkey, NULL),
                         UCS_INPROGRESS);
    }
    progress_alone(0, 20);
    for (int rail = A0; rail <= B1; rail++) {
        fake_port(rail, 0);
    }
    pump_until(side->errors == 1);
    assert_int_equal(fake_counts().psn_overruns, 0);
    ep_close(0, 0);
    side_leave(0);
    assert_int_equal(uct_md_mem_dereg(side->md, memh), UCS_OK);
    munmap(memory, HUGE);
}

/* ---- ledger ------------------------------------------------------------------------- */

static uint64_t *last_mark; /* where the latest 8 bytes outside of the tests' memory went */

static void on_mark(void *arg, uint64_t addr, uint64_t length)
{
    uint64_t base = (uintptr_t)world.side[1].memory;

    (void)arg;
    if (length == sizeof(uint64_t) && (addr < base || addr >= base + MEMORY)) {
        last_mark = (uint64_t *)(uintptr_t)addr;
    }
}

/* A mark of an older lane proves nothing about this one. */
static void test_mark_of_another_lane(void **state)
{
    (void)state;
    redundant_open(431, "PROOF=ledger");
    last_mark = NULL;
    fake_on_write(on_mark, NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rma_put_one(0, 0, ZCOPY, NULL), UCS_OK);
    }
    flush_all();
    assert_non_null(last_mark);
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    assert_int_equal(rma_put_one(0, 0, ZCOPY, NULL), UCS_OK);
    pump_ms(2);
    *last_mark -= 1ull << 32; /* the generation before; the number is right */
    fake_port(A0, 0);
    pump_until(world.side[0].errors + world.side[1].errors > 0 || stats().in_doubt > 0);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_late_packet_between_reads),     GLUE_TEST(test_card_that_goes_on_after_its_proof),
    GLUE_TEST(test_message_lost_with_its_receive), GLUE_TEST(test_successes_behind_a_slow_fence),
    GLUE_TEST(test_no_marker_on_a_lane_that_runs), GLUE_TEST(test_queue_pairs_rest),
    GLUE_TEST(test_buffers_of_a_lane_that_hangs),  GLUE_TEST(test_rails_of_different_mtu),
    GLUE_TEST(test_packet_numbers_run_out),        GLUE_TEST(test_mark_of_another_lane),
};

int glue_barrier(void)
{
    return cmocka_run_group_tests_name("barrier", tests, NULL, NULL);
}
