/* SPDX-License-Identifier: BSD-3-Clause */
/* Letters and answers that are late, or say what is not so: nothing is written where it does not belong, nobody is told
 * that something is well which is not, and what may be sent again is. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doors.h"
#include "fixture.h"
#include "wire/hte_letter.h"

#define BLOCK 4096

/* What the target's answers have wrong: SPOIL_ANSWERS in its environment. */
enum { NOTHING, OF_ANOTHER, BEYOND, BYTES_FOR_A_WRITE, OF_ANOTHER_GUEST };

static const struct target_buffer buffers[] = {{.length = M}, {.length = M, .permission = HTE_PERM_GLOBAL_RO}};

/* ---- in the target's process ---- */

static void spoil_bytes(int how, struct hte_letter_head *head)
{
    if (how == OF_ANOTHER) {
        head->conn ^= 1ull << 40;
    } else if (how == BEYOND) {
        head->offset += BLOCK;
    }
}

/* That has receipts. */
static void spoil_ack(int how, struct hte_letter_head *head, struct hte_letter *letter)
{
    static unsigned    acks;
    struct hte_receipt receipt;

    memcpy(&receipt, letter->bytes, sizeof(receipt)); /* it is not aligned there */
    if (how == BYTES_FOR_A_WRITE) {
        head->kind   = HTE_LETTER_BYTES_ARE;
        head->token  = receipt.token;
        head->offset = 0;
    } else if (how == OF_ANOTHER_GUEST && ++acks == 2) {
        ++head->region;
        receipt.token = ~0ull; /* what it knew is lost */
        memcpy(letter->bytes, &receipt, sizeof(receipt));
    }
}

static void spoil_answer(struct hte_letter_head *head, struct hte_letter *letter)
{
    int how = atoi(getenv("SPOIL_ANSWERS"));

    if (head->kind == HTE_LETTER_BYTES_ARE) {
        spoil_bytes(how, head);
    } else if (head->kind == HTE_LETTER_ACK && letter != NULL) {
        spoil_ack(how, head, letter);
    }
}

/* ---- in the test's ---- */

static void open_spoiling(struct fixture *f, int answers)
{
    static const struct hte_option options[] = {
        {"threads", "1"}, {"same_host", "off"}, {"moves", "messages"}, {"slice_timeout_ms", "2000"}};
    char how[16];

    snprintf(how, sizeof(how), "%d", answers);
    setenv("SPOIL_ANSWERS", how, 1);
    door_reset();
    open_with(f, options, 4, buffers, 2);
    unsetenv("SPOIL_ANSWERS");
    target_fill(&f->target, 0, 0, M, 3);
    target_fill(&f->target, 1, 0, M, 4);
    pattern_fill(f->memory, 0, SIZE, 5);
}

static void close_spoiling(struct fixture *f)
{
    assert_true(target_verify(&f->target, 1, 0, M, 4)); /* nobody may write there */
    target_stop(&f->target);
    close_fixture(f);
}

static void expect(const struct fixture *f, const struct hte_request *r, int code, int error)
{
    struct hte_batch_status status = transfer(f, r, 1);

    assert_int_equal(status.code, code);
    assert_int_equal(status.error, error);
}

/* An answer that is wrong is none. */
static void expect_no_answer(int answers, int opcode)
{
    struct hte_request r;
    struct fixture     f;

    open_spoiling(&f, answers);
    r = request(&f, opcode, 0, 0, BLOCK);
    expect(&f, &r, HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    assert_true(pattern_verify(f.memory, 0, SIZE, 5));
    close_spoiling(&f);
}

static void test_wrong_answers(void **state)
{
    (void)state;
    expect_no_answer(OF_ANOTHER, HTE_READ);
    expect_no_answer(BEYOND, HTE_READ);
    expect_no_answer(BYTES_FOR_A_WRITE, HTE_WRITE);
}

/* A target that has forgotten who wrote knows nothing of what it had taken: all of it is sent again. */
static void test_forgotten(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_spoiling(&f, OF_ANOTHER_GUEST);
    r = request(&f, HTE_WRITE, 0, 0, BLOCK);
    transfer_ok(&f, &r, 1);
    transfer_ok(&f, &r, 1);
    assert_int_equal(door.letters_of[HTE_LETTER_DATA], 3);
    assert_true(target_verify(&f.target, 0, 0, BLOCK, 5));
    close_spoiling(&f);
}

/* ---- letters that are wrong ---- */

static struct hte_letter_head last_ask, last_data;
static unsigned               data, spoil_at;

static void note(struct hte_letter_head *head, struct hte_letter *letter)
{
    (void)letter;
    if (head->kind == HTE_LETTER_ASK) {
        last_ask = *head;
    } else if (head->kind == HTE_LETTER_DATA) {
        last_data = *head;
    }
}

/* The memory of another registration: it was registered anew. Of DATA, the one of this number. */
static void spoil_region(struct hte_letter_head *head, struct hte_letter *letter)
{
    (void)letter;
    if (head->kind == HTE_LETTER_ASK || (head->kind == HTE_LETTER_DATA && data++ == spoil_at)) {
        head->region ^= 2;
    }
}

static void spoil_address(struct hte_letter_head *head, struct hte_letter *letter)
{
    (void)letter;
    if (head->kind == HTE_LETTER_DATA) {
        head->addr   = last_ask.addr;
        head->region = last_ask.region;
    }
}

/* As if a later one had come before it. */
static void spoil_epoch(struct hte_letter_head *head, struct hte_letter *letter)
{
    (void)letter;
    if (head->kind == HTE_LETTER_DATA && data++ == 0) {
        --head->epoch;
    }
}

static void test_of_another_registration(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_spoiling(&f, NOTHING);
    door.spoil = spoil_region;
    data       = 0;
    spoil_at   = 0;
    r          = request(&f, HTE_WRITE, 0, 0, BLOCK);
    expect(&f, &r, HTE_INVALID, HTE_ERR_RANGE);
    assert_true(target_verify(&f.target, 0, 0, M, 3));
    r.opcode = HTE_READ;
    expect(&f, &r, HTE_INVALID, HTE_ERR_RANGE);
    assert_true(pattern_verify(f.memory, 0, SIZE, 5));
    close_spoiling(&f);
}

/* One of several letters of an operation is refused, and it is the last. */
static void test_refused_at_the_end(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_spoiling(&f, NOTHING);
    door.spoil = spoil_region;
    data       = 0;
    spoil_at   = M / HTE_LETTER_BYTES - 1;
    r          = request(&f, HTE_WRITE, 0, 0, M);
    expect(&f, &r, HTE_INVALID, HTE_ERR_RANGE);
    assert_int_equal(data, spoil_at + 1);
    close_spoiling(&f);
}

static void test_read_only(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_spoiling(&f, NOTHING);
    door.spoil      = note;
    r               = request(&f, HTE_READ, 0, 0, BLOCK);
    r.target_offset = f.target.addr[1];
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(f.memory, 0, BLOCK, 4));
    door.spoil = spoil_address;
    r          = request(&f, HTE_WRITE, 2 * BLOCK, 0, BLOCK);
    expect(&f, &r, HTE_INVALID, HTE_ERR_PERMISSION);
    assert_true(target_verify(&f.target, 0, 0, M, 3));
    close_spoiling(&f);
}

/* ---- late ---- */

/* It is refused, and sent again as one of now. */
static void test_late_letter(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_spoiling(&f, NOTHING);
    r = request(&f, HTE_WRITE, 0, 0, BLOCK);
    transfer_ok(&f, &r, 1);
    door.spoil = spoil_epoch;
    data       = 0;
    r          = request(&f, HTE_WRITE, BLOCK, BLOCK, BLOCK);
    transfer_ok(&f, &r, 1);
    assert_int_equal(data, 2);
    assert_true(target_verify(&f.target, 0, 0, 2 * BLOCK, 5));
    close_spoiling(&f);
}

/* A WRITE that was given up: its letters are those of a time that is over. */
static void test_given_up(void **state)
{
    struct hte_request r;
    struct fixture     f;
    uint64_t           before;

    (void)state;
    open_spoiling(&f, NOTHING);
    door.spoil = note;
    r          = request(&f, HTE_WRITE, 0, 0, BLOCK);
    transfer_ok(&f, &r, 1);
    before = last_data.epoch;
    target_pause(&f.target);
    expect(&f, &r, HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    target_resume(&f.target);
    transfer_ok(&f, &r, 1);
    assert_true(last_data.epoch > before);
    close_spoiling(&f);
}

/* What UCX has not sent by then is for nobody. */
static void test_not_sent(void **state)
{
    static const struct hte_option    options[] = {{"threads", "1"},
                                                   {"same_host", "off"},
                                                   {"moves", "messages"},
                                                   {"UCX_TLS", "tcp"},
                                                   {"slice_timeout_ms", "2000"}};
    static const struct target_buffer all       = {.length = SIZE};
    struct hte_request                r;
    struct fixture                    f;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    door_reset();
    setenv("UCX_TCP_SNDBUF", "64k", 1);
    setenv("UCX_TCP_RCVBUF", "64k", 1);
    open_with(&f, options, 5, &all, 1);
    unsetenv("UCX_TCP_SNDBUF");
    unsetenv("UCX_TCP_RCVBUF");
    target_fill(&f.target, 0, 0, SIZE, 3);
    pattern_fill(f.memory, 0, SIZE, 5);
    r = request(&f, HTE_WRITE, 0, 0, BLOCK);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    r = request(&f, HTE_WRITE, 0, 0, 4 * M);
    expect(&f, &r, HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    target_resume(&f.target);
    r = request(&f, HTE_WRITE, 4 * M, 4 * M, BLOCK); /* behind all of it */
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 4 * M, BLOCK, 5));
    assert_true(target_verify(&f.target, 0, 4 * M - 512 * K, 512 * K, 3)); /* the last of it */
    target_stop(&f.target);
    close_fixture(&f);
}

/* The bytes that a READ was given up for come while the next one waits for others. */
static void test_late_answer(void **state)
{
    struct hte_request      r, next;
    struct hte_batch_status status;
    struct fixture          f;
    hte_batch_t             batch;

    (void)state;
    open_spoiling(&f, NOTHING);
    r = request(&f, HTE_READ, 0, 0, BLOCK);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    expect(&f, &r, HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    pattern_fill(f.memory, 0, SIZE, 5);
    next = request(&f, HTE_READ, BLOCK, BLOCK, BLOCK);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    OK(hte_batch_submit(f.engine, batch, &next, 1));
    usleep(100000); /* posted */
    target_resume(&f.target);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_COMPLETED);
    OK(hte_batch_free(f.engine, batch));
    assert_true(pattern_verify(f.memory, 0, BLOCK, 5)); /* nobody asks for that any more */
    assert_true(pattern_verify(f.memory + BLOCK, BLOCK, BLOCK, 3));
    close_spoiling(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_of_another_registration),
        cmocka_unit_test(test_refused_at_the_end),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_late_letter),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_not_sent),
        cmocka_unit_test(test_late_answer),
    };

    door_reset();
    if (getenv("SPOIL_ANSWERS") != NULL) {
        door.spoil = spoil_answer;
    }
    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
