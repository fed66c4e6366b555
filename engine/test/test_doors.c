/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine asks of UCX, and what it does when UCX says no: see doors.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doors.h"
#include "engine/meta/hte_meta.h"
#include "fixture.h"

/* ---- memory ---- */

/* Nobody gets a key of LOCAL memory, and no more is asked for than is needed. */
static void test_permissions(void **state)
{
    static const unsigned local  = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
    static const unsigned remote = UCP_MEM_MAP_PROT_REMOTE_READ | UCP_MEM_MAP_PROT_REMOTE_WRITE;
    struct hte_memory     memory = {.addr = aligned_alloc(4096, M), .length = M, .permission = HTE_PERM_LOCAL};
    struct hte_engine    *engine;

    (void)state;
    door_reset();
    create(&engine, NULL, 0);
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.keys_packed, 0);
    assert_int_equal(door.prot, local);
    OK(hte_memory_unregister(engine, memory.addr));
    memory.permission = HTE_PERM_GLOBAL_RO;
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.keys_packed, 1);
    assert_int_equal(door.prot, local | UCP_MEM_MAP_PROT_REMOTE_READ);
    OK(hte_memory_unregister(engine, memory.addr));
    memory.permission = HTE_PERM_GLOBAL_RW;
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.prot, local | remote);
    hte_destroy(engine);
    free(memory.addr);
}

/* LOCAL memory is good for requests all the same. */
static void test_local_memory_works(void **state)
{
    struct hte_memory  memory = {.addr = aligned_alloc(4096, M), .length = M, .permission = HTE_PERM_LOCAL};
    struct hte_request r;
    struct fixture     f;

    (void)state;
    door_reset();
    open_fixture(&f);
    OK(hte_memory_register(f.engine, &memory));
    pattern_fill(memory.addr, 0, M, 3);
    r       = request(&f, HTE_WRITE, 0, 0, M);
    r.local = memory.addr;
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 3));
    memset(memory.addr, 0, M);
    r.opcode = HTE_READ;
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(memory.addr, 0, M, 3));
    target_stop(&f.target);
    close_fixture(&f);
    free(memory.addr);
}

/* ---- endpoints ---- */

/* Options name the transport, which UCX_TLS would override. */
static void open_over(struct fixture *f, const struct hte_option *options, size_t n_options,
                      const struct target_buffer *buffers, unsigned n_buffers)
{
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    door_reset();
    open_with(f, options, n_options, buffers, n_buffers);
}

/* Every endpoint is closed in a way that UCX accepts: over plain shared memory it does not close by force. */
static void test_breakdowns(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "sm,self"}, {"threads", "1"}};
    struct hte_request             r;
    struct fixture                 f;
    unsigned                       i;

    (void)state;
    open_over(&f, options, 2, &(const struct target_buffer){.length = SIZE}, 1);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    for (i = 0; i < 3; ++i) {
        door.flushes_to_fail = 1;
        transfer_ok(&f, &r, 1);
    }
    assert_true(door.eps_created >= 4);
    assert_true(door.least_room >= 1024); /* zeros behind what the peer gave */
    hte_destroy(f.engine);
    assert_int_equal(door.eps_closed, door.eps_created);
    target_stop(&f.target);
    free(f.memory);
}

/* What cannot be sent comes back, and is sent again. */
static void test_lost_letters(void **state)
{
    static const struct hte_option options[] = {{"moves", "messages"}, {"threads", "1"}};
    struct hte_request             r[2];
    struct fixture                 f;
    unsigned                       i;

    (void)state;
    door_reset();
    open_with(&f, options, 2, &(const struct target_buffer){.length = SIZE}, 1);
    r[0] = request(&f, HTE_WRITE, 0, 0, M);
    r[1] = request(&f, HTE_READ, M, M, M);
    target_fill(&f.target, 0, M, M, 7);
    for (i = 0; i < 5; ++i) {
        pattern_fill(f.memory, 0, M, i);
        memset(f.memory + M, 0, M);
        door.letters_to_fail = 3;
        transfer_ok(&f, r, 2);
        assert_int_equal(door.letters_to_fail, 0);
        assert_true(target_verify(&f.target, 0, 0, M, i));
        assert_true(pattern_verify(f.memory + M, M, M, 7));
    }
    assert_int_equal(door.puts[0], 0);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- what becomes of a request ---- */

static hte_batch_t submit(const struct fixture *f, int opcode, size_t length)
{
    struct hte_request r = request(f, opcode, 0, 0, length);
    hte_batch_t        batch;

    OK(hte_batch_alloc(f->engine, 1, &batch));
    OK(hte_batch_submit(f->engine, batch, &r, 1));
    return batch;
}

static struct hte_status status_of(const struct fixture *f, hte_batch_t batch)
{
    struct hte_status status;

    OK(hte_request_status(f->engine, batch, 0, &status));
    return status;
}

static void expect_end(const struct fixture *f, hte_batch_t batch, int code, int error)
{
    struct hte_batch_status all;
    struct hte_status       status;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &all));
    status = status_of(f, batch);
    assert_int_equal(status.code, code);
    assert_string_equal(hte_error_string(status.error), hte_error_string(error));
    assert_int_equal(all.code, code);
    assert_int_equal(all.error, error);
    OK(hte_batch_free(f->engine, batch));
}

/* Each code of enum hte_status_code, in the life of one target. */
static void test_every_code(void **state)
{
    static const struct hte_option options[] = {
        {"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"window", "1"}, {"slice_timeout_ms", "4000"}};
    static const struct target_buffer buffers[] = {{.length = SIZE}, {.length = M}};
    hte_batch_t                       first, second, third;
    struct fixture                    f;
    unsigned                          i;

    (void)state;
    open_over(&f, options, 4, buffers, 2);
    expect_end(&f, submit(&f, HTE_READ, M), HTE_COMPLETED, HTE_OK);
    target_pause(&f.target);
    first  = submit(&f, HTE_READ, M);
    second = submit(&f, HTE_READ, M);
    third  = submit(&f, HTE_READ, M);
    for (i = 0; i < PATIENCE && status_of(&f, first).code == HTE_WAITING; ++i) {
        usleep(1000);
    }
    assert_int_equal(status_of(&f, first).code, HTE_PENDING);
    assert_int_equal(status_of(&f, second).code, HTE_WAITING);
    OK(hte_batch_cancel(f.engine, second));
    expect_end(&f, second, HTE_CANCELED, HTE_ERR_CANCELED);
    expect_end(&f, first, HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    target_kill(&f.target);
    OK(hte_batch_wait(f.engine, third, PATIENCE, NULL));
    assert_int_equal(status_of(&f, third).code, HTE_FAILED);
    OK(hte_batch_free(f.engine, third));
    close_fixture(&f);
}

/* The target took its buffer back, and UCX says no: the target is asked, and the request is INVALID, not FAILED. */
static void test_stale_descriptor(void **state)
{
    static const struct target_buffer buffers[] = {{.length = SIZE}, {.length = M}};
    struct hte_request                r;
    struct fixture                    f;

    (void)state;
    door_reset();
    open_with(&f, NULL, 0, buffers, 2);
    expect_end(&f, submit(&f, HTE_WRITE, M), HTE_COMPLETED, HTE_OK);
    door.bad_rail = 0;
    expect_end(&f, submit(&f, HTE_WRITE, M), HTE_FAILED, HTE_ERR_ENDPOINT); /* the target still has it */
    target_unregister(&f.target, 0);
    usleep(200000); /* the target was just asked */
    expect_end(&f, submit(&f, HTE_WRITE, M), HTE_INVALID, HTE_ERR_RANGE);
    r               = request(&f, HTE_WRITE, 0, 0, M);
    door.bad_rail   = -1;
    r.target_offset = f.target.addr[1];
    transfer_ok(&f, &r, 1);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- two devices, one of which fails ---- */

static struct hte_nic_load load_of(struct hte_engine *engine, unsigned device)
{
    struct hte_nic_load loads[DOOR_RAILS];
    size_t              count = DOOR_RAILS;

    OK(hte_nic_load(engine, loads, &count));
    assert_int_equal(count, DOOR_RAILS);
    return loads[device];
}

/* Every request goes through on the other one; the bad one is charged, paused, tried again after the pause, and paused
 * longer. */
static void test_failing_device(void **state)
{
    static const struct hte_option options[] = {{"devices", "lo,lo+lo"},  {"policy", "round_robin"},
                                                {"threads", "1"},         {"UCX_TLS", "tcp,self"},
                                                {"rail_pause_ms", "400"}, {"rail_pause_max_ms", "60000"}};
    struct hte_counters            counters  = {.size = sizeof(counters)};
    struct hte_request             r;
    struct fixture                 f;
    int                            tried;

    (void)state;
    if (getenv("UCX_TLS") != NULL || getenv("UCX_NET_DEVICES") != NULL) {
        skip();
    }
    door_reset();
    open_with(&f, options, 6, &(const struct target_buffer){.length = SIZE}, 1);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    assert_true(door.puts[0] > 0 && door.puts[1] > 0);
    door.bad_rail = 1;
    pattern_fill(f.memory, 0, M, 4);
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 4));
    OK(hte_counters(f.engine, &counters));
    assert_true(counters.slices_retried >= 5);
    assert_true(load_of(f.engine, 1).errors >= 5);
    assert_int_equal(load_of(f.engine, 1).pauses, 1);
    assert_int_equal(load_of(f.engine, 1).state, HTE_DEVICE_PAUSED);
    assert_int_equal(load_of(f.engine, 0).state, HTE_DEVICE_UP);
    assert_int_equal(load_of(f.engine, 0).errors, 0);

    tried = door.puts[1];
    transfer_ok(&f, &r, 1);
    if (load_of(f.engine, 1).state == HTE_DEVICE_PAUSED) {
        assert_int_equal(door.puts[1], tried); /* left alone */
    }
    usleep(500000);
    transfer_ok(&f, &r, 1);
    assert_true(door.puts[1] > tried);
    assert_int_equal(load_of(f.engine, 1).pauses, 2);
    assert_true(load_of(f.engine, 1).pause_left_ms > 400); /* the second is longer */

    door.bad_rail = -1;
    usleep(900000);
    tried = door.puts[1];
    transfer_ok(&f, &r, 1);
    assert_true(door.puts[1] > tried);
    assert_int_equal(load_of(f.engine, 1).state, HTE_DEVICE_UP);
    target_stop(&f.target);
    close_fixture(&f);
}

/* Eight threads with a slice each, and a target that stands still: by the load of all they share out the devices; each
 * by its own, all would take the first. */
static void test_load_of_all_threads(void **state)
{
    static const struct hte_option options[] = {{"devices", "lo,lo+lo"}, {"policy", "load"},
                                                {"threads", "8"},        {"window", "1"},
                                                {"UCX_TLS", "tcp,self"}, {"shutdown_timeout_ms", "200"}};
    struct fixture                 f;
    unsigned                       i;

    (void)state;
    if (getenv("UCX_TLS") != NULL || getenv("UCX_NET_DEVICES") != NULL) {
        skip();
    }
    door_reset();
    open_with(&f, options, 6, &(const struct target_buffer){.length = SIZE}, 1);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    target_pause(&f.target);
    submit(&f, HTE_WRITE, SIZE);
    for (i = 0; i < 1000 && load_of(f.engine, 0).inflight + load_of(f.engine, 1).inflight < 8 * 64 * K; ++i) {
        usleep(1000);
    }
    assert_in_range(load_of(f.engine, 1).inflight, 2 * 64 * K, 6 * 64 * K);
    hte_destroy(f.engine);
    target_kill(&f.target);
    free(f.memory);
}

/* ---- notifications ---- */

static void test_notifications(void **state)
{
    struct hte_notification *own;
    struct hte_request       r;
    struct fixture           f;
    char                     text[256];
    hte_batch_t              batch;
    size_t                   count;
    int                      i;

    (void)state;
    door_reset();
    open_fixture(&f);
    OK(hte_notify_send(f.engine, f.segment, "name\n", "text with \" and \n"));
    assert_int_equal(target_notifications(&f.target, text, sizeof(text)), 1);
    assert_string_equal(text, "name\n/text with \" and \n");
    r = request(&f, HTE_WRITE, 0, 0, M);
    OK(hte_batch_alloc(f.engine, 2, &batch));
    OK(hte_batch_submit_notify(f.engine, batch, &r, 1, "batch", "done"));
    assert_int_equal(hte_batch_submit_notify(f.engine, batch, &r, 1, "batch", "again"), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    OK(hte_batch_free(f.engine, batch));
    for (i = 0; i < 500 && target_notifications(&f.target, text, sizeof(text)) == 0; ++i) {
        usleep(10000);
    }
    assert_string_equal(text, "batch/done");
    OK(hte_notify_send(f.engine, HTE_SEGMENT_LOCAL, "self", ""));
    OK(hte_notify_drain(f.engine, &own, &count));
    assert_int_equal(count, 1);
    assert_string_equal(own[0].name, "self");
    hte_notify_free(own, count);
    assert_int_equal(hte_notify_send(f.engine, 99, "", ""), HTE_ERR_BAD_HANDLE);
    assert_int_equal(hte_notify_send(f.engine, f.segment, NULL, ""), HTE_ERR_INVALID_ARGUMENT);
    target_stop(&f.target);
    close_fixture(&f);
}

static void notify(const struct fixture *f, hte_segment_t segment, uint64_t addr, const char *text)
{
    struct hte_request r = request(f, HTE_WRITE, 0, 0, 100);
    hte_batch_t        batch;

    r.target        = segment;
    r.target_offset = addr;
    OK(hte_batch_alloc(f->engine, 1, &batch));
    OK(hte_batch_submit_notify(f->engine, batch, &r, 1, "name", text));
    OK(hte_batch_wait(f->engine, batch, PATIENCE, NULL));
    OK(hte_batch_free(f->engine, batch));
}

static struct hte_counters counters_of(const struct fixture *f)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    OK(hte_counters(f->engine, &counters));
    return counters;
}

/* Until so many have been sent, or dropped: answers come later. */
static void wait_for_notices(const struct fixture *f, uint64_t sent, uint64_t dropped)
{
    for (int i = 0; i < PATIENCE && counters_of(f).notices_sent < sent; ++i) {
        usleep(10000);
    }
    for (int i = 0; i < PATIENCE && counters_of(f).notices_dropped < dropped; ++i) {
        usleep(10000);
    }
    assert_int_equal(counters_of(f).notices_sent, sent);
    assert_int_equal(counters_of(f).notices_dropped, dropped);
}

/* A target that stands still delays the others for one try, not for one per notification; what it was to get it gets
 * when it goes on; what cannot be delivered is counted. */
static void test_slow_target(void **state)
{
    static const struct hte_option options[] = {{"handshake_timeout_ms", "1000"}, {"threads", "1"}};
    struct target                  other;
    hte_segment_t                  segment;
    struct fixture                 f;
    char                           text[256];
    int                            i, count = 0;

    (void)state;
    door_reset();
    open_with(&f, options, 2, &(const struct target_buffer){.length = SIZE}, 1);
    target_start(&other, &(const struct target_buffer){.length = SIZE}, 1);
    OK(hte_segment_open(f.engine, other.name, &segment));
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    OK(hte_segment_warm(f.engine, segment, PATIENCE));
    door.is_fake = 1; /* the data would have to wait, too */
    target_pause(&f.target);
    for (i = 0; i < 8; ++i) {
        notify(&f, f.segment, f.target.addr[0], i % 2 == 0 ? "even" : "odd");
    }
    notify(&f, segment, other.addr[0], "to the other");
    for (i = 0; i < 500 && target_notifications(&other, text, sizeof(text)) == 0; ++i) {
        usleep(10000);
    }
    assert_string_equal(text, "name/to the other"); /* before eight tries of a second */
    target_resume(&f.target);
    for (i = 0; i < PATIENCE / 10 && count < 8; ++i) {
        count += target_notifications(&f.target, text, sizeof(text));
        usleep(10000);
    }
    assert_int_equal(count, 8);
    wait_for_notices(&f, 9, 0);
    target_pause(&other);
    notify(&f, segment, other.addr[0], "to nobody");
    wait_for_notices(&f, 9, 1);
    target_kill(&other);
    hte_destroy(f.engine);
    target_stop(&f.target);
    free(f.memory);
}

/* ---- descriptors of strangers ---- */

/* Opens the target's segment as one would describe it who cut off its first address and its first key. */
static int open_cut(struct fixture *f, size_t address, size_t key)
{
    struct hte_meta_options options = {.name = "127.0.0.1"};
    struct hte_descriptor  *descriptor;
    struct hte_request      r = request(f, HTE_WRITE, 0, 0, 100);
    struct hte_batch_status status;
    struct hte_blob        *blobs[2];
    struct hte_meta        *meta;
    struct hte_why          why = {""};
    int                     error;

    assert_int_equal(hte_meta_open(&options, &meta, &why), 0);
    assert_int_equal(hte_meta_fetch(meta, f->target.name, &descriptor, &why), 0);
    blobs[0]         = &descriptor->workers[0].address;
    blobs[1]         = &descriptor->buffers[0].keys[0];
    blobs[0]->length = address < blobs[0]->length ? address : blobs[0]->length;
    blobs[1]->length = key < blobs[1]->length ? key : blobs[1]->length;
    assert_int_equal(hte_meta_publish(meta, descriptor, &why), 0);
    error = hte_segment_open(f->engine, hte_meta_name(meta), &r.target);
    if (error == HTE_OK) {
        status = transfer(f, &r, 1);
        error  = status.error;
        OK(hte_segment_close(f->engine, r.target));
    }
    hte_descriptor_destroy(descriptor);
    hte_meta_close(meta);
    return error;
}

static void test_cut_descriptors(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"retry_count", "0"}};
    struct fixture                 f;
    size_t                         length;

    (void)state;
    open_over(&f, options, 3, &(const struct target_buffer){.length = SIZE}, 1);
    OK(open_cut(&f, SIZE, SIZE));
    for (length = 1; length < 10; ++length) {
        assert_int_equal(open_cut(&f, length, SIZE), HTE_ERR_MALFORMED_JSON);
        assert_int_equal(open_cut(&f, SIZE, length < 9 ? length : 1), HTE_ERR_MALFORMED_JSON);
    }
    for (length = 10; length < 60; length += 7) {
        assert_int_not_equal(open_cut(&f, length, SIZE), HTE_ERR_MALFORMED_JSON); /* ends, one way or the other */
        assert_int_not_equal(open_cut(&f, SIZE, length - 1), HTE_ERR_MALFORMED_JSON);
    }
    target_kill(&f.target); /* UCX 1.13 may abort it: it was connected to by what the cut addresses came to */
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permissions),         cmocka_unit_test(test_local_memory_works),
        cmocka_unit_test(test_breakdowns),          cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_stale_descriptor),    cmocka_unit_test(test_failing_device),
        cmocka_unit_test(test_load_of_all_threads), cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_lost_letters),        cmocka_unit_test(test_slow_target),
        cmocka_unit_test(test_cut_descriptors),
    };

    door_reset();
    target_main(argc, argv);
    setenv("HTE_MOVES", "rma", 1); /* doors are in UCX's put and flush */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
