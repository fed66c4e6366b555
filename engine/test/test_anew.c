/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target registers again is found again, by itself; whose fault it is that nothing can be copied; and memory
 * that is not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* At the same address, but another registration. Nobody synchronizes. */
static void registered_anew(int opcode)
{
    static const struct target_buffer buffer = {.length = SIZE};
    struct hte_batch_status           status;
    struct hte_request                r;
    struct fixture                    f;
    double                            begin;

    open_with(&f, NULL, 0, &buffer, 1);
    r = request(&f, opcode, 0, 0, M);
    transfer_ok(&f, &r, 1);
    target_unregister(&f.target, 0);
    status = transfer(&f, &r, 1);
    assert_int_equal(status.code, HTE_INVALID);
    assert_int_equal(status.error, HTE_ERR_RANGE);
    target_register_more(&f.target);
    for (begin = now(); (status = transfer(&f, &r, 1)).code == HTE_INVALID && now() - begin < 20;) {
        usleep(1000);
    }
    assert_int_equal(status.code, HTE_COMPLETED);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_registered_anew_same_host(void **state)
{
    (void)state;
    registered_anew(HTE_WRITE);
    registered_anew(HTE_READ);
}

static void test_registered_anew_messages(void **state)
{
    (void)state;
    setenv("HTE_SAME_HOST", "off", 1);
    setenv("UCX_TLS", "tcp,self", 1);
    registered_anew(HTE_WRITE);
    registered_anew(HTE_READ);
    unsetenv("HTE_SAME_HOST");
    unsetenv("UCX_TLS");
}

/* It is ours that cannot be written; the target's is all right. */
static void test_read_into_what_may_not_be_written(void **state)
{
    struct hte_memory       memory = {.length = M};
    struct hte_batch_status status;
    struct hte_request      r;
    struct fixture          f;

    (void)state;
    open_fixture(&f);
    memory.addr = mmap(NULL, M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory.addr, MAP_FAILED);
    OK(hte_memory_register(f.engine, &memory));
    assert_int_equal(mprotect((char *)memory.addr + M / 2, M / 2, PROT_READ), 0);
    r       = request(&f, HTE_READ, 0, 0, M);
    r.local = memory.addr;
    status  = transfer(&f, &r, 1);
    assert_int_equal(status.code, HTE_FAILED);
    assert_int_equal(status.error, HTE_ERR_MEMORY);
    OK(hte_memory_unregister(f.engine, memory.addr));
    munmap(memory.addr, M);
    target_stop(&f.target);
    close_fixture(&f);
}

static void refused(struct hte_engine *engine, void *addr, size_t length, int permission, const void *at,
                    const char *why)
{
    struct hte_memory   memories[] = {{.length = M}, {.addr = addr, .length = length, .permission = permission}};
    struct hte_counters counters   = {.size = sizeof(counters)};
    char                text[64];

    memories[0].addr = aligned_alloc(4096, M);
    assert_int_equal(hte_memory_register(engine, &memories[1]), HTE_ERR_RANGE);
    snprintf(text, sizeof(text), "memory 0: %p,", at);
    assert_non_null(strstr(hte_error_detail(), text));
    assert_non_null(strstr(hte_error_detail(), why));
    assert_int_equal(hte_memory_register_batch(engine, memories, 2), HTE_ERR_RANGE);
    snprintf(text, sizeof(text), "memory 1: %p,", at);
    assert_non_null(strstr(hte_error_detail(), text));
    OK(hte_counters(engine, &counters));
    assert_int_equal(counters.memory_regions, 0);
    free(memories[0].addr);
}

/* With a pretouch_size, which would touch it first. */
static void test_register_what_is_not_there(void **state)
{
    static const struct hte_option pretouch = {"pretouch_size", "4096"};
    char                          *addr     = mmap(NULL, M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct hte_memory              memory   = {.addr = addr, .length = M, .permission = HTE_PERM_LOCAL};
    struct hte_engine             *engine;

    (void)state;
    create(&engine, &pretouch, 1);
    refused(engine, (void *)4096, 4096, HTE_PERM_GLOBAL_RW, (void *)4096, "not mapped");
    refused(engine, (void *)(~0ull - 100), 100, HTE_PERM_LOCAL, (void *)(~0ull - 100), "not mapped");
    assert_int_equal(mprotect(addr + M / 2, 4096, PROT_READ), 0);
    refused(engine, addr + 1, M - 1, HTE_PERM_GLOBAL_RW, addr + M / 2, "may not be written");
    OK(hte_memory_register(engine, &memory)); /* what is only sent */
    OK(hte_memory_unregister(engine, addr));
    assert_int_equal(mprotect(addr + M / 4, 4096, PROT_NONE), 0);
    refused(engine, addr, M, HTE_PERM_LOCAL, addr + M / 4, "may not be read");
    assert_int_equal(munmap(addr + M / 4, 4096), 0);
    refused(engine, addr, M, HTE_PERM_LOCAL, addr + M / 4, "not mapped");
    munmap(addr, M);
    hte_destroy(engine);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registered_anew_same_host),
        cmocka_unit_test(test_registered_anew_messages),
        cmocka_unit_test(test_read_into_what_may_not_be_written),
        cmocka_unit_test(test_register_what_is_not_there),
    };

    target_main(argc, argv);
    unsetenv("UCX_TLS"); /* who names transports gets those */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
