/* SPDX-License-Identifier: BSD-3-Clause */

/* Thousands of queue pairs of one process, for whom bench/cost counts at 4096 endpoints. */

#include "sc_test.h"

#include <stdio.h>
#include <unistd.h>

#define CONNECTIONS 2048
#define DEPTH       256
#define BYTES_EACH  16384 /* of a queue pair in use; its queues alone have room for 60000 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_WATCHED 1 /* the sanitizer's memory would be counted */
#else
#define IS_WATCHED 0
#endif

static size_t resident(void)
{
    unsigned long pages = 0;
    FILE         *file  = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void connect_one(struct end ends[2], struct ibv_qp *pair[2], const struct options *options)
{
    struct address addresses[2];

    for (int side = 0; side < 2; side++) {
        end_make_qp(&ends[side], options);
        pair[side]      = ends[side].qp;
        addresses[side] = end_address(&ends[side]);
    }
    for (int side = 0; side < 2; side++) {
        end_connect(&ends[side], &addresses[!side], options);
    }
}

static void use_one(struct end ends[2], struct ibv_qp *pair[2], uint64_t id)
{
    struct address peer;

    ends[0].qp = pair[0];
    ends[1].qp = pair[1];
    peer       = end_address(&ends[1]);
    end_post_recv(&ends[1], id, 8192, 64);
    assert_int_equal(end_post(&ends[0], id, IBV_WR_SEND, 0, 8, NULL, 0), 0);
    end_expect(&ends[0], id, IBV_WC_SUCCESS);
    end_expect(&ends[1], id, IBV_WC_SUCCESS);
    assert_int_equal(end_post(&ends[0], id, IBV_WR_ATOMIC_FETCH_AND_ADD, 16384, 8, &peer, 0), 0);
    end_expect(&ends[0], id, IBV_WC_SUCCESS);
    assert_int_equal(*(uint64_t *)(void *)(ends[0].memory + 16384), id);
}

/* Each works, and takes what it uses, not what its queues could hold. */
void test_thousands(void **state)
{
    static struct ibv_qp *pairs[CONNECTIONS][2];
    const struct options  options = {.depth = DEPTH};
    struct ibv_qp        *first[2];
    struct end            ends[2];
    size_t                before;

    (void)state;
    pair_open(ends, &options);
    first[0] = ends[0].qp;
    first[1] = ends[1].qp;
    before   = resident();
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        connect_one(ends, pairs[i], &options);
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        use_one(ends, pairs[i], i);
    }
    assert_true(IS_WATCHED || resident() - before < 2ul * CONNECTIONS * BYTES_EACH);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(ibv_destroy_qp(pairs[i][0]), 0);
        assert_int_equal(ibv_destroy_qp(pairs[i][1]), 0);
    }
    ends[0].qp = first[0];
    ends[1].qp = first[1];
    pair_close(ends);
}
