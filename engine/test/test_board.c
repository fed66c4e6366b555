/* SPDX-License-Identifier: BSD-3-Clause */
/* The same-host path from below: whose memory it is when the pid has become another's, and who waits for whom. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hte_now.h"
#include "local/hte_board.h"
#include "local/hte_host.h"
#include "wire/hte_near.h"
#include "wire/hte_near_map.h"

#define LENGTH 4096

/* A process with a board and one region; it does what it is told by a letter. */
struct owner {
    pid_t                  pid;
    int                    orders, answers;
    struct hte_descriptor  descriptor;
    struct hte_view        view;
    struct hte_desc_buffer buffer;
    char                   host[HTE_HOST_MAX + 1];
};

struct facts {
    uint64_t board, guard, secret, addr, id, slot;
};

static const char *program;

static void serve(struct hte_board *board, struct hte_region *region, int orders, int answers)
{
    char  order, done = 'd';
    char *executed[] = {(char *)program, (char *)"stranger", NULL};

    while (read(orders, &order, 1) == 1) {
        switch (order) {
        case 'r': /* takes the memory back */
            hte_board_remove(board, &region, 1);
            break;
        case 's': /* has another secret: another process at the same addresses */
            board->guard->secret ^= 2;
            break;
        case 'g': /* has no guard: likewise, elsewhere */
            munmap(board->guard, LENGTH);
            break;
        case 'x': /* is another program */
            dup2(orders, 0);
            dup2(answers, 1);
            execv("/proc/self/exe", executed);
            _exit(5);
        case 'l': /* what is in the memory */
            done = *(char *)region->addr;
            break;
        }
        if (write(answers, &done, 1) != 1) {
            _exit(6);
        }
    }
    _exit(0);
}

static void be_owner(int orders, int answers)
{
    void              *addr   = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct hte_memory  memory = {.addr = addr, .length = LENGTH};
    struct hte_region *region;
    struct hte_board   board;
    struct facts       facts;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    region = hte_region_create(&memory);
    hte_board_open(&board);
    if (region == NULL || board.page == NULL) {
        _exit(2);
    }
    hte_board_add(&board, region);
    memset(addr, 'o', LENGTH);
    facts = (struct facts){.board  = (uint64_t)board.fd,
                           .guard  = (uint64_t)board.guard,
                           .secret = board.guard->secret,
                           .addr   = region->addr,
                           .id     = region->id,
                           .slot   = region->slot};
    if (write(answers, &facts, sizeof(facts)) != sizeof(facts)) {
        _exit(3);
    }
    serve(&board, region, orders, answers);
}

/* After 'x': says that it is there. */
static void be_stranger(void)
{
    char done = 'd';

    while (write(1, &done, 1) == 1 && read(0, &done, 1) == 1) {
    }
    _exit(0);
}

static void start(struct owner *owner)
{
    int          orders[2], answers[2];
    struct facts facts;

    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    owner->pid = fork();
    if (owner->pid == 0) {
        close(orders[1]);
        be_owner(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    owner->orders  = orders[1];
    owner->answers = answers[0];
    assert_int_equal(read(owner->answers, &facts, sizeof(facts)), sizeof(facts));
    hte_host_identity(owner->host);
    owner->descriptor = (struct hte_descriptor){.host    = {.identity = owner->host,
                                                            .pid      = (uint64_t)owner->pid,
                                                            .board    = facts.board,
                                                            .guard    = facts.guard,
                                                            .secret   = facts.secret},
                                                .buffers = &owner->buffer};
    owner->buffer     = (struct hte_desc_buffer){
            .addr = facts.addr, .length = LENGTH, .id = facts.id, .slot = facts.slot, .keys = NULL};
    owner->view = (struct hte_view){.descriptor = &owner->descriptor};
}

static char tell(struct owner *owner, char order)
{
    char answer;

    assert_int_equal(write(owner->orders, &order, 1), 1);
    assert_int_equal(read(owner->answers, &answer, 1), 1);
    return answer;
}

static void end(struct owner *owner)
{
    close(owner->orders);
    close(owner->answers);
    kill(owner->pid, SIGKILL);
    waitpid(owner->pid, NULL, 0);
}

static struct hte_near *open_near(struct owner *owner)
{
    char             why[128] = "";
    bool             is_gone  = true;
    struct hte_near *near     = hte_near_open(&owner->view, owner->host, &is_gone, why, sizeof(why));

    if (near == NULL) {
        fail_msg("%s", why);
    }
    assert_false(is_gone);
    return near;
}

static void expect_refusal(const struct owner *owner, const char *host, bool expected, char *why, size_t size)
{
    bool is_gone = !expected;

    assert_null(hte_near_open(&owner->view, host, &is_gone, why, size));
    assert_int_equal(is_gone, expected);
}

static char local[LENGTH];

/* Adds an item of one range. */
static void add(const struct owner *owner, struct hte_near_load *load, char *from, uint64_t offset, uint64_t length)
{
    unsigned at = ++load->n_ranges;

    load->local[at]             = (struct iovec){.iov_base = from, .iov_len = length};
    load->remote[at]            = (struct iovec){.iov_base = (char *)owner->buffer.addr + offset, .iov_len = length};
    load->item[load->n_items++] = (struct hte_near_item){.first  = at,
                                                         .count  = 1,
                                                         .length = length,
                                                         .region = owner->buffer.id,
                                                         .slot   = owner->buffer.slot,
                                                         .result = HTE_NEAR_NOT_MOVED};
}

/* Two items of half the buffer each. */
static int move(struct owner *owner, struct hte_near *near, bool is_write, int results[2])
{
    struct hte_near_load load;
    int                  error;

    hte_near_load_init(&load, is_write);
    add(owner, &load, local, 0, LENGTH / 2);
    add(owner, &load, local + LENGTH / 2, LENGTH / 2, LENGTH / 2);
    error      = hte_near_move(near, &load);
    results[0] = load.item[0].result;
    results[1] = load.item[1].result;
    return error;
}

static void expect_moves(struct owner *owner, struct hte_near *near)
{
    int results[2];

    memset(local, 'w', LENGTH);
    assert_int_equal(move(owner, near, true, results), HTE_OK);
    assert_int_equal(results[0], HTE_OK);
    assert_int_equal(results[1], HTE_OK);
    assert_int_equal(tell(owner, 'l'), 'w');
    memset(local, 0, LENGTH);
    assert_int_equal(move(owner, near, false, results), HTE_OK);
    assert_int_equal(local[LENGTH - 1], 'w');
}

/* Nothing is moved, and nothing said to have been. */
static void expect_dead(struct owner *owner, struct hte_near *near)
{
    int results[2], is_write;

    memset(local, 'z', LENGTH);
    for (is_write = 0; is_write < 2; ++is_write) {
        assert_int_equal(move(owner, near, is_write, results), HTE_ERR_DEAD_PEER);
        assert_int_equal(results[0], HTE_NEAR_NOT_MOVED);
        assert_int_equal(results[1], HTE_NEAR_NOT_MOVED);
    }
}

static void test_released(void **state)
{
    struct hte_near *near;
    struct owner     owner;
    int              results[2];

    (void)state;
    start(&owner);
    near = open_near(&owner);
    expect_moves(&owner, near);
    tell(&owner, 'r');
    assert_int_equal(move(&owner, near, true, results), HTE_OK);
    assert_int_equal(results[0], HTE_ERR_RANGE);
    assert_int_equal(results[1], HTE_ERR_RANGE);
    hte_near_close(near);
    end(&owner);
}

/* Of many items some are not to be moved, or cannot be; all the others are. */
static void test_some_bad(void **state)
{
    enum { ITEMS = 16, PART = LENGTH / ITEMS };
    static char          back[LENGTH];
    struct hte_near_load load;
    struct hte_near     *near;
    struct owner         owner;
    unsigned             i, bad;

    (void)state;
    start(&owner);
    near = open_near(&owner);
    for (bad = 0; bad < 1u << 6; ++bad) { /* kinds: good, of another registration, not mapped here, not there */
        memset(local, 'a' + (int)(bad % 26), LENGTH);
        hte_near_load_init(&load, true);
        for (i = 0; i < ITEMS; ++i) {
            add(&owner, &load, local + i * PART, i * PART, PART);
        }
        for (i = 0; i < 3; ++i) {
            load.item[5 * i + 1].region += (bad >> 2 * i) % 4 == 1;
            load.local[5 * i + 2].iov_base  = (bad >> 2 * i) % 4 == 2 ? (void *)8 : load.local[5 * i + 2].iov_base;
            load.remote[5 * i + 2].iov_base = (bad >> 2 * i) % 4 == 3 ? (void *)8 : load.remote[5 * i + 2].iov_base;
        }
        assert_int_equal(hte_near_move(near, &load), HTE_OK);
        for (i = 0; i < ITEMS; ++i) {
            static const int expected[] = {HTE_OK, HTE_ERR_RANGE, HTE_ERR_MEMORY, HTE_ERR_RANGE};

            assert_int_equal(load.item[i].result, i % 5 == 1 && i < 15 ? expected[(bad >> 2 * (i / 5)) % 4] : HTE_OK);
        }
        hte_near_load_init(&load, false);
        add(&owner, &load, back, 0, LENGTH);
        assert_int_equal(hte_near_move(near, &load), HTE_OK);
        for (i = 0; i < ITEMS; ++i) {
            assert_true(i % 5 == 1 || back[i * PART] == local[0]);
        }
    }
    hte_near_close(near);
    end(&owner);
}

/* The pid is another process's: with a guard at that address, without one, another program, nobody's. */
static void test_strangers(void **state)
{
    static const char orders[] = "sgx";
    struct hte_near  *near;
    struct owner      owner;
    char              why[128];
    unsigned          i;

    (void)state;
    for (i = 0; orders[i] != '\0'; ++i) {
        start(&owner);
        near = open_near(&owner);
        expect_moves(&owner, near);
        tell(&owner, orders[i]);
        expect_dead(&owner, near);
        if (orders[i] != 'x') {
            assert_int_equal(tell(&owner, 'l'), 'w');
        }
        hte_near_close(near);
        end(&owner);
    }
    start(&owner);
    near = open_near(&owner);
    end(&owner);
    expect_dead(&owner, near);
    hte_near_close(near);
    expect_refusal(&owner, owner.host, true, why, sizeof(why));
}

/* Not believed: another secret, another host, a file that is no board, a slot that is none. */
static void test_lies(void **state)
{
    struct hte_near *near;
    struct owner     owner;
    char             why[128];
    int              results[2];

    (void)state;
    start(&owner);
    owner.descriptor.host.secret ^= 2;
    expect_refusal(&owner, owner.host, true, why, sizeof(why));
    owner.descriptor.host.secret ^= 2;
    expect_refusal(&owner, "elsewhere", false, why, sizeof(why));
    assert_string_equal(why, "another host, or container");
    owner.descriptor.host.guard += LENGTH * 16;
    expect_refusal(&owner, owner.host, true, why, sizeof(why));
    owner.descriptor.host.guard -= LENGTH * 16;
    owner.descriptor.host.board = 0;
    expect_refusal(&owner, owner.host, false, why, sizeof(why));
    end(&owner);
    start(&owner);
    near              = open_near(&owner);
    owner.buffer.slot = 1ull << 32 | 1;
    assert_int_equal(move(&owner, near, true, results), HTE_OK);
    assert_int_equal(results[0], HTE_ERR_RANGE);
    hte_near_close(near);
    end(&owner);
}

/* ---- seats ---- */

static uint64_t remove_takes(struct hte_board *board, struct hte_region *region)
{
    uint64_t begin;

    hte_board_add(board, region);
    begin = hte_now();
    hte_board_remove(board, &region, 1);
    return hte_now() - begin;
}

/* Who moves bytes is waited for, who was killed in it is not, who stands in it not for ever. */
static void test_seats(void **state)
{
    struct hte_memory  memory = {.addr = local, .length = LENGTH};
    struct hte_region *region = hte_region_create(&memory);
    struct hte_board   board;
    struct hte_seat   *seat;
    unsigned           tries;
    pid_t              pid;

    (void)state;
    hte_board_open(&board);
    assert_non_null(board.page);
    pid = fork();
    if (pid == 0) {
        seat = hte_board_sit(board.page);
        hte_seat_begin(seat);
        usleep(200000);
        hte_seat_end(seat);
        hte_seat_begin(seat);
        raise(SIGSTOP);
        _exit(1);
    }
    while (atomic_load(&board.page->seats[0].busy) == 0) {
        usleep(1000);
    }
    if (atomic_load(&board.page->seats[0].busy) == 1) {
        remove_takes(&board, region);
        assert_int_not_equal(atomic_load(&board.page->seats[0].busy), 1);
    }
    waitpid(pid, NULL, WUNTRACED);
    assert_true(remove_takes(&board, region) >= HTE_BOARD_PATIENCE_NS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (tries = 0; tries < 10 && remove_takes(&board, region) >= HTE_BOARD_PATIENCE_NS; ++tries) {
        /* the machine may be busy */
    }
    assert_true(tries < 10);
    /* and his seat is free for another when all others are taken */
    while ((seat = hte_board_sit(board.page)) != NULL && seat != &board.page->seats[0]) {
    }
    assert_ptr_equal(seat, &board.page->seats[0]);
    assert_int_equal(atomic_load(&seat->busy) % 2, 0);
    assert_null(hte_board_sit(board.page));
    hte_board_rise(seat);
    assert_ptr_equal(hte_board_sit(board.page), seat);
    hte_board_close(&board);
    free(region);
}

/* ---- files ---- */

/* Of memory in a file: what the owner says of it need not be so. */
static void test_files(void **state)
{
    struct hte_desc_host   host   = {.pid = (uint64_t)getpid()};
    int                    fd     = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct hte_desc_buffer buffer = {.slot = 1, .length = LENGTH, .file = (uint64_t)fd};
    struct hte_link_ring   maps;
    struct stat            stat;
    char                  *mapped;

    (void)state;
    hte_ring_init(&maps);
    assert_int_equal(ftruncate(fd, LENGTH), 0);
    assert_int_equal(fstat(fd, &stat), 0);
    buffer.file_inode = stat.st_ino;
    buffer.id         = 1;
    assert_null(hte_near_map_find(&maps, &host, &buffer)); /* it may shrink */
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    buffer.id = 2;
    mapped    = hte_near_map_find(&maps, &host, &buffer);
    assert_non_null(mapped);
    mapped[LENGTH - 1] = 'x';
    assert_int_equal(pread(fd, &buffer.id, 1, LENGTH - 1), 1);
    assert_int_equal((char)buffer.id, 'x');
    buffer.id     = 3;
    buffer.length = LENGTH + 1; /* more than there is */
    assert_null(hte_near_map_find(&maps, &host, &buffer));
    buffer.id          = 4;
    buffer.length      = LENGTH;
    buffer.file_offset = 1; /* likewise */
    assert_null(hte_near_map_find(&maps, &host, &buffer));
    buffer.id          = 5;
    buffer.file_offset = 0;
    ++buffer.file_inode; /* the number is another file's by now */
    assert_null(hte_near_map_find(&maps, &host, &buffer));
    while (!hte_ring_is_empty(&maps)) {
        hte_near_unmap(HTE_OBJECT_OF(maps.next, struct hte_near_map, link));
    }
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released), cmocka_unit_test(test_some_bad), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_lies),     cmocka_unit_test(test_seats),    cmocka_unit_test(test_files),
    };

    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "stranger") == 0) {
        be_stranger();
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
