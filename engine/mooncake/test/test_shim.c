/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtransfer_engine.so as its users call it: two processes, nothing but transfer_engine_c.h, calls in the order in
 * which NIXL's Mooncake plugin makes them. Every byte is compared.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calls.h"

_Static_assert(sizeof(struct transfer_request) == 40 && offsetof(struct transfer_request, source) == 8 &&
                   offsetof(struct transfer_request, target_id) == 16 &&
                   offsetof(struct transfer_request, length) == 32,
               "transfer_request of Mooncake's ABI");
_Static_assert(sizeof(struct transfer_status) == 16 && offsetof(struct transfer_status, transferred_bytes) == 8,
               "transfer_status");
_Static_assert(sizeof(nic_load_stat_t) == 80 && offsetof(nic_load_stat_t, ewma_bandwidth_bps) == 72, "nic_load_stat");
_Static_assert(sizeof(notify_msg_t) == 16 && sizeof(buffer_entry_t) == 16 && sizeof(segment_desc_t) == 48, "others");

static void assert_notified(struct ends *e, const char *what)
{
    double end       = now() + PATIENCE_S;
    char   text[256] = "";
    int    count     = 0;

    while (count == 0 && now() < end) {
        count = peer_notifications(&e->peer, text, sizeof(text));
    }
    assert_int_equal(count, 1);
    assert_string_equal(text, what);
}

static void test_plugin(void **state)
{
    struct handle handle  = {.batch = INVALID_BATCH};
    notify_msg_t  message = {.name = (char *)"Agent1", .msg = (char *)"test"};
    struct ends   e;
    uint32_t      seed;

    (void)state;
    open_ends(&e);
    for (seed = 1; seed <= 8; ++seed) { /* the handle is used again and again */
        turn(e.buffer, seed);
        peer_fill(&e.peer, 100);
        assert_int_equal(post(&e, &handle, OPCODE_WRITE, seed % 2 ? &message : NULL), 0);
        assert_int_equal(poll_until_end(&e, &handle), DONE);
        assert_true(peer_verify(&e.peer, 0, PEER_SIZE, seed));
        if (seed % 2) {
            assert_notified(&e, "Agent1/test");
        }
        peer_fill(&e.peer, seed + 50);
        pattern_fill(e.buffer, 200);
        assert_int_equal(post(&e, &handle, OPCODE_READ, seed % 2 ? NULL : &message), 0);
        assert_int_equal(poll_until_end(&e, &handle), DONE);
        assert_turned(e.buffer, seed + 50);
        assert_true(pattern_verify(e.buffer, 0, 0, 0)); /* its guard */
        assert_true(peer_verify(&e.peer, 0, PEER_SIZE, seed + 50));
        if (seed % 2 == 0) {
            assert_notified(&e, "Agent1/test");
        }
    }
    peer_stop(&e.peer);
    close_ends(&e);
}

static void test_notifications(void **state)
{
    notify_msg_t message = {.name = (char *)"Agent1", .msg = (char *)"m \xc3\xbc"}, *found;
    char         text[256];
    struct ends  e;
    int          size = 7;

    (void)state;
    open_ends(&e);
    assert_null(getNotifsFromEngine(e.engine, &size));
    assert_int_equal(size, 0);
    assert_int_equal(freeNotifsMsgBuf(NULL, 0), 0);
    assert_int_equal(genNotifyInEngine(e.engine, (uint64_t)e.segment, message), 0);
    assert_int_equal(peer_notifications(&e.peer, text, sizeof(text)), 1); /* it has it when the call returns */
    assert_string_equal(text, "Agent1/m \xc3\xbc");
    assert_int_equal(peer_notify(&e.peer, e.name), 0);
    assert_int_equal(peer_notify(&e.peer, e.name), 0);
    found = getNotifsFromEngine(e.engine, &size);
    assert_int_equal(size, 2);
    assert_string_equal(found[1].name, "peer");
    assert_string_equal(found[1].msg, "hello");
    assert_int_equal(freeNotifsMsgBuf(found, size), 0);
    assert_true(genNotifyInEngine(e.engine, (uint64_t)1 << 32, message) < 0);
    assert_true(genNotifyInEngine(e.engine, 4711, message) < 0);
    peer_stop(&e.peer);
    assert_true(genNotifyInEngine(e.engine, (uint64_t)e.segment, message) < 0);
    close_ends(&e);
}

/* ---- refusals ---- */

/* That the last refusal is this function's, and has these words. */
static void assert_said(const char *function, const char *words)
{
    const char *text = hteMooncakeError();

    if (strncmp(text, function, strlen(function)) != 0 || strstr(text, words) == NULL) {
        fail_msg("'%s' instead of '%s: ...%s...'", text, function, words);
    }
}

static void test_segments(void **state)
{
    char         slashed[80], text[8];
    segment_id_t again;
    struct ends  e;

    (void)state;
    open_ends(&e);
    assert_int_equal(openSegment(e.engine, e.name), LOCAL_SEGMENT);
    snprintf(slashed, sizeof(slashed), "//%s", e.peer.name);
    again = openSegment(e.engine, slashed);
    assert_int_equal(again, e.segment);
    assert_int_equal(openSegmentNoCache(e.engine, e.peer.name), e.segment);
    assert_int_equal(syncSegmentCache(e.engine), 0);
    assert_int_equal(warmupEfaSegment(e.engine, e.peer.name), 0);
    assert_int_equal(openSegment(e.engine, "127.0.0.1:1"), -1);
    assert_said("openSegment", "127.0.0.1:1");
    assert_int_equal(openSegmentNoCache(e.engine, "127.0.0.1:1"), -1);
    assert_int_equal(openSegment(e.engine, "no port"), -1);
    assert_int_equal(openSegment(e.engine, ""), -1);
    assert_int_equal(openSegment(e.engine, NULL), -1);
    assert_true(warmupEfaSegment(e.engine, "127.0.0.1:1") < 0);
    assert_true(removeLocalSegment(e.engine, e.name) == -303);
    assert_said("removeLocalSegment", "destroyTransferEngine");
    assert_true(getLocalIpAndPort(e.engine, text, sizeof(text)) < 0);
    assert_string_equal(text, "");
    assert_int_equal(closeSegment(e.engine, e.segment), 0);
    assert_int_equal(closeSegment(e.engine, 4711), -1);
    assert_said("closeSegment", "bad handle");
    peer_stop(&e.peer);
    close_ends(&e);
}

/* One request, refused with this code, and none taken. */
static void refuses(struct ends *e, int code, transfer_request_t request, const char *words)
{
    batch_id_t         batch   = allocateBatchID(e->engine, 2);
    transfer_request_t both[2] = {{.opcode        = OPCODE_WRITE,
                                   .source        = e->buffer,
                                   .target_id     = e->segment,
                                   .target_offset = e->peer.addr,
                                   .length        = 64},
                                  request};
    transfer_status_t  status;

    assert_int_equal(submitTransfer(e->engine, batch, both, 2), code);
    assert_said("submitTransfer", words);
    assert_int_equal(getTransferStatus(e->engine, batch, 0, &status), 1);
    assert_int_equal(freeBatchID(e->engine, batch), 0);
}

static void test_requests_refused(void **state)
{
    transfer_request_t good;
    struct ends        e;

    (void)state;
    open_ends(&e);
    good = (transfer_request_t){
        .opcode = OPCODE_WRITE, .source = e.buffer, .target_id = e.segment, .target_offset = e.peer.addr, .length = 64};
#define BAD(code, words, ...)          \
    do {                               \
        transfer_request_t bad = good; \
        __VA_ARGS__;                   \
        refuses(&e, code, bad, words); \
    } while (0)
    BAD(3, "not in a registered buffer", bad.target_offset += PEER_SIZE - 63);
    BAD(3, "not in a registered buffer", bad.target_offset = 1);
    BAD(3, "not registered", bad.source = &good);
    BAD(3, "not registered", bad.source = e.buffer + PEER_SIZE - 63);
    BAD(1, "zero length", bad.length = 0);
    BAD(1, "opcode", bad.opcode = 2);
    BAD(1, "bad handle", bad.target_id = 4711);
    BAD(1, "bad handle", bad.target_id = -1);
#undef BAD
    peer_stop(&e.peer);
    close_ends(&e);
}

static void test_batches_refused(void **state)
{
    transfer_request_t requests[3];
    transfer_status_t  status;
    batch_id_t         batch;
    struct ends        e;
    int                i;

    (void)state;
    open_ends(&e);
    for (i = 0; i < 3; ++i) {
        requests[i] = (transfer_request_t){.opcode        = OPCODE_WRITE,
                                           .source        = e.buffer,
                                           .target_id     = e.segment,
                                           .target_offset = e.peer.addr,
                                           .length        = 64};
    }
    batch = allocateBatchID(e.engine, 2);
    assert_int_equal(submitTransfer(e.engine, batch, requests, 3), 2);
    assert_int_equal(submitTransfer(e.engine, batch, NULL, 1), 1);
    assert_int_equal(submitTransfer(e.engine, batch, requests, SIZE_MAX), 2);
    assert_int_equal(submitTransfer(e.engine, batch, requests, 0), 0);
    assert_int_equal(getTransferStatus(e.engine, batch, 0, NULL), 1);
    peer_signal(&e.peer, SIGSTOP);
    assert_int_equal(submitTransfer(e.engine, batch, requests, 1), 0);
    assert_int_equal(freeBatchID(e.engine, batch), 4);
    assert_int_equal(unregisterLocalMemory(e.engine, e.buffer), -4);
    peer_signal(&e.peer, SIGKILL);
    while (freeBatchID(e.engine, batch) == 4) {
        usleep(1000);
    }
    assert_int_equal(freeBatchID(e.engine, batch), 1);
    assert_int_equal(getTransferStatus(e.engine, batch, 0, &status), 1);
    assert_int_equal(submitTransfer(e.engine, batch, requests, 1), 1);
    assert_int_equal(submitTransfer(e.engine, batch, requests, 0), 1);
    assert_int_equal(submitTransfer(e.engine, INVALID_BATCH, requests, 1), 1);
    assert_true(allocateBatchID(e.engine, (size_t)1 << 40) == INVALID_BATCH);
    close_ends(&e);
}

static void test_memory_refused(void **state)
{
    char             *memory   = aligned_alloc(4096, 16384);
    buffer_entry_t    list[2]  = {{memory, 4096}, {memory + 8192, 4096}};
    buffer_entry_t    wrong[2] = {{memory, 4096}, {memory + 4000, 4096}};
    void             *addrs[2] = {memory, memory + 8192};
    transfer_engine_t engine;

    (void)state;
    engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1:12345", NULL, 12345, 0);
    assert_int_equal(registerLocalMemory(engine, memory, 0, "*", 1), -1);
    assert_int_equal(registerLocalMemory(engine, memory, 4096, "cuda:0", 1), -303);
    assert_said("registerLocalMemory", "not implemented");
    assert_int_equal(registerLocalMemory(engine, memory, 4096, "cpu:4711", 1), -300);
    assert_int_equal(registerLocalMemoryBatch(engine, wrong, 2, "*"), -7);
    assert_int_equal(registerLocalMemoryBatch(engine, NULL, 2, "*"), -1);
    assert_int_equal(registerLocalMemoryBatch(engine, NULL, 0, "*"), 0);
    assert_int_equal(registerLocalMemoryBatch(engine, list, 2, "*"), 0);
    assert_int_equal(registerLocalMemory(engine, memory + 100, 10, "*", 1), -7);
    assert_int_equal(unregisterLocalMemory(engine, memory + 100), -3);
    assert_int_equal(unregisterLocalMemoryBatch(engine, addrs, 2), 0);
    assert_int_equal(unregisterLocalMemoryBatch(engine, addrs, 2), -3);
    assert_int_equal(unregisterLocalMemoryBatch(engine, NULL, 0), 0);
    destroyTransferEngine(engine);
    free(memory);
}

/* Memory that is not remote_accessible is a source all the same, and no target. */
static void test_local_memory(void **state)
{
    struct ends        e, other;
    transfer_request_t request;

    (void)state;
    open_ends(&e);
    assert_int_equal(unregisterLocalMemory(e.engine, e.buffer), 0);
    assert_int_equal(registerLocalMemory(e.engine, e.buffer, PEER_SIZE, "*", 0), 0);
    turn(e.buffer, 3);
    assert_int_equal(post(&e, &(struct handle){.batch = INVALID_BATCH}, OPCODE_WRITE, NULL), 0);
    other.engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
    other.buffer = buffer_new();
    assert_int_equal(registerLocalMemory(other.engine, other.buffer, PEER_SIZE, "*", 1), 0);
    request = (transfer_request_t){.opcode        = OPCODE_READ,
                                   .source        = other.buffer,
                                   .target_id     = openSegment(other.engine, e.name),
                                   .target_offset = (uintptr_t)e.buffer,
                                   .length        = 64};
    assert_int_equal(submitTransfer(other.engine, allocateBatchID(other.engine, 1), &request, 1), 3);
    close_ends(&other);
    peer_stop(&e.peer);
    destroyTransferEngine(e.engine);
    free(e.buffer);
}

static void test_null(void **state)
{
    transfer_request_t request = {0};
    notify_msg_t       message = {(char *)"a", (char *)"b"};
    nic_load_stat_t    load;
    transfer_status_t  status;
    char               text[16] = "x";
    size_t             count    = 1;
    int                size     = 1;

    (void)state;
    assert_true(discoverTopology(NULL) < 0);
    assert_true(getLocalIpAndPort(NULL, text, sizeof(text)) < 0);
    assert_string_equal(text, "");
    assert_null(installTransport(NULL, "tcp", NULL));
    assert_true(uninstallTransport(NULL, "tcp") < 0);
    assert_int_equal(openSegment(NULL, "a:1"), -1);
    assert_int_equal(openSegmentNoCache(NULL, "a:1"), -1);
    assert_true(closeSegment(NULL, 1) < 0);
    assert_true(warmupEfaSegment(NULL, "a:1") < 0);
    assert_true(syncSegmentCache(NULL) < 0);
    assert_true(registerLocalMemory(NULL, text, 1, "*", 1) < 0);
    assert_true(unregisterLocalMemory(NULL, text) < 0);
    assert_true(registerLocalMemoryBatch(NULL, NULL, 0, "*") < 0);
    assert_true(unregisterLocalMemoryBatch(NULL, NULL, 0) < 0);
    assert_true(allocateBatchID(NULL, 1) == INVALID_BATCH);
    assert_true(freeBatchID(NULL, 1) > 0);
    assert_true(submitTransfer(NULL, 1, &request, 1) > 0);
    assert_true(submitTransferWithNotify(NULL, 1, &request, 1, message) > 0);
    assert_true(getTransferStatus(NULL, 1, 0, &status) > 0);
    assert_null(getNotifsFromEngine(NULL, &size));
    assert_int_equal(size, 0);
    assert_null(getNotifsFromEngine(NULL, NULL));
    assert_true(genNotifyInEngine(NULL, 1, message) < 0);
    assert_true(getNicLoadStats(NULL, &load, &count) > 0);
    assert_true(showLinks(NULL, text, sizeof(text), 1) < 0);
    destroyTransferEngine(NULL);
}

/* ---- a target that dies with requests under way ---- */

static void test_dead_target(void **state)
{
    struct handle      handle = {.batch = INVALID_BATCH};
    transfer_request_t request;
    batch_id_t         batch;
    double             start;
    struct ends        e;

    (void)state;
    open_ends(&e);
    assert_int_equal(post(&e, &handle, OPCODE_WRITE, NULL), 0); /* so that it is connected */
    assert_int_equal(poll_until_end(&e, &handle), DONE);
    peer_signal(&e.peer, SIGSTOP);
    assert_int_equal(post(&e, &handle, OPCODE_READ, NULL), 0);
    usleep(100000);
    assert_int_equal(check(&e, &handle), IN_PROGRESS);
    start = now();
    peer_signal(&e.peer, SIGKILL);
    assert_int_equal(poll_until_end(&e, &handle), BAD);
    assert_said("getTransferStatus", "after");
    assert_true(now() - start < PATIENCE_S);
    while (check(&e, &handle) == IN_PROGRESS) { /* the plugin gives the batch back only now */
        usleep(1000);
    }
    assert_int_equal(freeBatchID(e.engine, handle.batch), 0);
    batch   = allocateBatchID(e.engine, 1);
    request = (transfer_request_t){
        .opcode = OPCODE_READ, .source = e.buffer, .target_id = e.segment, .target_offset = e.peer.addr, .length = 64};
    if (submitTransfer(e.engine, batch, &request, 1) == 0) { /* or it is refused at once */
        handle = (struct handle){.batch = batch, .count = 1};
        assert_int_equal(poll_until_end(&e, &handle), BAD);
    }
    assert_int_equal(openSegmentNoCache(e.engine, e.peer.name), -1);
    close_ends(&e);
}

/* Ends that Mooncake's users do not know come out as FAILED: a slice's timeout here, with the target stopped. */
static void test_timeout(void **state)
{
    struct handle handle = {.batch = INVALID_BATCH};
    struct ends   e;

    (void)state;
    setenv("HTE_SLICE_TIMEOUT_MS", "300", 1);
    setenv("HTE_RETRY_COUNT", "0", 1);
    open_ends(&e);
    unsetenv("HTE_SLICE_TIMEOUT_MS");
    unsetenv("HTE_RETRY_COUNT");
    peer_signal(&e.peer, SIGSTOP);
    assert_int_equal(post(&e, &handle, OPCODE_READ, NULL), 0);
    assert_int_equal(poll_until_end(&e, &handle), BAD);
    assert_said("getTransferStatus", "timed out");
    peer_signal(&e.peer, SIGKILL);
    while (check(&e, &handle) == IN_PROGRESS) {
        usleep(1000);
    }
    assert_int_equal(freeBatchID(e.engine, handle.batch), 0);
    close_ends(&e);
}

/* ---- looking around ---- */

static void test_look(void **state)
{
    struct handle   handle = {.batch = INVALID_BATCH};
    nic_load_stat_t loads[8];
    char            text[4096], part[16];
    size_t          count = 8;
    struct ends     e;

    (void)state;
    open_ends(&e);
    assert_int_equal(post(&e, &handle, OPCODE_WRITE, NULL), 0);
    assert_int_equal(poll_until_end(&e, &handle), DONE);
    assert_int_equal(getNicLoadStats(e.engine, loads, &count), 0);
    assert_true(count > 0 && loads[0].device_name[0] != '\0' && loads[0].inflight_bytes == 0);
    assert_int_equal(getNicLoadStats(e.engine, NULL, &count), 1);
    count = 0;
    assert_int_equal(getNicLoadStats(e.engine, loads, &count), 0);
    assert_true(count > 0);
    assert_int_equal(showLinks(e.engine, text, sizeof(text), 1), 0);
    assert_non_null(strstr(text, "{\"local_nics\":[{\"device\":"));
    assert_non_null(strstr(text, "\"topology\":{\""));
    assert_non_null(strstr(text, e.peer.name));
    assert_int_equal(showLinks(e.engine, text, sizeof(text), 0), 0);
    assert_non_null(strstr(text, "connections:\n  "));
    assert_true(showLinks(e.engine, part, sizeof(part), 0) < 0);
    assert_int_equal(strncmp(part, text, sizeof(part) - 1), 0);
    peer_stop(&e.peer);
    close_ends(&e);
}

static void test_engines(void **state)
{
    char              one_name[64], other_name[64], log[] = "/tmp/test_shim.XXXXXX", line[256] = "";
    void             *matrix[] = {(void *)"{}", NULL};
    transfer_engine_t one      = createTransferEngine("P2PHANDSHAKE", "127.0.0.1:12345", "127.0.0.1", 12345, 1);
    transfer_engine_t other    = createTransferEngine("P2PHANDSHAKE", "127.0.0.1:12345", "127.0.0.1", 12345, 0);
    FILE             *file;

    (void)state;
    assert_true(one != NULL && other != NULL); /* as there: the name's port is nobody's */
    getLocalIpAndPort(one, one_name, sizeof(one_name));
    getLocalIpAndPort(other, other_name, sizeof(other_name));
    assert_string_not_equal(one_name, other_name);
    assert_int_equal(discoverTopology(one), 0);
    assert_non_null(installTransport(one, "tcp", NULL));
    assert_null(installTransport(one, "tcp", matrix));
    assert_null(installTransport(one, "nvlink", NULL));
    assert_said("installTransport", "nvlink");
    assert_int_equal(uninstallTransport(one, "tcp"), 0);
    close(mkstemp(log));
    setenv("HTE_MOONCAKE_LOG", log, 1);
    enableGracefulShutdown(one);
    unsetenv("HTE_MOONCAKE_LOG");
    assert_said("enableGracefulShutdown", "no signal handlers");
    file = fopen(log, "r");
    assert_non_null(fgets(line, sizeof(line), file));
    assert_non_null(strstr(line, hteMooncakeError()));
    fclose(file);
    unlink(log);
    destroyTransferEngine(one);
    destroyTransferEngine(other);
    assert_null(createTransferEngine("nonsense://127.0.0.1", "a", "", 0, 1));
    assert_null(createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "no.such.host.invalid", 0, 1));
    assert_said("createTransferEngine", "no.such.host.invalid");
    assert_null(createTransferEngine("127.0.0.1:1", "a", "127.0.0.1", 0, 1));
    assert_said("createTransferEngine", "etcd");
}

static void test_force_tcp(void **state)
{
    setenv("MC_FORCE_TCP", "1", 1);
    test_plugin(state);
    unsetenv("MC_FORCE_TCP");
    setenv("MC_CUSTOM_TOPO_JSON", "/no/such/file", 1);
    assert_null(createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1));
    assert_said("createTransferEngine", "/no/such/file");
    unsetenv("MC_CUSTOM_TOPO_JSON");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin),          cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_segments),        cmocka_unit_test(test_requests_refused),
        cmocka_unit_test(test_batches_refused), cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_local_memory),    cmocka_unit_test(test_null),
        cmocka_unit_test(test_dead_target),     cmocka_unit_test(test_look),
        cmocka_unit_test(test_engines),         cmocka_unit_test(test_force_tcp),
        cmocka_unit_test(test_timeout),
    };

    peer_main(argc, argv);
    setenv("HTE_SAME_HOST", "off", 1); /* else a peer that stands still is reached all the same */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
