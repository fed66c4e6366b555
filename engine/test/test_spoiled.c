/* SPDX-License-Identifier: BSD-3-Clause */
/* Letters whose lists of ranges are wrong: the target refuses them, and touches nothing. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "doors.h"
#include "fixture.h"
#include "wire/hte_letter.h"

enum { COUNT = 16, BLOCK = 4096 };

/* The initiator's is the first; in the second nothing may change. */
static const struct target_buffer buffers[] = {{.length = M}, {.length = M}};

static uint64_t other_buffer;
static unsigned kind, spoiled;

enum { LONGER, HUGE_ONE, NOT_REGISTERED, OTHER_BUFFER, TOO_MANY, MORE_THAN_COME, EMPTY, SHORTER, KINDS };

/* As long as it was; the list is right, but for its length. */
static void spread(struct hte_letter_head *head, struct hte_letter_part *part)
{
    uint64_t left = head->parts * sizeof(*part) + COUNT * BLOCK, at = part[0].addr;
    unsigned i;

    head->parts = 10 * HTE_LETTER_PARTS_MAX;
    left -= head->parts * sizeof(*part);
    for (i = 0; i < head->parts; ++i, at += part[i - 1].length, left -= part[i - 1].length) {
        part[i] = (struct hte_letter_part){.addr = at, .length = i + 1u == head->parts ? left : 1};
    }
}

static void spoil_parts(struct hte_letter_head *head, struct hte_letter_part *part)
{
    switch (kind) {
    case LONGER:
        part[head->parts - 1].length += 8;
        break;
    case HUGE_ONE:
        part[3].length = 1ull << 63;
        break;
    case NOT_REGISTERED:
        part[3].addr = 8;
        break;
    case OTHER_BUFFER:
        part[3].addr = other_buffer;
        break;
    case TOO_MANY:
        if (head->kind == HTE_LETTER_DATA) {
            spread(head, part);
        } else {
            head->parts = HTE_LETTER_PARTS_MAX + 1;
        }
        break;
    case MORE_THAN_COME:
        head->parts = 65535;
        break;
    case EMPTY:
        part[1].length += part[2].length;
        part[2].length = 0;
        break;
    case SHORTER:
        part[0].length -= 8;
        break;
    }
}

static void spoil(struct hte_letter_head *head, struct hte_letter *letter)
{
    static struct hte_letter_part part[10 * HTE_LETTER_PARTS_MAX];
    size_t                        size;

    if ((head->kind == HTE_LETTER_DATA || head->kind == HTE_LETTER_ASK) && head->parts > 4) {
        ++spoiled;
        size = (head->kind == HTE_LETTER_DATA ? 10 * HTE_LETTER_PARTS_MAX : head->parts) * sizeof(part[0]);
        memcpy(part, letter->bytes, size); /* they are not aligned there */
        spoil_parts(head, part);
        memcpy(letter->bytes, part, size);
    }
}

/* Each goes alone afterwards, and then it is right; where the initiator is not told, its time ends. */
static void spoil_some(struct fixture *f, int opcode)
{
    struct hte_request      requests[COUNT];
    struct hte_batch_status status;
    size_t                  i;

    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(f, opcode, 2 * i * BLOCK, 2 * i * BLOCK, BLOCK);
    }
    spoiled = 0;
    for (kind = 0; kind < KINDS; ++kind) {
        door.spoil = NULL;
        transfer_ok(f, requests, COUNT);
        door.spoil = spoil;
        status     = transfer(f, requests, COUNT);
        assert_int_equal(spoiled, kind + 1);
        assert_int_equal(status.finished, COUNT);
        assert_true(status.code == HTE_COMPLETED || status.code == HTE_TIMEOUT);
        assert_true(status.code == HTE_COMPLETED || kind == TOO_MANY || kind == MORE_THAN_COME);
        assert_true(target_verify(&f->target, 0, 0, M, 3)); /* as it was, and what was to become of it */
        assert_true(target_verify(&f->target, 1, 0, M, 4));
        assert_true(pattern_verify(f->memory, 0, SIZE, 3));
    }
    door.spoil = NULL;
    transfer_ok(f, requests, COUNT);
}

static void test_spoiled(void **state)
{
    static const struct hte_option options[] = {
        {"threads", "1"}, {"devices", ""}, {"same_host", "off"}, {"moves", "messages"}, {"slice_timeout_ms", "1500"}};
    struct fixture f;

    (void)state;
    door_reset();
    open_with(&f, options, 5, buffers, 2);
    other_buffer = f.target.addr[1];
    target_fill(&f.target, 0, 0, M, 3);
    target_fill(&f.target, 1, 0, M, 4);
    pattern_fill(f.memory, 0, SIZE, 3);
    spoil_some(&f, HTE_WRITE);
    spoil_some(&f, HTE_READ);
    target_stop(&f.target);
    close_fixture(&f);
}

/* UCX is left to the engine's thread, however little it is. */
static void test_sender(void **state)
{
    static const struct hte_option options[] = {
        {"threads", "1"}, {"poll_us", "0"}, {"same_host", "off"}, {"moves", "messages"}};
    struct hte_request r;
    struct fixture     f;
    int                i;

    (void)state;
    door_reset();
    open_with(&f, options, 4, buffers, 1);
    r = request(&f, HTE_WRITE, 0, 0, 1);
    for (i = 0; i < 20; ++i) {
        transfer_ok(&f, &r, 1);
        assert_false(pthread_equal(door.sender, pthread_self()));
        usleep(2000);
    }
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spoiled), cmocka_unit_test(test_sender)};

    door_reset();
    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
