/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory domains over made-up rails: no device is needed. */
#include "uct_ha_mem.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* ---- made-up rails ------------------------------------------------------- */

struct ha_rail {
    char                  name[HA_RAIL_NAME_MAX];
    int                   opened;
    int                   open_error;
    int                   down;
    uint8_t               link_layer; /* 0 = Ethernet */
    int                   reg_error;
    int                   registered; /* now */
    int                   total;      /* ever */
    unsigned              last_access;
    struct ha_rail_limits limits;
};

struct ha_mr {
    struct ha_rail *rail;
    uint32_t        key;
};

static struct ha_rail rails[HA_RAILS_MAX];
static int num_rails;
static struct ha_rail_opts last_opts;

int ha_rail_list(char (*names)[HA_RAIL_NAME_MAX], int max)
{
    int i;

    for (i = 0; (i < num_rails) && (i < max); ++i) {
        memcpy(names[i], rails[i].name, HA_RAIL_NAME_MAX);
    }
    return i;
}

int ha_rail_open(const char *name, const struct ha_rail_opts *opts, struct ha_rail **rail_p)
{
    int i;

    for (i = 0; i < num_rails; ++i) {
        if (strcmp(rails[i].name, name) == 0) {
            if (rails[i].open_error != 0) {
                return rails[i].open_error;
            }
            __atomic_fetch_add(&rails[i].opened, 1, __ATOMIC_RELAXED);
            last_opts = *opts;
            *rail_p   = &rails[i];
            return 0;
        }
    }
    return -ENODEV;
}

void ha_rail_close(struct ha_rail *rail)
{
    __atomic_fetch_sub(&rail->opened, 1, __ATOMIC_RELAXED);
}

const char *ha_rail_name(const struct ha_rail *rail)
{
    return rail->name;
}

const struct ha_rail_limits *ha_rail_limits(const struct ha_rail *rail)
{
    return &rail->limits;
}

struct ha_rail_addr ha_rail_addr(struct ha_rail *rail)
{
    struct ha_rail_addr addr = { .link_layer = HA_LINK_ETHERNET };

    if (rail->link_layer != 0) {
        addr.link_layer = rail->link_layer;
    }
    return addr;
}

int ha_rail_up(const struct ha_rail *rail)
{
    return !rail->down;
}

int ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access,
              struct ha_mr **mr_p)
{
    (void)addr;
    (void)length;
    if (rail->reg_error != 0) {
        return rail->reg_error;
    }
    *mr_p             = calloc(1, sizeof(**mr_p));
    (*mr_p)->rail     = rail;
    (*mr_p)->key      = (uint32_t)(0xa0b0c0d0u + (unsigned)(rail - rails));
    rail->last_access = access;
    __atomic_fetch_add(&rail->registered, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rail->total, 1, __ATOMIC_RELAXED);
    return 0;
}

void ha_mr_dereg(struct ha_mr *mr)
{
    __atomic_fetch_sub(&mr->rail->registered, 1, __ATOMIC_RELAXED);
    free(mr);
}

uint32_t ha_mr_lkey(const struct ha_mr *mr)
{
    return mr->key ^ 0xffu;
}

uint32_t ha_mr_rkey(const struct ha_mr *mr)
{
    return mr->key;
}

/* ---- the domain's side --------------------------------------------------- */

static uct_component_t component = {
    .name      = "ha",
    .md_config = {
        .name   = "HA memory domain",
        .prefix = UCT_HA_CONFIG_PREFIX,
        .table  = uct_ha_md_config_table,
        .size   = sizeof(struct uct_ha_md_config)
    }
};

static void add_rail(const char *name)
{
    struct ha_rail *rail = &rails[num_rails];

    memset(rail, 0, sizeof(*rail));
    snprintf(rail->name, sizeof(rail->name), "%s", name);
    rail->limits.numa_node = -1;
    rail->limits.node_guid = 100u + (unsigned)num_rails;
    ++num_rails;
}

static int setup(void **state)
{
    (void)state;
    num_rails = 0;
    unsetenv("UCX_HA_RC_RAILS");
    unsetenv("UCX_HA_RC_ENABLE_BACKUP");
    unsetenv("UCX_HA_RC_SL");
    unsetenv("UCX_HA_RC_PATH_MTU");
    setenv("UCX_HA_RC_RCACHE", "n", 1);
    return 0;
}

static unsigned query(uct_md_resource_desc_t *found)
{
    uct_md_resource_desc_t *resources;
    unsigned num;

    assert_int_equal(uct_ha_md_query_resources(&component, &resources, &num), UCS_OK);
    if (resources != NULL) {
        memcpy(found, resources, num * sizeof(*found));
    }
    ucs_free(resources);
    return num;
}

static ucs_status_t open_md(const char *name, uct_md_h *md_p)
{
    uct_md_config_t *config;
    ucs_status_t status;

    assert_int_equal(uct_md_config_read(&component, NULL, NULL, &config), UCS_OK);
    status = uct_ha_md_open(&component, name, config, md_p);
    uct_config_release(config);
    return status;
}

static void close_md(uct_md_h md)
{
    int i;

    md->ops->close(md);
    for (i = 0; i < num_rails; ++i) {
        assert_int_equal(rails[i].opened, 0);
        assert_int_equal(rails[i].registered, 0);
    }
}

static void dereg(uct_md_h md, uct_mem_h memh)
{
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh
    };

    assert_int_equal(md->ops->mem_dereg(md, &params), UCS_OK);
}

static void test_no_device_is_no_domain(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];

    (void)state;
    assert_int_equal(query(found), 0);
}

static void test_one_domain_per_rail(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_tl_device_resource_t *devices;
    unsigned num_devices;
    uct_md_h md;

    (void)state;
    add_rail("rxe_a:1");
    add_rail("rxe_b:1");
    assert_int_equal(query(found), 2);
    assert_string_equal(found[0].md_name, "rxe_a:1");
    assert_string_equal(found[1].md_name, "rxe_b:1");

    assert_int_equal(open_md("rxe_b:1", &md), UCS_OK);
    assert_ptr_equal(md->component, &component);
    assert_ptr_equal(uct_ha_md(md)->rail[0], &rails[1]);
    assert_ptr_equal(uct_ha_md(md)->rail[1], &rails[0]);
    assert_int_equal(uct_ha_query_devices(md, &devices, &num_devices), UCS_OK);
    assert_int_equal(num_devices, 1);
    assert_string_equal(devices[0].name, "rxe_b:1");
    assert_int_equal(devices[0].type, UCT_DEVICE_TYPE_NET);
    ucs_free(devices);
    close_md(md);

    assert_int_equal(open_md("nonsense", &md), UCS_ERR_NO_DEVICE);
}

static ucs_status_t offered(const char *name)
{
    uct_tl_device_resource_t *devices = NULL;
    unsigned num_devices;
    ucs_status_t status;
    uct_md_h md;

    assert_int_equal(open_md(name, &md), UCS_OK);
    status = uct_ha_query_devices(md, &devices, &num_devices);
    if (status == UCS_OK) {
        ucs_free(devices);
    }
    close_md(md);
    return status;
}

/* Two rails that only have each other are dead at start: they are not offered while
 * others work, which peers can be reached by. */
static void test_domain_without_a_living_rail(void **state)
{
    (void)state;
    add_rail("three_a:1");
    add_rail("three_b:1");
    add_rail("three_c:1");
    rails[0].link_layer = rails[1].link_layer = HA_LINK_IB;
    rails[0].down = rails[1].down = 1;
    assert_int_equal(offered("three_a:1"), UCS_ERR_NO_DEVICE);
    assert_int_equal(offered("three_b:1"), UCS_ERR_NO_DEVICE);
    assert_int_equal(offered("three_c:1"), UCS_OK);
    setenv("UCX_HA_RC_RAILS", "three_a+three_b,three_c", 1);
    assert_int_equal(offered("three_a:1"), UCS_OK); /* as the user wants */
}

static void test_domain_with_a_living_standby(void **state)
{
    (void)state;
    add_rail("half_a:1");
    add_rail("half_b:1");
    add_rail("half_c:1");
    rails[0].down = 1;
    assert_int_equal(offered("half_a:1"), UCS_OK);
    assert_int_equal(offered("half_c:1"), UCS_OK);
}

static void test_nothing_is_up(void **state)
{
    (void)state;
    add_rail("dead_a:1");
    add_rail("dead_b:1");
    rails[0].down = rails[1].down = 1;
    assert_int_equal(offered("dead_a:1"), UCS_OK); /* they may come up */
}

static void test_long_names_stay_apart(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_tl_device_resource_t *devices;
    unsigned num_devices;
    uct_md_h md;

    (void)state;
    add_rail("rocep129s0f0np0:1");
    add_rail("rocep129s0f0np1:1");
    assert_int_equal(query(found), 2);
    assert_string_not_equal(found[0].md_name, found[1].md_name);

    assert_int_equal(open_md(found[1].md_name, &md), UCS_OK);
    assert_int_equal(uct_ha_query_devices(md, &devices, &num_devices), UCS_OK);
    assert_string_equal(devices[0].name, "rocep129s0f0np1:1");
    ucs_free(devices);
    close_md(md);
}

static void test_groups_limit_what_is_offered(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    add_rail("c:1");
    setenv("UCX_HA_RC_RAILS", "c:1+a:1", 1);
    assert_int_equal(query(found), 2);
    assert_string_equal(found[0].md_name, "a:1");
    assert_string_equal(found[1].md_name, "c:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_ptr_equal(uct_ha_md(md)->rail[1], &rails[2]);
    close_md(md);
}

static void test_bad_groups_give_no_domain(void **state)
{
    uct_md_resource_desc_t found[HA_RAILS_MAX];
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    setenv("UCX_HA_RC_RAILS", "a:1+nonsense:1", 1);
    assert_int_equal(query(found), 0);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
}

static void test_backup_switched_off(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    setenv("UCX_HA_RC_ENABLE_BACKUP", "n", 1);
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_null(uct_ha_md(md)->rail[1]);
    close_md(md);
}

static void test_standby_that_does_not_open(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    rails[1].open_error = -EADDRNOTAVAIL;
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_null(uct_ha_md(md)->rail[1]);
    close_md(md);
    assert_int_equal(open_md("b:1", &md), UCS_ERR_NO_DEVICE);
}

static void test_options_reach_the_rail(void **state)
{
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    setenv("UCX_HA_RC_SL", "3", 1);
    setenv("UCX_HA_RC_PATH_MTU", "1024", 1);
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(last_opts.sl, 3);
    assert_int_equal(last_opts.mtu, 1024);
    assert_int_equal(last_opts.gid_index, -1);
    assert_int_equal(last_opts.hop_limit, 64);
    close_md(md);

    setenv("UCX_HA_RC_PATH_MTU", "1000", 1);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
    setenv("UCX_HA_RC_PATH_MTU", "0", 1);
    setenv("UCX_HA_RC_SL", "16", 1);
    assert_int_equal(open_md("a:1", &md), UCS_ERR_INVALID_PARAM);
}

static void test_attributes(void **state)
{
    uct_md_attr_t attr;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    memset(&attr, 0xff, sizeof(attr));
    assert_int_equal(md->ops->query(md, &attr), UCS_OK);
    assert_int_equal(attr.cap.flags, UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                                     UCT_MD_FLAG_NEED_RKEY);
    assert_int_equal(attr.rkey_packed_size, 8);
    assert_int_equal(attr.cap.max_alloc, 0);
    assert_true(attr.cap.max_reg == SIZE_MAX);
    assert_true(attr.reg_cost.c > 0);
    assert_true(ucs_cpu_is_set(0, &attr.local_cpus));
    close_md(md);
}

/* What the public counters say of a rail; 0 before it was used. */
static struct uct_ha_rail_stats stats_of(const char *name)
{
    struct uct_ha_rail_stats stats;
    unsigned i;

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
    static const uint8_t on_the_wire[8] = { 0xa0, 0xb0, 0xc0, 0xd0, 0xa0, 0xb0, 0xc0, 0xd1 };
    uint8_t packed[8];
    char buffer[64];
    uct_rkey_t rkey;
    uct_mem_h memh;
    void *handle;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL,
                                      &memh), UCS_OK);
    assert_int_equal(rails[0].registered, 1);
    assert_int_equal(rails[1].registered, 0);

    assert_int_equal(md->ops->mkey_pack(md, memh, NULL, packed), UCS_OK);
    assert_int_equal(rails[1].registered, 1);
    assert_int_equal(rails[1].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET |
                                           HA_ACCESS_REMOTE_ATOMIC);
    assert_int_equal(stats_of("b:1").mrs, 1);
    assert_int_equal(stats_of("b:1").mr_bytes, sizeof(buffer));
    assert_int_equal(md->ops->mkey_pack(md, memh, NULL, packed), UCS_OK);
    assert_int_equal(rails[1].total, 1);
    assert_memory_equal(packed, on_the_wire, sizeof(packed));
    assert_int_equal(uct_ha_rkey_unpack(&component, packed, &rkey, &handle), UCS_OK);
    assert_int_equal(uct_ha_rkey(rkey, 0), 0xa0b0c0d0u);
    assert_int_equal(uct_ha_rkey(rkey, 1), 0xa0b0c0d1u);
    assert_int_equal(uct_ha_rkey_release(&component, rkey, handle), UCS_OK);
    dereg(md, memh);
    close_md(md);
}

/* Whoever asks for its key: no peer may use it, so the standby need not know. */
static void test_local_memory_stays_off_the_standby(void **state)
{
    uint8_t packed[8];
    char buffer[64];
    uct_mem_h memh;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer),
                                      UCT_MD_MEM_ACCESS_LOCAL_WRITE, &memh), UCS_OK);
    assert_int_equal(md->ops->mkey_pack(md, memh, NULL, packed), UCS_OK);
    assert_int_equal(rails[0].registered, 1);
    assert_int_equal(rails[1].registered, 0);
    assert_int_equal(rails[0].last_access, 0);

    /* what an operation after a failover does, once */
    assert_int_equal(uct_ha_reg_on(uct_ha_mem(memh), uct_ha_md(md)->rail_no[1]), 0);
    assert_int_equal(uct_ha_reg_on(uct_ha_mem(memh), uct_ha_md(md)->rail_no[1]), 0);
    assert_int_equal(rails[1].total, 1);
    dereg(md, memh);
    close_md(md);
}

/* Without the cache nobody sees memory move: nothing may be shared. */
static void test_domains_without_cache_share_nothing(void **state)
{
    uct_mem_h memh[2];
    char buffer[64];
    uct_md_h md[2];

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md[0]), UCS_OK);
    assert_int_equal(open_md("a:1", &md[1]), UCS_OK);
    assert_int_equal(md[0]->ops->mem_reg(md[0], buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA,
                                         &memh[0]), UCS_OK);
    assert_int_equal(md[1]->ops->mem_reg(md[1], buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA,
                                         &memh[1]), UCS_OK);
    assert_ptr_not_equal(memh[0], memh[1]);
    assert_int_equal(rails[0].registered, 2);
    dereg(md[0], memh[0]);
    dereg(md[1], memh[1]);
    md[0]->ops->close(md[0]);
    close_md(md[1]);
}

static void test_access_follows_the_flags(void **state)
{
    char buffer[64];
    uct_mem_h memh;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer),
                                      UCT_MD_MEM_ACCESS_LOCAL_WRITE, &memh), UCS_OK);
    assert_int_equal(rails[0].last_access, 0);
    dereg(md, memh);
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_RMA,
                                      &memh), UCS_OK);
    assert_int_equal(rails[0].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET);
    dereg(md, memh);
    close_md(md);
}

static void test_registration_that_fails(void **state)
{
    uint8_t packed[8];
    char buffer[64];
    uct_rkey_t rkey;
    uct_mem_h memh;
    void *handle;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);

    rails[1].reg_error = -ENOMEM; /* the standby is missed, not required */
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer), UCT_MD_MEM_ACCESS_ALL,
                                      &memh), UCS_OK);
    assert_int_equal(md->ops->mkey_pack(md, memh, NULL, packed), UCS_OK);
    assert_int_equal(uct_ha_rkey_unpack(&component, packed, &rkey, &handle), UCS_OK);
    assert_true(uct_ha_rkey(rkey, 0) != 0);
    assert_int_equal(uct_ha_rkey(rkey, 1), 0);
    dereg(md, memh);

    rails[0].reg_error = -ENOMEM;
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer),
                                      UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS,
                                      &memh), UCS_ERR_NO_MEMORY);
    rails[0].reg_error = -EFAULT;
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer),
                                      UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS,
                                      &memh), UCS_ERR_IO_ERROR);
    close_md(md);
}

static void test_bad_deregistration(void **state)
{
    uct_md_mem_dereg_params_t params = { .field_mask = 0 };
    char buffer[64];
    uct_mem_h memh;
    uct_md_h md;

    (void)state;
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->mem_dereg(md, &params), UCS_ERR_INVALID_PARAM);
    assert_int_equal(md->ops->mem_reg(md, buffer, sizeof(buffer), 0, &memh), UCS_OK);
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

    assert_int_equal(md->ops->mem_reg(md, address, length, flags, &memh), UCS_OK);
    assert_true((char*)uct_ha_mem(memh)->address <= (char*)address);
    assert_true((char*)uct_ha_mem(memh)->address + uct_ha_mem(memh)->length >=
                (char*)address + length);
    return memh;
}

static void *map(size_t length)
{
    void *address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);

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
    uct_mem_h first, second;
    uct_md_attr_t attr;
    char *buffer;
    uct_md_h md;

    (void)state;
    with_cache();
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    assert_int_equal(md->ops->query(md, &attr), UCS_OK);
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
    uint8_t packed[8];
    char *buffer;
    uct_md_h md[2];
    int i;

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
        assert_int_equal(md[i]->ops->mkey_pack(md[i], memh[i], NULL, packed), UCS_OK);
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
    uint8_t packed[8];
    uct_mem_h memh;
    uct_md_h md;
    int i;

    for (i = 0; i < ROUNDS; ++i) {
        assert_int_equal(open_md(opener->name, &md), UCS_OK);
        memh = reg(md, opener->buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
        assert_int_equal(md->ops->mkey_pack(md, memh, NULL, packed), UCS_OK);
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
    uct_md_h md;
    int i;

    (void)state;
    with_cache();
    add_rail("a:1");
    add_rail("b:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK); /* keeps the cache alive */
    for (i = 0; i < THREADS; ++i) {
        opener[i].name   = rails[i % 2].name;
        opener[i].buffer = (i == 0) ? map(1 << 16) : opener[0].buffer;
        assert_int_equal(pthread_create(&opener[i].thread, NULL, open_and_register, &opener[i]),
                         0);
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
    char *buffer;
    uct_md_h md;
    int i;

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
    char *buffer;
    uct_md_h md;

    (void)state;
    with_cache();
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    buffer = map(1 << 16);

    local = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_LOCAL_READ);
    assert_int_equal(rails[0].last_access, 0);
    remote = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_RMA);
    assert_int_equal(rails[0].last_access, HA_ACCESS_REMOTE_PUT | HA_ACCESS_REMOTE_GET |
                                           HA_ACCESS_REMOTE_ATOMIC);
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
    char *buffer;
    uct_md_h md;

    (void)state;
    with_cache();
    add_rail("a:1");
    assert_int_equal(open_md("a:1", &md), UCS_OK);
    buffer = map(1 << 16);
    dereg(md, reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL));
    assert_int_equal(rails[0].registered, 1);
    munmap(buffer, 1 << 16);

    buffer = map(1 << 16);
    rails[0].total = 0;
    memh = reg(md, buffer, 1 << 16, UCT_MD_MEM_ACCESS_ALL);
    assert_int_equal(rails[0].total, 1);
    dereg(md, memh);
    munmap(buffer, 1 << 16);
    close_md(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_device_is_no_domain, setup),
        cmocka_unit_test_setup(test_one_domain_per_rail, setup),
        cmocka_unit_test_setup(test_domain_without_a_living_rail, setup),
        cmocka_unit_test_setup(test_domain_with_a_living_standby, setup),
        cmocka_unit_test_setup(test_nothing_is_up, setup),
        cmocka_unit_test_setup(test_long_names_stay_apart, setup),
        cmocka_unit_test_setup(test_groups_limit_what_is_offered, setup),
        cmocka_unit_test_setup(test_bad_groups_give_no_domain, setup),
        cmocka_unit_test_setup(test_backup_switched_off, setup),
        cmocka_unit_test_setup(test_standby_that_does_not_open, setup),
        cmocka_unit_test_setup(test_options_reach_the_rail, setup),
        cmocka_unit_test_setup(test_attributes, setup),
        cmocka_unit_test_setup(test_standby_registers_when_a_key_is_packed, setup),
        cmocka_unit_test_setup(test_local_memory_stays_off_the_standby, setup),
        cmocka_unit_test_setup(test_domains_without_cache_share_nothing, setup),
        cmocka_unit_test_setup(test_access_follows_the_flags, setup),
        cmocka_unit_test_setup(test_registration_that_fails, setup),
        cmocka_unit_test_setup(test_bad_deregistration, setup),
        cmocka_unit_test_setup(test_cache_registers_once, setup),
        cmocka_unit_test_setup(test_two_domains_register_once_per_rail, setup),
        cmocka_unit_test_setup(test_domains_of_several_threads, setup),
        cmocka_unit_test_setup(test_cache_has_a_cap, setup),
        cmocka_unit_test_setup(test_cache_opens_no_memory_to_peers_unasked, setup),
        cmocka_unit_test_setup(test_cache_forgets_unmapped_memory, setup)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
