/* SPDX-License-Identifier: BSD-3-Clause */

/* What is written of failovers: few lines, and each says who, why, how long and what to do. */

#include "base/messages.h"
#include "glue_tests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

#define LINES_MAX 4096
#define ENDPOINTS 64
#define CUTS      20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char            lines[LINES_MAX][512];
static unsigned        num_lines;
static ucs_log_level_t level_before;

static ucs_log_func_rc_t hear(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                              const ucs_log_component_config_t *component, const char *message, va_list args)
{
    (void)file;
    (void)line;
    (void)function;
    (void)level;
    (void)component;
    pthread_mutex_lock(&lock);
    if (num_lines < LINES_MAX) {
        (void)vsnprintf(lines[num_lines++], sizeof(lines[0]), message, args);
    }
    pthread_mutex_unlock(&lock);
    return UCS_LOG_FUNC_RC_STOP;
}

static void listen_begin(ucs_log_level_t level)
{
    num_lines                               = 0;
    level_before                            = ucs_global_opts.log_component.log_level;
    ucs_global_opts.log_component.log_level = level;
    ucs_log_push_handler(hear);
}

static void listen_end(void)
{
    ucs_log_pop_handler();
    ucs_global_opts.log_component.log_level = level_before;
}

/* Lines with both words; the latest one is handed out. */
static unsigned heard(const char *word, const char *other, char *latest)
{
    unsigned count = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < num_lines; i++) {
        if (strstr(lines[i], word) != NULL && strstr(lines[i], other) != NULL) {
            count++;
            if (latest != NULL) {
                (void)snprintf(latest, sizeof(lines[0]), "%s", lines[i]);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* Endpoints that lines of failovers speak of. */
static unsigned long summed_up(void)
{
    unsigned long sum = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < num_lines; i++) {
        const char *count = strstr(lines[i], "]: failover: ");

        sum += count != NULL ? strtoul(count + strlen("]: failover: "), NULL, 10) : 0;
    }
    pthread_mutex_unlock(&lock);
    return sum;
}

static int setup(void **state)
{
    listen_begin(UCS_LOG_LEVEL_WARN);
    return glue_setup(state);
}

static int teardown(void **state)
{
    int ret = glue_teardown(state);

    listen_end();
    return ret;
}

static void open_endpoints(uint64_t seed, const char *settings, int count)
{
    world_open(seed, settings);
    for (int i = 0; i < count; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_post(0, i, 2);
        am_post(1, i, 2);
    }
    pump_until(am_all_here());
    wait_standbys(2 * (unsigned)count);
}

/* 64 endpoints, 20 cuts, two hosts: at most two lines per cut and host, and none of the endpoints is
 * forgotten in them. */
static void test_lines_of_many_cuts(void **state)
{
    unsigned failovers, a, b;

    (void)state;
    open_endpoints(401, "DEAD_PEER=30s CONNECT_TIMEOUT=60s HEARTBEAT=500ms COOLDOWN=0 TIMEOUT=18 RTO=5s RTO_MAX=5s",
                   ENDPOINTS);
    for (unsigned cut = 0; cut < CUTS; cut++) {
        fake_port(cut % 2 == 0 ? A0 : A1, 0);
        pump_until(stats().failovers >= (cut + 1) * 2 * ENDPOINTS);
        fake_port(cut % 2 == 0 ? A0 : A1, 1);
        wait_standbys(2 * ENDPOINTS);
    }
    failovers = (unsigned)stats().failovers;
    world_close(); /* what waited is said */
    a = heard("failover: ", " left a", NULL);
    b = heard("failover: ", " left b", NULL);
    print_message("%u failovers: %u lines of one host, %u of the other\n", failovers, a, b);
    assert_in_range(a, 1, 2 * CUTS);
    assert_in_range(b, 1, 2 * CUTS);
    assert_int_equal(summed_up(), failovers);
}

/* The first line comes at once, not when the process ends; it names everything. */
static void test_line_says_all(void **state)
{
    char line[512];

    (void)state;
    open_endpoints(402, "COOLDOWN=0", 4);
    fake_port(A0, 0);
    pump_until(heard("failover: ", " left a0:1", line) == 1);
    assert_non_null(strstr(line, "ha_rc [HA-101]: failover: 4 endpoints to 10."));
    assert_non_null(strstr(line, " left a0:1 (port), go on over a1:1: silent "));
    assert_non_null(strstr(line, " ms, moved in "));
    assert_non_null(strstr(line, "failure 1 of this rail; the job goes on, no error. "));
    assert_non_null(strstr(line, uct_ha_message_remedy(UCT_HA_MSG_PORT)));
    pump_until(heard("failover: ", " left b0:1 (peer: port)", line) == 1);
    assert_non_null(strstr(line, "ha_rc [HA-101]: "));
    assert_int_equal(heard("endpoint ", "epoch", NULL), 0); /* single ones are on the level info */
}

/* The silence before the move is told by who noticed it: at least two probes were missed. */
static void test_silence_is_told(void **state)
{
    char        line[512];
    const char *silent;

    (void)state;
    open_endpoints(403, "HEARTBEAT=50ms HEARTBEAT_MISSES=4", 2);
    fake_port_silently(B0, 0);
    pump_until(heard("[HA-104]: failover: ", "0:1 (heartbeat", line) >= 1);
    silent = strstr(line, "silent ");
    assert_non_null(silent);
    assert_true(strtoul(silent + strlen("silent "), NULL, 10) >= 100);
    fake_port_silently(B0, 1);
    am_post(0, 0, 4);
    pump_until(am_all_here());
}

/* One line of each endpoint, for who asks. */
static void test_single_endpoints_at_info(void **state)
{
    (void)state;
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_INFO;
    open_endpoints(404, "", 3);
    fake_port(A0, 0);
    pump_until(stats().failovers == 6);
    pump_until(heard("[HA-111]: failover: endpoint ", " goes on over a1:1: epoch 2", NULL) == 3);
    pump_until(heard("[HA-111]: failover: endpoint ", " goes on over b1:1: epoch 2", NULL) == 3);
}

/* An endpoint that fails says what to do, and its failovers before it. */
static void test_failure_has_a_remedy(void **state)
{
    char line[512];

    (void)state;
    open_endpoints(405, "DEAD_PEER=500ms", 1);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    fake_port(A1, 0);
    pump_until(world.side[0].errors + world.side[1].errors > 0);
    pump_until(heard("ha_rc [HA-2", " failed: ", line) >= 1);
    assert_non_null(strstr(line, " to 10."));
    assert_true(strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_DEADLINE)) != NULL ||
                strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_PEER_DEAD)) != NULL ||
                strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_PEER_FAILED)) != NULL);
    assert_true(heard("failover: ", " left a0:1", NULL) == 1);
}

#define REPORT_TEST(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

static const struct CMUnitTest tests[] = {
    REPORT_TEST(test_lines_of_many_cuts),   REPORT_TEST(test_line_says_all),
    REPORT_TEST(test_silence_is_told),      REPORT_TEST(test_single_endpoints_at_info),
    REPORT_TEST(test_failure_has_a_remedy),
};

int glue_report(void)
{
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
