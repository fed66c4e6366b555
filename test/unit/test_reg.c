/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory registered with a domain: on which rails, when, with what access, once. No device
 * is needed. */

#include "md_world.h"

#include "abi/adapt.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What the public counters say of a rail; 0 before it was used. */
static struct uct_ha_rail_stats stats_of(const char *name)
{
    struct uct_ha_rail_stats stats;
    unsigned                 i;

    for (i = 0; uct_ha_rail_stats_get(i, &stats, sizeof(stats)) != -EINVAL; ++i) {
        if (strcmp(stats.name, name) == 0) {
            return stats;
        }
    }
    memset(&stats, 0, sizeof(stats));
    return stats;
}

static void test_standby_registers_when_a_key_is_packed(void **state)
{
    static const uint8_t on_the_wire[8] = {0xa0, 0xb0, 0xc0, 0xd0, 0xa0, 0xb0, 0xc0, 0xd1};
    uint8_t              packed[8];
    char                 buffer[64];
    uct_rkey_t           rkey;
    uct_mem_h            memh;
    void                *handle;
    uct_md_h             md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    assert_int_equal(rails[0].registered, 1);
    assert_int_equal(rails[1].registered, 0);

    assert_int_equal(uct_ha_mkey_pack(md, memh, packed), UCS_OK);
    assert_int_equal(rails[1].registered, 1);
    assert_int_equal(rails[1].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET | HA_ACCESS_REMOTE_ATOMIC);
    assert_int_equal(stats_of("b:1").mrs, 1);
    assert_int_equal(stats_of("b:1").mr_bytes, sizeof(buffer));
    assert_int_equal(uct_ha_mkey_pack(md, memh, packed), UCS_OK);
    assert_int_equal(rails[1].total, 1);
    assert_memory_equal(packed, on_the_wire, sizeof(packed));
    assert_int_equal(uct_ha_rkey_unpack(packed, &rkey, &handle), UCS_OK);
    assert_int_equal(uct_ha_rkey(rkey, 0), 0xa0b0c0d0u);
    assert_int_equal(uct_ha_rkey(rkey, 1), 0xa0b0c0d1u);
    uct_ha_adapt_keys(&component, uct_ha_rkey_unpack);
    assert_int_equal(component.rkey_release(&component, rkey, handle), UCS_OK);
    dereg(md, memh);
    close_md(md);
}

/* Whoever asks for its key: no peer may use it, so the standby need not know. */
static void test_local_memory_stays_off_the_standby(void **state)
{
    uint8_t   packed[8];
    char      buffer[64];
    uct_mem_h memh;
    uct_md_h  md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_LOCAL_WRITE, &memh), UCS_OK);
    assert_int_equal(uct_ha_mkey_pack(md, memh, packed), UCS_OK);
    assert_int_equal(rails[0].registered, 1);
    assert_int_equal(rails[1].registered, 0);
    assert_int_equal(rails[0].last_access, 0);

    /* what an operation after a failover does, once */
    assert_int_equal(uct_ha_reg_on(uct_ha_mem(memh), uct_ha_md(md)->duo.rail_no[1]), 0);
    assert_int_equal(uct_ha_reg_on(uct_ha_mem(memh), uct_ha_md(md)->duo.rail_no[1]), 0);
    assert_int_equal(rails[1].total, 1);
    dereg(md, memh);
    close_md(md);
}

/* Without the cache nobody sees memory move: nothing may be shared. */
static void test_domains_without_cache_share_nothing(void **state)
{
    uct_mem_h memh[2];
    char      buffer[64];
    uct_md_h  md[2];

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md[0]), UCS_OK);
    assert_int_equal(open_md("a:1", &md[1]), UCS_OK);
    assert_int_equal(uct_ha_mem_reg(md[0], buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA, &memh[0]), UCS_OK);
    assert_int_equal(uct_ha_mem_reg(md[1], buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA, &memh[1]), UCS_OK);
    assert_ptr_not_equal(memh[0], memh[1]);
    assert_int_equal(rails[0].registered, 2);
    dereg(md[0], memh[0]);
    dereg(md[1], memh[1]);
    md[0]->ops->close(md[0]);
    close_md(md[1]);
}

static void test_access_follows_the_flags(void **state)
{
    char      buffer[64];
    uct_mem_h memh;
    uct_md_h  md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_LOCAL_WRITE, &memh), UCS_OK);
    assert_int_equal(rails[0].last_access, 0);
    dereg(md, memh);
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA, &memh), UCS_OK);
    assert_int_equal(rails[0].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET);
    dereg(md, memh);
    close_md(md);
}

static void test_registration_that_fails(void **state)
{
    uint8_t    packed[8];
    char       buffer[64];
    uct_rkey_t rkey;
    uct_mem_h  memh;
    void      *handle;
    uct_md_h   md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);

    rails[1].reg_error = -ENOMEM; /* the standby is missed, not required */
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    assert_int_equal(uct_ha_mkey_pack(md, memh, packed), UCS_OK);
    assert_int_equal(uct_ha_rkey_unpack(packed, &rkey, &handle), UCS_OK);
    assert_true(uct_ha_rkey(rkey, 0) != 0);
    assert_int_equal(uct_ha_rkey(rkey, 1), 0);
    dereg(md, memh);

    rails[0].reg_error = -ENOMEM;
    assert_int_equal(
        uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh),
        UCS_ERR_NO_MEMORY);
    rails[0].reg_error = -EFAULT;
    assert_int_equal(
        uct_ha_mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh),
        UCS_ERR_IO_ERROR);
    close_md(md);
}

static void test_bad_deregistration(void **state)
{
    uct_md_mem_dereg_params_t params = {.field_mask = 0};
    char                      buffer[64];
    uct_mem_h                 memh;
    uct_md_h                  md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->mem_dereg(md, &params), UCS_ERR_INVALID_PARAM);
    assert_int_equal(uct_ha_mem_reg(md, buffer, sizeof(buffer), 0, &memh), UCS_OK);
    params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH | UCT_MD_MEM_DEREG_FIELD_FLAGS;
    params.memh       = memh;
    params.flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
    assert_int_equal(md->ops->mem_dereg(md, &params), UCS_ERR_UNSUPPORTED);
    dereg(md, memh);
    close_md(md);
}

static uct_mem_h reg(uct_md_h md, void *address, size_t length, unsigned flags)
{
    uct_mem_h memh = NULL;

    assert_int_equal(uct_ha_mem_reg(md, address, length, flags, &memh), UCS_OK);
    assert_true((char *)uct_ha_mem(memh)->address <= (char *)address);
    assert_true((char *)uct_ha_mem(memh)->address + uct_ha_mem(memh)->length >= (char *)address + length);
    return memh;
}

static void *map(size_t length)
{
    void *address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(address, MAP_FAILED);
    return address;
}

/* UCX follows memory mappings by patching libc, and so does ThreadSanitizer. */
static void with_cache(void)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    setenv("UCX_HA_RC_RCACHE", "y", 1);
}

static void test_cache_registers_once(void **state)
{
    uct_mem_h     first, second;
    uct_md_attr_t attr;
    char         *buffer;
    uct_md_h      md;

    (void)state;
    with_cache();
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(uct_ha_md_query(md, &attr), UCS_OK);
    assert_true(attr.reg_cost.c < 1e-6);

    buffer = map(1 << 16);
    first  = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
    second = reg(md, buffer + 100, 1000, UCT_MD_MEM_ACCESS_RMA);
    assert_ptr_equal(first, second);
    dereg(md, first);
    dereg(md, second);
    assert_int_equal(rails[0].registered, 1); /* kept for the next time */
    first = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
    assert_int_equal(rails[0].registered, 1);
    dereg(md, first);
    munmap(buffer, 1 << 16);
    close_md(md);
}

/* UCP opens a domain per device and registers on each. */
static void test_two_domains_register_once_per_rail(void **state)
{
    uct_mem_h memh[2];
    uint8_t   packed[8];
    char     *buffer;
    uct_md_h  md[2];
    int       i;

    (void)state;
    with_cache();
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md[0]), UCS_OK);
    assert_int_equal(open_md("b:1", &md[1]), UCS_OK);
    buffer = map(1 << 16);
    for (i = 0; i < 2; ++i) {
        memh[i] = reg(md[i], buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
        assert_int_equal(rails[i].total, 1);
    }
    for (i = 0; i < 2; ++i) {
        assert_int_equal(uct_ha_mkey_pack(md[i], memh[i], packed), UCS_OK);
        assert_int_equal(packed[3], 0xd0 + i); /* own rail first */
        assert_int_equal(packed[7], 0xd1 - i);
    }
    assert_int_equal(rails[0].total, 1);
    assert_int_equal(rails[1].total, 1);
    assert_int_equal(stats_of("a:1").mrs + stats_of("b:1").mrs, 2);

    dereg(md[0], memh[0]);
    md[0]->ops->close(md[0]);
    assert_int_equal(rails[0].registered, 1); /* the other one uses it as its standby */
    dereg(md[1], memh[1]);
    munmap(buffer, 1 << 16);
    close_md(md[1]);
}

#define THREADS 4
#define ROUNDS  50

struct opener {
    pthread_t   thread;
    const char *name;
    char       *buffer;
};

static void *open_and_register(void *arg)
{
    const struct opener *opener = arg;
    uint8_t              packed[8];
    uct_mem_h            memh;
    uct_md_h             md;
    int                  i;

    for (i = 0; i < ROUNDS; ++i) {
        assert_int_equal(open_md(opener->name, &md), UCS_OK);
        memh = reg(md, opener->buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
        assert_int_equal(uct_ha_mkey_pack(md, memh, packed), UCS_OK);
        assert_int_equal(packed[0], 0xa0);
        assert_int_equal(packed[4], 0xa0);
        dereg(md, memh);
        md->ops->close(md);
    }
    return NULL;
}

static void test_domains_of_several_threads(void **state)
{
    struct opener opener[THREADS];
    uct_md_h      md;
    int           i;

    (void)state;
    with_cache();
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK); /* keeps the cache alive */
    for (i = 0; i < THREADS; ++i) {
        opener[i].name   = rails[i % 2].name;
        opener[i].buffer = (i == 0) ? map(1 << 16) : opener[0].buffer;
        assert_int_equal(pthread_create(&opener[i].thread, NULL, open_and_register, &opener[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(opener[i].thread, NULL);
    }
    assert_int_equal(rails[0].total, 1);
    assert_int_equal(rails[1].total, 1);
    munmap(opener[0].buffer, 1 << 16);
    close_md(md);
}

/* The least recently used region goes when there are too many. */
static void test_cache_has_a_cap(void **state)
{
    char    *buffer;
    uct_md_h md;
    int      i;

    (void)state;
    with_cache();
    setenv("UCX_HA_RC_RCACHE_MAX_REGIONS", "8", 1);
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    unsetenv("UCX_HA_RC_RCACHE_MAX_REGIONS");
    buffer = map(64 * 8192);
    for (i = 0; i < 64; ++i) { /* with gaps: neighbours would merge */
        dereg(md, reg(md, buffer + i * 8192, 4096, UCT_MD_MEM_ACCESS_RMA));
        dereg(md, reg(md, buffer, 4096, UCT_MD_MEM_ACCESS_RMA)); /* used again and again */
        assert_true(rails[0].registered <= 9);
    }
    assert_int_equal(rails[0].total, 64);
    munmap(buffer, 64 * 8192);
    close_md(md);
}

static void test_cache_opens_no_memory_to_peers_unasked(void **state)
{
    uct_mem_h local, remote;
    char     *buffer;
    uct_md_h  md;

    (void)state;
    with_cache();
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    buffer = map(1 << 16);

    local = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_LOCAL_READ);
    assert_int_equal(rails[0].last_access, 0);
    remote = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_RMA);
    assert_int_equal(rails[0].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET | HA_ACCESS_REMOTE_ATOMIC);
    assert_ptr_not_equal(local, remote);
    dereg(md, local);
    local = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_LOCAL_READ);
    assert_ptr_equal(local, remote);
    dereg(md, local);
    dereg(md, remote);
    munmap(buffer, 1 << 16);
    close_md(md);
}

/* Memory that went away and came back must not be served from the cache. */
static void test_cache_forgets_unmapped_memory(void **state)
{
    uct_mem_h memh;
    char     *buffer;
    uct_md_h  md;

    (void)state;
    with_cache();
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    buffer = map(1 << 16);
    dereg(md, reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL));
    assert_int_equal(rails[0].registered, 1);
    munmap(buffer, 1 << 16);

    buffer         = map(1 << 16);
    rails[0].total = 0;
    memh           = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
    assert_int_equal(rails[0].total, 1);
    dereg(md, memh);
    munmap(buffer, 1 << 16);
    close_md(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_standby_registers_when_a_key_is_packed, md_setup),
                                       cmocka_unit_test_setup(test_local_memory_stays_off_the_standby, md_setup),
                                       cmocka_unit_test_setup(test_domains_without_cache_share_nothing, md_setup),
                                       cmocka_unit_test_setup(test_access_follows_the_flags, md_setup),
                                       cmocka_unit_test_setup(test_registration_that_fails, md_setup),
                                       cmocka_unit_test_setup(test_bad_deregistration, md_setup),
                                       cmocka_unit_test_setup(test_cache_registers_once, md_setup),
                                       cmocka_unit_test_setup(test_two_domains_register_once_per_rail, md_setup),
                                       cmocka_unit_test_setup(test_domains_of_several_threads, md_setup),
                                       cmocka_unit_test_setup(test_cache_has_a_cap, md_setup),
                                       cmocka_unit_test_setup(test_cache_opens_no_memory_to_peers_unasked, md_setup),
                                       cmocka_unit_test_setup(test_cache_forgets_unmapped_memory, md_setup)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
