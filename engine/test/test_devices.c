/* SPDX-License-Identifier: BSD-3-Clause */
/* Choice among several devices: the loopback twice, which UCX takes for two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

static int has_tcp(void)
{
    const char *tls = getenv("UCX_TLS");

    return getenv("UCX_NET_DEVICES") == NULL && (tls == NULL || strstr(tls, "tcp") != NULL);
}

static uint64_t carried(struct hte_engine *engine, unsigned device)
{
    struct hte_nic_load loads[2];
    size_t              count = 2;

    OK(hte_nic_load(engine, loads, &count));
    assert_int_equal(count, 2);
    assert_int_equal(loads[device].inflight, 0);
    assert_int_equal(loads[device].state, HTE_DEVICE_UP);
    return loads[device].transferred;
}

/* Each slice may go another way: none is joined to its neighbour. */
static void assert_no_runs(struct hte_engine *engine)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    OK(hte_counters(engine, &counters));
    assert_int_equal(counters.slices_posted, 10 * M / 65536);
    assert_int_equal(counters.posts, counters.slices_posted);
}

static void transfer_over_two(const char *policy, const char *topology, const char *location, uint64_t *bytes)
{
    const struct hte_option options[] = {
        {"devices", "lo,lo+lo"}, {"policy", policy}, {"topology_file", topology}, {"UCX_TLS", "tcp,self"}};
    struct hte_memory  memory = {.addr = NULL, .length = M, .location = location};
    struct hte_link    links[8];
    struct hte_request r;
    struct fixture     f;
    size_t             i, count = 8;

    open_with(&f, options, 4, &(const struct target_buffer){.length = SIZE}, 1);
    memory.addr = aligned_alloc(4096, M);
    OK(hte_memory_register(f.engine, &memory));
    for (i = 0; i < 10; ++i) {
        pattern_fill(memory.addr, 0, M, (uint32_t)i);
        r       = request(&f, HTE_WRITE, 0, 0, M);
        r.local = memory.addr;
        transfer_ok(&f, &r, 1);
        assert_true(target_verify(&f.target, 0, 0, M, (uint32_t)i));
    }
    bytes[0] = carried(f.engine, 0);
    bytes[1] = carried(f.engine, 1);
    assert_no_runs(f.engine);
    OK(hte_links(f.engine, links, &count));
    for (i = 0; i < count && i < 8; ++i) {
        assert_string_equal(links[i].peer, f.target.name);
        assert_int_equal(links[i].connected, 1);
    }
    target_stop(&f.target);
    close_fixture(&f);
    free(memory.addr);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_two_devices(void **state)
{
    uint64_t bytes[2];

    (void)state;
    if (!has_tcp()) {
        skip();
    }
    transfer_over_two("round_robin", "", "*", bytes);
    assert_int_equal(bytes[0] + bytes[1], 10 * M);
    assert_true(bytes[0] > M && bytes[1] > M);
    transfer_over_two("load", "", "*", bytes);
    assert_int_equal(bytes[0] + bytes[1], 10 * M);
}

static void test_topology(void **state)
{
    char                    path[]    = "/tmp/hte-topology-XXXXXX", *json;
    const struct hte_option options[] = {{"devices", "lo,lo+lo"}, {"topology_file", path}, {"UCX_TLS", "tcp,self"}};
    struct hte_config       config = {.size = sizeof(config), .name = "127.0.0.1", .options = options, .n_options = 3};
    struct hte_engine      *engine;
    uint64_t                bytes[2];

    (void)state;
    if (!has_tcp()) {
        skip();
    }
    close(mkstemp(path));
    write_file(path, "{\"cpu:0\":[[\"lo+lo\"],[\"lo\"]]}");
    transfer_over_two("round_robin", path, "cpu:0", bytes);
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[1], 10 * M);
    OK(hte_create(&config, &engine));
    OK(hte_topology_export(engine, &json));
    assert_string_equal(json, "{\"cpu:0\":[[\"lo+lo\"],[\"lo\"]]}");
    free(json);
    hte_destroy(engine);
    write_file(path, "{\"cpu:0\":[[\"eth99\"],[]]}");
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_DEVICE_NOT_FOUND);
    write_file(path, "{\"cpu:0\":[[],[]]}");
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_MALFORMED_JSON);
    write_file(path, "{\"cpu:0\":[");
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_MALFORMED_JSON);
    assert_non_null(strstr(hte_error_detail(), "line 1"));
    unlink(path);
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_MALFORMED_JSON);
    assert_non_null(strstr(hte_error_detail(), "cannot be read: No such file"));
}

/* UCX would warn, and do without the network. */
static void test_unknown_devices(void **state)
{
    static const char *const unknown[] = {"eth99", "lo,eth99", "lo+eth99",  "lo:1", "no_such:1", "lo,no_such:1",
                                          "lo+",   "..",       "../net/lo", "lo/",  ":1",        ":"};
    static const char *const known[]   = {"lo", "lo+lo", "all", "memory"};
    struct hte_option        option    = {.key = "devices"};
    struct hte_config        config = {.size = sizeof(config), .name = "127.0.0.1", .options = &option, .n_options = 1};
    struct hte_engine       *engine;
    size_t                   i;

    (void)state;
    for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); ++i) {
        option.value = unknown[i];
        assert_int_equal(hte_create(&config, &engine), HTE_ERR_DEVICE_NOT_FOUND);
        assert_non_null(strstr(hte_error_detail(), "this machine has no '"));
        assert_non_null(strstr(hte_error_detail(), "lo"));
    }
    for (i = 0; i < sizeof(known) / sizeof(known[0]) && has_tcp(); ++i) {
        option.value = known[i];
        OK(hte_create(&config, &engine));
        hte_destroy(engine);
    }
}

/* Memory of no stated location is where its first page is. */
static void test_location_found(void **state)
{
    static const struct target_buffer buffer = {.length = M};
    struct hte_buffer                 seen;
    struct fixture                    f;
    size_t                            count = 1;
    void                             *page;
    int                               node = -1;

    (void)state;
    open_with(&f, NULL, 0, &buffer, 1);
    page = f.memory;
    memset(page, 1, 4096);
    if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0 || node < 0) {
        target_stop(&f.target);
        close_fixture(&f);
        skip();
    }
    target_fill(&f.target, 0, 0, M, 1);
    target_unregister(&f.target, 0);
    target_register_more(&f.target);
    OK(hte_segment_sync(f.engine, f.segment));
    OK(hte_segment_buffers(f.engine, f.segment, &seen, &count));
    assert_int_equal(count, 1);
    assert_memory_equal(seen.location, "cpu:", 4);
    target_stop(&f.target);
    close_fixture(&f);
}

/* What is published as a location is one that the topology can know. */
static void test_bad_locations(void **state)
{
    static const struct {
        const char *location;
        int         error;
    } bad[]                       = {{"gpu", HTE_ERR_INVALID_ARGUMENT},    {"cpu:", HTE_ERR_INVALID_ARGUMENT},
                                     {"cpu:-1", HTE_ERR_INVALID_ARGUMENT}, {"cpu:0x", HTE_ERR_INVALID_ARGUMENT},
                                     {"cpu:00", HTE_ERR_INVALID_ARGUMENT}, {"cpu:60000", HTE_ERR_NUMA},
                                     {"cpu:4294967296", HTE_ERR_NUMA} /* 0, were it cut to 32 bits */};
    char               zeros[300] = "cpu:";
    struct hte_memory  memory     = {.addr = aligned_alloc(4096, M), .length = M};
    struct hte_engine *engine;
    size_t             i;

    (void)state;
    create(&engine, NULL, 0);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        memory.location = bad[i].location;
        assert_int_equal(hte_memory_register(engine, &memory), bad[i].error);
        assert_non_null(strstr(hte_error_detail(), bad[i].location));
    }
    memset(zeros + 4, '0', sizeof(zeros) - 5);
    memory.location = zeros;
    assert_int_equal(hte_memory_register(engine, &memory), HTE_ERR_INVALID_ARGUMENT);
    memory.location = "cpu:0";
    OK(hte_memory_register(engine, &memory));
    hte_destroy(engine);
    free(memory.addr);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_devices),     cmocka_unit_test(test_topology),
        cmocka_unit_test(test_unknown_devices), cmocka_unit_test(test_location_found),
        cmocka_unit_test(test_bad_locations),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
