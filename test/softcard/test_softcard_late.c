/* SPDX-License-Identifier: BSD-3-Clause */

/* Single packets that come late: others overtake them, and packet numbers put right what that does. */

#include "sc_card.h"
#include "sc_test.h"

#include <string.h>

#define DELAY_MS 2000 /* on a busy machine, too, all else happens within it */

/* 17 s: no timeout sends anything again before a late packet comes. */
static const struct options unhurried = {.timeout = 22};

static uint64_t packets_so_far(void)
{
    uint64_t packets;

    sc_lock(&sc.lock);
    packets = softcard_counts.packets;
    sc_unlock(&sc.lock);
    return packets;
}

static int is_held_back(void)
{
    int held;

    sc_lock(&sc.lock);
    held = sc.late != NULL;
    sc_unlock(&sc.lock);
    return held;
}

void wait_for_late(struct end *end)
{
    uint64_t deadline = now_ms() + PATIENCE_MS;

    while (is_held_back() && now_ms() < deadline) {
        assert_true(end_is_quiet(end));
    }
    if (is_held_back()) {
        still_not("a late packet");
    }
}

/* Nothing else happens before it comes, and it is the same packet: nobody sent another one. */
void test_late(void **state)
{
    uint64_t   before, began;
    struct end ends[2];

    (void)state;
    pair_open(ends, &unhurried);
    end_fill(ends[0].memory, 1000, 1);
    end_post_recv(&ends[1], 5, 0, 1024);
    before = packets_so_far();
    began  = now_ms();
    delay_rule(0, ends[0].qp->qp_num, 1u << SC_OP_SEND, 1, DELAY_MS);
    assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 1000, NULL, 0), 0);
    assert_true(is_held_back());
    end_expect(&ends[1], 5, IBV_WC_SUCCESS);
    assert_true(now_ms() - began >= DELAY_MS - 1);
    end_expect(&ends[0], 1, IBV_WC_SUCCESS);
    assert_memory_equal(ends[0].memory, ends[1].memory, 1000);
    assert_int_equal(packets_so_far() - before, 2); /* it, and its acknowledgement */
    mend();
    pair_close(ends);
}

/* Those behind it are out of sequence: it is asked for and sent again, all is done in order, and when it comes at last
 * it is a duplicate, which is acknowledged and not executed. */
void test_late_overtaken(void **state)
{
    struct end     ends[2];
    struct address peer;
    uint64_t       before;

    (void)state;
    pair_open(ends, &unhurried);
    peer = end_address(&ends[1]);
    for (uint32_t i = 0; i < 3; i++) {
        end_fill(ends[0].memory + 1024 * i, 1000, i);
        end_post_recv(&ends[1], i, 4096 + 1024 * i, 1024);
    }
    delay_rule(0, ends[0].qp->qp_num, 1u << SC_OP_SEND, 2, DELAY_MS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(end_post(&ends[0], i, IBV_WR_SEND, 1024 * i, 1000, NULL, 0), 0);
    }
    assert_int_equal(end_post(&ends[0], 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, 8, &peer, 8192), 0);
    for (uint64_t id = 0; id <= 3; id++) {
        end_expect(&ends[0], id, IBV_WC_SUCCESS);
    }
    for (uint32_t i = 0; i < 3; i++) {
        end_expect(&ends[1], i, IBV_WC_SUCCESS);
        assert_memory_equal(ends[0].memory + 1024 * i, ends[1].memory + 4096 + 1024 * i, 1000);
    }
    assert_true(is_held_back());
    assert_int_equal(fabric_now()->rule[0].seen, 5); /* the late one, the one behind it, and both again; the first */

    before = packets_so_far();
    memset(ends[1].memory, 0, 8192);
    end_post_recv(&ends[1], 9, 0, 1024);
    wait_for_late(&ends[1]);
    assert_int_equal(packets_so_far() - before, 2); /* it, and that it was there before */
    assert_true(end_is_quiet(&ends[0]) && end_is_quiet(&ends[1]));
    for (uint32_t i = 0; i < 8192; i++) {
        assert_int_equal(ends[1].memory[i], 0);
    }
    assert_int_equal(end_post(&ends[0], 4, IBV_WR_SEND, 0, 1000, NULL, 0), 0);
    end_expect(&ends[1], 9, IBV_WC_SUCCESS); /* the receive that was not taken */
    end_expect(&ends[0], 4, IBV_WC_SUCCESS);
    mend();
    pair_close(ends);
}

/* A packet under way comes even if its sender is gone, but not through a port that is down. */
void test_late_and_cut(void **state)
{
    struct end ends[2];
    uint64_t   before;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

        pair_open(ends, &unhurried);
        end_post_recv(&ends[1], 5, 0, 64);
        delay_rule(0, 0, 1u << SC_OP_SEND, 1, DELAY_MS);
        assert_int_equal(end_post(&ends[0], 1, IBV_WR_SEND, 0, 8, NULL, 0), 0);
        assert_int_equal(ibv_modify_qp(ends[0].qp, &reset, IBV_QP_STATE), 0);
        before = packets_so_far();
        if (cut) {
            break_port(0, SC_PORT_DOWN);
            wait_for_late(&ends[1]);
            assert_int_equal(packets_so_far() - before, 0);
        } else {
            end_expect(&ends[1], 5, IBV_WC_SUCCESS);
        }
        assert_true(end_is_quiet(&ends[1]));
        mend();
        pair_close(ends);
    }
}
