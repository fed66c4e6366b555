/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid */
#endif

#include "glue_side.h"

#include "uct/iface.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Declared by UCX's headers that are not installed. */
void *ucs_malloc(size_t size, const char *name);

struct world world;

uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

unsigned glue_patience(void)
{
    const char *wanted = getenv("GLUE_PATIENCE");

    return wanted == NULL ? 60 : (unsigned)atoi(wanted);
}

static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    struct side *side = arg;

    (void)ep;
    side->errors++;
    side->error = status;
    return UCS_OK;
}

/* ---- who holds a control lock ---- */

static pthread_mutex_t     guard = PTHREAD_MUTEX_INITIALIZER;
static struct uct_ha_wake *wakes[2];

static void watch_lock(int s, struct uct_ha_wake *wake)
{
    pthread_mutex_lock(&guard);
    wakes[s] = wake;
    pthread_mutex_unlock(&guard);
}

/* The C library writes down who holds a mutex, of whatever type. */
static int lock_is_mine(void)
{
    int mine = 0;

    pthread_mutex_lock(&guard);
    for (int s = 0; s < 2; s++) {
        mine |= wakes[s] != NULL && wakes[s]->lock.__data.__owner == gettid();
    }
    pthread_mutex_unlock(&guard);
    return mine;
}

/* ---- opening ------------------------------------------------------------------- */

static uct_component_h find_component(void)
{
    uct_component_h     *components, found = NULL;
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    unsigned             num;

    assert_int_equal(uct_query_components(&components, &num), UCS_OK);
    for (unsigned i = 0; i < num; i++) {
        assert_int_equal(uct_component_query(components[i], &attr), UCS_OK);
        if (strcmp(attr.name, "ha") == 0) {
            found = components[i];
        }
    }
    uct_release_component_list(components);
    assert_non_null(found);
    return found;
}

/* Newer UCX wants the prefix of the table, older ones know a setting only without. */
static ucs_status_t set(void *config, const char *name, const char *value)
{
    char         full[64];
    ucs_status_t status = uct_config_modify(config, name, value);

    for (unsigned i = 0; i < 2 && status != UCS_OK; i++) {
        snprintf(full, sizeof(full), "%s%s", i == 0 ? "HA_" : "HA_RC_", name);
        status = uct_config_modify(config, full, value);
    }
    return status;
}

/* Settings that the table does not know belong to the other table. */
static void configure(void *config, const char *settings)
{
    char copy[512], *save, *token, *value;

    snprintf(copy, sizeof(copy), "%s", settings);
    for (token = strtok_r(copy, " ", &save); token != NULL; token = strtok_r(NULL, " ", &save)) {
        value = strchr(token, '=');
        assert_non_null(value);
        *value++ = '\0';
        (void)set(config, token, value);
    }
}

/* Fast enough for a test, slow enough for a machine that is busy. */
#define SETTINGS                                                                              \
    "RCACHE=n TIMEOUT=10 RETRY_COUNT=3 RTO=400ms HEARTBEAT=50ms SLOW_RAIL=off DEAD_PEER=10s " \
    "COOLDOWN=1ms COOLDOWN_MAX=1ms CONNECT_TIMEOUT=20s RX_QUEUE_LEN=32 TX_QUEUE_LEN=64 CTL_QUEUE_LEN=64 "

static void open_md(struct side *side, int s, const char *settings)
{
    uct_component_h  component = find_component();
    uct_md_config_t *config;
    char             rails[64];

    assert_int_equal(uct_md_config_read(component, NULL, NULL, &config), UCS_OK);
    snprintf(rails, sizeof(rails), "%s+%s,%s+%s", world.names[A0], world.names[A1], world.names[B0], world.names[B1]);
    assert_int_equal(set(config, "RAILS", rails), UCS_OK);
    configure(config, SETTINGS);
    configure(config, settings);
    assert_int_equal(uct_md_open(component, world.names[s == 0 ? A0 : B0], config, &side->md), UCS_OK);
    uct_config_release(config);
}

static ucs_status_t open_iface(struct side *side, int s, const char *settings)
{
    uct_iface_params_t  params;
    uct_iface_config_t *config;
    ucs_status_t        status;

    assert_int_equal(uct_md_iface_config_read(side->md, "ha_rc", NULL, NULL, &config), UCS_OK);
    configure(config, SETTINGS);
    configure(config, settings);
    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS | UCT_IFACE_PARAM_FIELD_RX_HEADROOM;
    params.rx_headroom          = GLUE_HEADROOM;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = "ha_rc";
    params.mode.device.dev_name = world.names[s == 0 ? A0 : B0];
    params.err_handler          = on_error;
    params.err_handler_arg      = side;
    status                      = uct_iface_open(side->md, side->worker, &params, config, &side->iface);
    uct_config_release(config);
    return status;
}

static void open_domain(int s, const char *settings)
{
    struct side *side = &world.side[s];

    memset(side, 0, sizeof(*side));
    assert_int_equal(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &side->async), UCS_OK);
    assert_int_equal(uct_worker_create(side->async, UCS_THREAD_MODE_SINGLE, &side->worker), UCS_OK);
    open_md(side, s, settings);
}

void side_open_fails(int s, const char *settings, ucs_status_t status)
{
    open_domain(s, settings);
    assert_int_equal(open_iface(&world.side[s], s, settings), status);
    world.side[s].iface = NULL;
    side_close(s);
}

void side_open(int s, const char *settings)
{
    struct side *side = &world.side[s];

    open_domain(s, settings);
    assert_int_equal(open_iface(side, s, settings), UCS_OK);
    watch_lock(s, &uct_ha_iface(side->iface)->lanes.wake);
    uct_iface_progress_enable(side->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    assert_int_equal(uct_iface_set_am_handler(side->iface, AM_ID, am_received, side, 0), UCS_OK);
    assert_int_equal(uct_iface_query(side->iface, &side->attr), UCS_OK);
    assert_int_equal(uct_iface_get_device_address(side->iface, (void *)side->dev_addr), UCS_OK);
    assert_int_equal(uct_iface_get_address(side->iface, (void *)side->iface_addr), UCS_OK);
}

void side_leave(int s)
{
    for (int i = 0; i < EPS_ROOM; i++) {
        ep_close(s, i);
    }
    if (world.side[s].iface != NULL) {
        watch_lock(s, NULL);
        uct_iface_close(world.side[s].iface);
        world.side[s].iface = NULL;
    }
}

void side_close(int s)
{
    struct side *side = &world.side[s];

    side_leave(s);
    if (side->md != NULL) {
        uct_md_close(side->md);
        side->md = NULL;
    }
    if (side->worker != NULL) {
        uct_worker_destroy(side->worker);
        ucs_async_context_destroy(side->async);
        side->worker = NULL;
    }
}

void world_open(uint64_t seed, const char *settings)
{
    world_open_small(seed, 0, settings);
}

static const char *kind_of(int s)
{
    return world.personality[s] != NULL ? world.personality[s] : getenv("GLUE_PERSONALITY");
}

void world_open_small(uint64_t seed, uint32_t max_cqe, const char *settings)
{
    static const char *const names[] = {"a0:1", "a1:1", "b0:1", "b1:1"};

    fake_begin(seed);
    if (max_cqe != 0) {
        fake_limit_cqe(max_cqe);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(world.names[i], sizeof(world.names[i]), "%s", names[i]);
        assert_int_equal(fake_rail_add(names[i], (unsigned)i % 2, 1 + (unsigned)i / 2), i);
        if (kind_of(i / 2) != NULL) {
            assert_int_equal(fake_personality(i, kind_of(i / 2)), 0);
        }
    }
    fake_forbid(lock_is_mine);
    (void)uct_ha_stats_get(&world.before, sizeof(world.before));
    side_open(0, settings);
    side_open(1, settings);
}

/* Each side sees that its own work is done: else the first to close would wait
 * for the other one, which does not poll meanwhile. */
static void settle(void)
{
    uint64_t until = now_ns() + 300000000ull;
    int      busy  = world.side[0].iface != NULL && world.side[1].iface != NULL;

    while (busy && now_ns() < until) {
        pump();
        busy = uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK ||
               uct_iface_flush(world.side[1].iface, 0, NULL) != UCS_OK;
    }
}

/* Also after a test has failed in the middle. */
void world_close(void)
{
    struct fake_counts counts;
    unsigned           wrong = world.side[0].wrong + world.side[1].wrong;

    settle();
    if (world.side[0].memory != NULL || world.side[1].memory != NULL) {
        memory_close();
    }
    side_close(0);
    side_close(1);
    counts = fake_counts();
    assert_int_equal(fake_end(), 0);
    assert_int_equal(wrong, 0);
    assert_int_equal(counts.overruns, 0);
    assert_int_equal(counts.overbooked, 0);
    assert_int_equal(counts.rnr, 0);
    assert_int_equal(counts.psn_overruns, 0);
    if (counts.forbidden > 0) {
        fail_msg("device commands under the control lock or on the async thread: %lu; the first was enum fake_call %u",
                 counts.forbidden, counts.forbidden_call);
    }
}

int glue_setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    return 0;
}

int glue_teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* ---- endpoints and progress ------------------------------------------------------ */

ucs_status_t ep_try(int s, int i)
{
    struct side    *side = &world.side[s], *peer = &world.side[!s];
    uct_ep_params_t params;

    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = side->iface;
    params.dev_addr   = (void *)peer->dev_addr;
    params.iface_addr = (void *)peer->iface_addr;
    return uct_ep_create(&params, &side->ep[i]);
}

void ep_open(int s, int i)
{
    assert_int_equal(ep_try(s, i), UCS_OK);
}

void ep_close(int s, int i)
{
    if (world.side[s].ep[i] != NULL) {
        uct_ep_destroy(world.side[s].ep[i]);
        world.side[s].ep[i] = NULL;
    }
}

#define IDLE_PUMPS 64 /* so many in a row without an event are a wait */

/* A mutex is not fair: whoever polls without a pause keeps the network's lock, and with it the async threads, out for
 * seconds. And most of a test's time both sides wait for a clock: the processor is another test's then. */
static void give_way(unsigned progressed)
{
    static uint64_t last;
    static unsigned idle;

    idle = progressed > 0 ? 0 : idle + 1;
    if (idle >= IDLE_PUMPS || now_ns() - last > 1000000) {
        usleep(20);
        last = now_ns();
    }
}

void pump(void)
{
    unsigned progressed = 0;

    for (int s = 0; s < 2; s++) {
        if (world.side[s].iface != NULL) {
            progressed += uct_worker_progress(world.side[s].worker);
        }
    }
    give_way(progressed);
}

void pump_ms(unsigned ms)
{
    uint64_t until = now_ns() + ms * 1000000ull;

    while (now_ns() < until) {
        pump();
    }
}

void world_print(void)
{
    struct fake_counts counts = fake_counts();

    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < EPS_ROOM; i++) {
            if (world.side[s].sent[i] != world.side[!s].received[i]) {
                print_message("side %d stream %d: %u sent, %u received\n", s, i, world.side[s].sent[i],
                              world.side[!s].received[i]);
            }
        }
        print_message("side %d: %u errors (%s), %u wrong\n", s, world.side[s].errors,
                      ucs_status_string(world.side[s].error), world.side[s].wrong);
    }
    print_message("packets %lu, lost %lu, late %lu, retries exceeded %lu, rnr %lu, overruns %lu, "
                  "bad keys %lu/%lu, to nobody %lu\n",
                  counts.packets, counts.lost, counts.late, counts.retry_exceeded, counts.rnr, counts.overruns,
                  counts.bad_lkey, counts.bad_rkey, counts.wrong_peer);
}

struct uct_ha_stats stats(void)
{
    struct uct_ha_stats now;
    uint64_t           *to   = (uint64_t *)&now;
    const uint64_t     *from = (const uint64_t *)&world.before;

    (void)uct_ha_stats_get(&now, sizeof(now));
    for (size_t i = 0; i < sizeof(now) / sizeof(*to); i++) {
        to[i] -= from[i];
    }
    return now;
}

void wait_standbys(unsigned count)
{
    pump_until(stats().pairs == count && stats().standbys == count);
}

static void on_completion(uct_completion_t *comp)
{
    struct counted *counted = (struct counted *)(void *)comp;

    counted->called++;
    counted->status = comp->status;
}

uct_completion_t *count_completion(struct counted *counted)
{
    memset(counted, 0, sizeof(*counted));
    counted->comp.func   = on_completion;
    counted->comp.count  = 1;
    counted->comp.status = UCS_OK;
    return &counted->comp;
}

void flush_all_of(int s)
{
    pump_until(uct_iface_flush(world.side[s].iface, 0, NULL) == UCS_OK);
}

void flush_all(void)
{
    flush_all_of(0);
    flush_all_of(1);
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint8_t *register_memory(struct side *side, size_t bytes, uct_mem_h *memh)
{
    uint8_t *memory = calloc(1, bytes);

    assert_non_null(memory);
    assert_int_equal(uct_md_mem_reg(side->md, memory, bytes, UCT_MD_MEM_ACCESS_ALL, memh), UCS_OK);
    return memory;
}

static void make_key(int s, uct_mem_h memh, uct_rkey_bundle_t *key)
{
    uint8_t packed[64];

    assert_int_equal(uct_md_mkey_pack(world.side[s].md, memh, packed), UCS_OK);
    assert_int_equal(uct_rkey_unpack(find_component(), packed, key), UCS_OK);
}

uct_rkey_t memory_key(int s, uct_mem_h memh)
{
    uct_rkey_bundle_t key;

    make_key(s, memh, &key); /* nothing of it is held */
    return key.rkey;
}

void memory_open(size_t bytes)
{
    for (int s = 0; s < 2; s++) {
        struct side *side = &world.side[s];

        side->memory    = register_memory(side, bytes, &side->memh);
        side->am_source = register_memory(side, EPS_MAX * AM_SLOTS * AM_SLOT, &side->am_memh);
    }
    for (int s = 0; s < 2; s++) {
        make_key(!s, world.side[!s].memh, &world.side[s].rkey);
    }
}

void memory_close(void)
{
    for (int s = 0; s < 2; s++) {
        side_leave(s); /* nothing may use the memory any more */
    }
    for (int s = 0; s < 2; s++) {
        struct side *side = &world.side[s];

        if (side->memory != NULL) {
            (void)uct_md_mem_dereg(side->md, side->memh);
            (void)uct_md_mem_dereg(side->md, side->am_memh);
            free(side->memory);
            free(side->am_source);
            side->memory = NULL;
        }
    }
}
