/* SPDX-License-Identifier: BSD-3-Clause */
/* What requests take, they give back: memory can be unregistered afterwards, and not before; and what a batch promises
 * about its notification. */
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "fixture.h"

enum { MANY = 100, BLOCK = 4096 };

static void fill(const struct fixture *f, struct hte_request *requests, size_t count, int opcode)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        requests[i] = request(f, opcode, 2 * i * BLOCK, 2 * i * BLOCK, BLOCK);
    }
}

static void expect_free(const struct fixture *f)
{
    struct hte_memory memory = {.addr = f->memory, .length = SIZE};

    OK(hte_memory_unregister(f->engine, f->memory));
    OK(hte_memory_register(f->engine, &memory));
}

/* ---- registrations ---- */

static void test_many_alike(void **state)
{
    static const struct target_buffer buffer = {.length = SIZE};
    struct hte_request                requests[MANY];
    struct fixture                    f;
    hte_batch_t                       batch;

    (void)state;
    open_with(&f, (const struct hte_option[]){{"same_host", "off"}}, 1, &buffer, 1);
    fill(&f, requests, MANY, HTE_READ);
    transfer_ok(&f, requests, MANY);
    expect_free(&f);
    target_pause(&f.target);
    OK(hte_batch_alloc(f.engine, MANY, &batch));
    OK(hte_batch_submit(f.engine, batch, requests, MANY));
    assert_int_equal(hte_memory_unregister(f.engine, f.memory), HTE_ERR_MEMORY_BUSY);
    assert_non_null(strstr(hte_error_detail(), "100 unfinished"));
    target_resume(&f.target);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    OK(hte_batch_free(f.engine, batch));
    expect_free(&f);
    target_stop(&f.target);
    close_fixture(&f);
}

/* The last one is not in order: nothing of all was submitted, and nothing is held. */
static void test_refused(void **state)
{
    struct hte_request requests[MANY];
    struct fixture     f;
    hte_batch_t        batch;

    (void)state;
    open_fixture(&f);
    fill(&f, requests, MANY, HTE_WRITE);
    requests[MANY - 1].length = 0;
    OK(hte_batch_alloc(f.engine, MANY, &batch));
    assert_int_equal(hte_batch_submit(f.engine, batch, requests, MANY), HTE_ERR_ZERO_LENGTH);
    OK(hte_batch_free(f.engine, batch));
    expect_free(&f);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- a request in parts ---- */

/* One half ends soon, and not well. */
static void test_half_lost(void **state)
{
    static const struct hte_option options[] = {
        {"threads", "2"}, {"same_host", "off"}, {"moves", "messages"}, {"split_size", "1M"}};
    static const struct target_buffer buffer = {.length = SIZE};
    struct hte_batch_status           status;
    struct hte_request                r;
    struct fixture                    f;
    int                               i;

    (void)state;
    open_with(&f, options, 4, &buffer, 1);
    target_protect(&f.target, 0, 0, SIZE / 2);
    r = request(&f, HTE_WRITE, 0, 0, SIZE);
    for (i = 0; i < 10; ++i) {
        status = transfer(&f, &r, 1);
        assert_int_equal(status.code, HTE_INVALID);
        assert_int_equal(status.error, HTE_ERR_RANGE);
        assert_true(status.transferred >= SIZE / 2);
    }
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- neighbours that are not alike ---- */

/* A target whose buffer is where the other one has its own: what is at one address of both is not the same. Whether
 * there is one. */
static int start_beside(struct target *other, const struct target *target)
{
    static const struct target_buffer buffer = {.length = SIZE};
    int                               i;

    for (i = 0; i < 10; ++i) {
        target_start(other, &buffer, 1);
        if (other->addr[0] == target->addr[0]) {
            return 1;
        }
        target_stop(other);
    }
    return 0;
}

/* Each changes at times without the other. */
static int is_read(size_t i)
{
    return i / 2 % 2 == 1;
}

static int is_for_other(size_t i)
{
    return i / 3 % 2 == 1;
}

/* To two targets, and to and fro. */
static void test_in_turn(void **state)
{
    struct hte_request requests[MANY];
    struct fixture     f;
    struct target      other;
    hte_segment_t      segment;
    size_t             i, at;

    (void)state;
    personality(ADDR_NO_RANDOMIZE); /* of what is started from here on; a sandbox may forbid it */
    open_fixture(&f);
    if (!start_beside(&other, &f.target)) {
        target_stop(&f.target);
        close_fixture(&f);
        skip();
    }
    OK(hte_segment_open(f.engine, other.name, &segment));
    target_fill(&f.target, 0, 0, SIZE, 3);
    target_fill(&other, 0, 0, SIZE, 4);
    pattern_fill(f.memory, 0, SIZE, 5);
    for (i = 0; i < MANY; ++i) {
        at          = 2 * i * BLOCK;
        requests[i] = request(&f, is_read(i) ? HTE_READ : HTE_WRITE, at, at, BLOCK);
        if (is_for_other(i)) {
            requests[i].target        = segment;
            requests[i].target_offset = other.addr[0] + at;
        }
    }
    transfer_ok(&f, requests, MANY);
    for (i = 0; i < MANY; ++i) {
        at = 2 * i * BLOCK;
        assert_int_equal(target_verify(&f.target, 0, at, BLOCK, is_read(i) || is_for_other(i) ? 3 : 5), 1);
        assert_int_equal(target_verify(&other, 0, at, BLOCK, is_read(i) || !is_for_other(i) ? 4 : 5), 1);
        assert_int_equal(pattern_verify(f.memory + at, at, BLOCK, !is_read(i) ? 5 : is_for_other(i) ? 4 : 3), 1);
    }
    target_stop(&other);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- notifications ---- */

static int await_notification(struct fixture *f, char *text, size_t size)
{
    int i, count = 0;

    for (i = 0; i < PATIENCE / 10 && count == 0; ++i) {
        count = target_notifications(&f->target, text, size);
        usleep(10000);
    }
    return count;
}

static int write_and_tell(const struct fixture *f, const struct hte_request *requests, size_t count, const char *text)
{
    struct hte_batch_status status;
    hte_batch_t             batch;

    OK(hte_batch_alloc(f->engine, count, &batch));
    OK(hte_batch_submit_notify(f->engine, batch, requests, count, "batch", text));
    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    OK(hte_batch_free(f->engine, batch));
    return status.code;
}

/* One request of two fails: the target is not told. */
static void test_notified_when_all_is_well(void **state)
{
    struct hte_request requests[2];
    struct fixture     f;
    char               text[64];

    (void)state;
    open_fixture(&f);
    target_protect(&f.target, 0, M, M);
    requests[0] = request(&f, HTE_WRITE, 0, 0, 100);
    requests[1] = request(&f, HTE_WRITE, M, M, BLOCK);
    assert_int_not_equal(write_and_tell(&f, requests, 2, "half"), HTE_COMPLETED);
    assert_int_equal(write_and_tell(&f, requests, 1, "all"), HTE_COMPLETED);
    assert_int_equal(await_notification(&f, text, sizeof(text)), 1);
    assert_string_equal(text, "batch/all");
    target_stop(&f.target);
    close_fixture(&f);
}

/* A target that drains nothing says so; what a batch sends is sent again later. */
static void test_full_inbox(void **state)
{
    struct hte_request r;
    struct fixture     f;
    char               text[64];

    (void)state;
    setenv("HTE_NOTIFY_MAX", "1", 1);
    open_fixture(&f);
    unsetenv("HTE_NOTIFY_MAX");
    OK(hte_notify_send(f.engine, f.segment, "first", ""));
    assert_int_not_equal(hte_notify_send(f.engine, f.segment, "second", ""), HTE_OK);
    assert_non_null(strstr(hte_error_detail(), "1 notifications wait"));
    r = request(&f, HTE_WRITE, 0, 0, 100);
    assert_int_equal(write_and_tell(&f, &r, 1, "third"), HTE_COMPLETED);
    usleep(20000);
    assert_int_equal(target_notifications(&f.target, text, sizeof(text)), 1);
    assert_string_equal(text, "first/");
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_alike),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_half_lost),
        cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_notified_when_all_is_well),
        cmocka_unit_test(test_full_inbox),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
