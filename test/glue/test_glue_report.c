/* SPDX-License-Identifier: BSD-3-Clause */

/* What is written of failovers: few lines, and each says who, why, how long and what to do. */

#include "base/messages.h"
#include "glue_tests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
                memcpy(latest, lines[i], sizeof(lines[0]));
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return count;
}

static void forget(void)
{
    pthread_mutex_lock(&lock);
    num_lines = 0;
    pthread_mutex_unlock(&lock);
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
    assert_true(summed_up() >= failovers);
}

/* The first line comes at once, not when the process ends; it names everything. */
static void test_line_says_all(void **state)
{
    char line[512];

    (void)state;
    open_endpoints(402, "COOLDOWN=0 HEARTBEAT=1s", 4);
    fake_port(A0, 0);
    pump_until(heard("ha_rc [HA-101]: failover: ", " left a0:1", line) >= 1);
    assert_non_null(strstr(line, " to 10."));
    assert_non_null(strstr(line, " on over a1:1: silent "));
    assert_non_null(strstr(line, " ms, moved in "));
    assert_non_null(strstr(line, "failure 1 of this rail; the job goes on, no error. "));
    assert_non_null(strstr(line, uct_ha_message_remedy(UCT_HA_MSG_PORT)));
    pump_until(heard("ha_rc [HA-101]: failover: ", " left b0:1 (peer: port)", NULL) >= 1);
    assert_int_equal(heard(" left b0:1 (peer: port)", "The peer noticed: look there first. Look at the cable", NULL),
                     heard(" left b0:1 (peer: port)", "", NULL));
    assert_int_equal(heard(" left a0:1 (port)", "The peer noticed", NULL), 0);
    assert_int_equal(heard("endpoint ", "epoch", NULL), 0); /* single ones are on the level info */
}

/* The silence before the move is told by who noticed it: at least two probes were missed. */
static void test_silence_is_told(void **state)
{
    char        line[512];
    const char *silent;

    (void)state;
    open_endpoints(403, "HEARTBEAT=50ms HEARTBEAT_MISSES=4", 2);
    flush_all(); /* what is under way is noticed by its own card */
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
    open_endpoints(404, "HEARTBEAT=1s", 3);
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
    open_endpoints(405, "DEAD_PEER=3s", 1);
    fake_port(A0, 0);
    pump_until(stats().failovers >= 2);
    fake_port(A1, 0);
    pump_until(world.side[0].errors + world.side[1].errors > 0);
    pump_until(heard("ha_rc [HA-2", " failed: ", line) >= 1);
    assert_non_null(strstr(line, " to 10."));
    assert_true(strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_DEADLINE)) != NULL ||
                strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_PEER_DEAD)) != NULL ||
                strstr(line, uct_ha_message_remedy(UCT_HA_MSG_FAIL_PEER_FAILED)) != NULL);
    assert_true(heard("failover: ", " left a0:1", NULL) >= 1);
}

/* ---- without a standby --------------------------------------------------------------- */

/* Said once it has lasted, with the reason; and so is its return. */
static void test_missing_standby_is_said(void **state)
{
    char line[512];

    (void)state;
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_INFO;
    open_endpoints(406, "STANDBY_WARN=300ms COOLDOWN=0 HEARTBEAT=1s", 3);
    forget(); /* of how long the first standbys took */
    pump_ms(700);
    assert_int_equal(heard("[HA-112]", "", NULL), 0);
    fake_port(A1, 0);
    pump_until(heard("[HA-112]: 3 of 3 endpoints on a0:1 have been without", "a1:1 to 10.", line) >= 1);
    assert_non_null(strstr(line, ": its port is down. "));
    assert_non_null(strstr(line, uct_ha_message_remedy(UCT_HA_MSG_BARE)));
    pump_until(heard("[HA-112]", " b1:1 to ", line) >= 1);
    assert_non_null(strstr(line, "the peer's port is down"));
    pump_until(stats().unprotected == 6);
    fake_port(A1, 1);
    pump_until(heard("[HA-113]: 3 endpoints on a0:1 have a standby again", "", NULL) >= 1);
    pump_until(stats().unprotected == 0);
}

/* A silent rail has another reason, and a host of one rail too. */
static void test_reasons_for_no_standby(void **state)
{
    char line[512];

    (void)state;
    open_endpoints(407, "STANDBY_WARN=300ms HEARTBEAT=50ms", 1);
    fake_port_silently(A1, 0);
    pump_until(heard("[HA-112]", "does not answer", NULL) + heard("[HA-112]", "no path", NULL) +
                   heard("[HA-112]", "left alone", NULL) >=
               1);
    world_close();
    world_open(408, "STANDBY_WARN=300ms RAILS=a0:1,b0:1");
    ep_open(0, 0);
    pump_until(heard("[HA-112]", "no second rail", line) >= 1);
    assert_non_null(strstr(line, "this host has none that fits"));
    world_close();
    assert_true(heard("[HA-114]", " endpoint", NULL) >= 1);
}

/* Who wants none is not told that there is none; nor who asks not to be. */
static void test_wanted_single_rail_is_quiet(void **state)
{
    (void)state;
    world_open(409, "STANDBY_WARN=100ms ENABLE_BACKUP=n");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 2);
    pump_ms(500);
    world_close();
    open_endpoints(410, "STANDBY_WARN=0", 1);
    fake_port(A1, 0);
    pump_ms(500);
    assert_int_equal(heard("[HA-11", "", NULL), 0);
}

/* UCX_HA_RC_REQUIRE: no standby, no transport. */
static void test_required_standby(void **state)
{
    (void)state;
    world_open(411, "REQUIRE=y");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 2);
    side_close(0);
    side_close(1);
    side_open_fails(0, "REQUIRE=y RAILS=a0:1,b0:1", UCS_ERR_UNSUPPORTED);
    assert_int_equal(heard("[HA-331]", "a0:1", NULL), 1);
    side_open(0, "REQUIRE=y");
    side_open(1, "RAILS=a0:1,b0:1");
    assert_int_equal(ep_try(0, 1), UCS_ERR_UNREACHABLE);
    assert_int_equal(heard("[HA-331]", "peer", NULL), 1);
}

/* ---- the statistics file --------------------------------------------------------------- */

static char file_name[256];

/* The whole file; "" when there is none. */
static const char *read_file(void)
{
    static char text[1 << 18];
    FILE       *file = fopen(file_name, "r");
    size_t      length;

    text[0] = '\0';
    if (file != NULL) {
        length       = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        fclose(file);
        assert_non_null(strstr(text, "# HELP ucx_ha_info "));
        assert_non_null(strstr(text, "\nucx_ha_paths_left_out{")); /* never half a file */
    }
    return text;
}

/* The sum of the samples whose line has all these words. */
static double sample(const char *name, const char *word, const char *other)
{
    double      sum = 0;
    const char *line, *end;
    char        copy[512];

    for (line = read_file(); *line != '\0'; line = *end == '\0' ? end : end + 1) {
        end = line + strcspn(line, "\n");
        (void)snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
        if (strncmp(copy, name, strlen(name)) == 0 && copy[strlen(name)] == '{' && strstr(copy, word) != NULL &&
            strstr(copy, other) != NULL) {
            sum += strtod(strrchr(copy, ' '), NULL);
        }
    }
    return sum;
}

static void name_file(char *settings, size_t size, const char *more)
{
    char host[64] = "";

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(file_name, sizeof(file_name), "./report.%s.%d.prom", host, (int)getpid());
    (void)snprintf(settings, size, "STATS_FILE=./report.%%h.%%p.prom STATS_INTERVAL=100ms %s", more);
}

/* Written while rails are cut, whole whenever it is read, and gone with the last interface. */
static void test_stats_file_under_failovers(void **state)
{
    char     settings[256];
    double   before;
    unsigned cut;

    (void)state;
    name_file(settings, sizeof(settings), "COOLDOWN=0 HEARTBEAT=500ms");
    open_endpoints(420, settings, 8);
    pump_until(sample("ucx_ha_path_standby", "a1:1", "") == 8);
    assert_true(sample("ucx_ha_path_active", "a0:1", "10.0.0.2") == 8);
    before = sample("ucx_ha_failovers_total", "", "");
    for (cut = 0; cut < 6; cut++) {
        fake_port(cut % 2 == 0 ? A0 : A1, 0);
        pump_until(stats().failovers == (cut + 1) * 16);
        pump_until(sample("ucx_ha_rails_down", "", "") == 1);
        fake_port(cut % 2 == 0 ? A0 : A1, 1);
        wait_standbys(16);
    }
    pump_until(sample("ucx_ha_failovers_total", "", "") - before == cut * 16);
    pump_until(sample("ucx_ha_rail_left_total", "a0:1", "port") == 24);
    assert_true(sample("ucx_ha_rail_failures_total", "a1:1", "port") >= 1);
    assert_true(sample("ucx_ha_move_seconds_bucket", "+Inf", "") >= cut * 16);
    assert_true(sample("ucx_ha_move_seconds_count", "", "") == sample("ucx_ha_move_seconds_bucket", "+Inf", ""));
    assert_true(sample("ucx_ha_pairs", "", "") == 16);
    side_close(0);
    assert_true(access(file_name, F_OK) == 0);
    side_close(1);
    assert_int_equal(access(file_name, F_OK), -1);
}

/* A file that cannot be written is said once, and nothing else comes of it. */
static void test_stats_file_that_cannot_be(void **state)
{
    (void)state;
    open_endpoints(421, "STATS_FILE=/nonexistent/%p.prom STATS_INTERVAL=100ms", 1);
    pump_ms(500);
    am_exchange(0, 2);
    assert_int_equal(heard("[HA-341]", "/nonexistent/", NULL), 1);
    side_close(0);
    side_close(1);
    side_open_fails(0, "STATS_FILE=/tmp/same_for_all.prom", UCS_ERR_INVALID_PARAM);
    assert_int_equal(heard("[HA-301]", "/tmp/same_for_all.prom", NULL), 1);
    side_open_fails(0, "STATS_FILE=/tmp/%p.%x", UCS_ERR_INVALID_PARAM);
    assert_int_equal(heard("[HA-301]", "%x", NULL), 1);
    side_open_fails(0, "STATS_FILE=%p STATS_INTERVAL=1ms", UCS_ERR_INVALID_PARAM);
    assert_int_equal(heard("[HA-301]", "STATS_INTERVAL", NULL), 1);
}

#define REPORT_TEST(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

static const struct CMUnitTest tests[] = {
    REPORT_TEST(test_lines_of_many_cuts),        REPORT_TEST(test_line_says_all),
    REPORT_TEST(test_silence_is_told),           REPORT_TEST(test_single_endpoints_at_info),
    REPORT_TEST(test_failure_has_a_remedy),      REPORT_TEST(test_missing_standby_is_said),
    REPORT_TEST(test_reasons_for_no_standby),    REPORT_TEST(test_wanted_single_rail_is_quiet),
    REPORT_TEST(test_required_standby),          REPORT_TEST(test_stats_file_under_failovers),
    REPORT_TEST(test_stats_file_that_cannot_be),
};

int glue_report(void)
{
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
