/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi/adapt.h"
#include "base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *variable, const char *value, ucs_status_t parsed, ucs_status_t checked)
{
    struct uct_ha_iface_config config;
    ucs_status_t               status;

    setenv(variable, value, 1);
    status = uct_ha_config_fill(&config, uct_ha_iface_config_table, sizeof(config), UCT_HA_CONFIG_PREFIX);
    unsetenv(variable);
    assert_int_equal(status, parsed);
    if (status == UCS_OK) {
        status = uct_ha_iface_config_check(&config);
        ucs_config_parser_release_opts(&config, uct_ha_iface_config_table);
        if (status != checked) {
            fail_msg("%s=%s gives %d", variable, value, status);
        }
    }
}

static void test_defaults(void **state)
{
    struct uct_ha_iface_config config;

    (void)state;
    assert_int_equal(uct_ha_config_fill(&config, uct_ha_iface_config_table, sizeof(config), UCT_HA_CONFIG_PREFIX),
                     UCS_OK);
    assert_int_equal(uct_ha_iface_config_check(&config), UCS_OK);
    assert_int_equal(config.timeout, 16);
    assert_int_equal(config.retry_count, 6);
    assert_int_equal(config.seg_size, 8192);
    assert_true((config.rto > 0.999) && (config.rto < 1.001));
    assert_true((config.heartbeat > 0.0999) && (config.heartbeat < 0.1001));
    assert_true((config.dead_peer > 9.99) && (config.dead_peer < 10.01));
    assert_true(config.failback == UCT_HA_FAILBACK_NEVER);
    assert_true(config.slow_rail == 20);
    assert_true(config.lossy_rail);
    assert_true((config.cooldown > 0.0999) && (config.cooldown < 0.1001));
    assert_true(config.proof == UCT_HA_PROOF_AUTO);
    assert_true(config.atomics == UCT_HA_ATOMICS_SW);
    assert_false(config.trace);
    ucs_config_parser_release_opts(&config, uct_ha_iface_config_table);
}

static void test_values(void **state)
{
    (void)state;
    parse("UCX_HA_RC_HEARTBEAT", "0", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_RTO", "250ms", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_SEG_SIZE", "64k", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_TRACE", "y", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_INLINE", "0", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_PROOF", "auto", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_PROOF", "psn", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_PROOF", "count", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_PROOF", "ledger", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_PROOF", "faith", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_ATOMICS", "sw", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_ATOMICS", "hw", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_ATOMICS", "y", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_ZONES", "mlx5_0:railA,10.1.0.0/16:railB", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_FAILBACK", "auto", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_FAILBACK", "NEVER", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_FAILBACK", "30s", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_COOLDOWN", "0", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_SLOW_RAIL", "off", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_SLOW_RAIL", "20", UCS_OK, UCS_OK);
}

/* The card's timeout as a time: rounded up to what the card has. */
static void test_timeout_as_time(void **state)
{
    static const struct {
        const char *text;
        unsigned    exponent;
    } cases[] = {{"16", 16}, {"268ms", 16}, {"269ms", 17}, {"268.435ms", 16}, {"1us", 1}, {"8.192us", 1}, {"1s", 18}};
    struct uct_ha_iface_config config;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("UCX_HA_RC_TIMEOUT", cases[i].text, 1);
        assert_int_equal(uct_ha_config_fill(&config, uct_ha_iface_config_table, sizeof(config), UCT_HA_CONFIG_PREFIX),
                         UCS_OK);
        if (config.timeout != cases[i].exponent) {
            fail_msg("TIMEOUT=%s is %u", cases[i].text, config.timeout);
        }
        ucs_config_parser_release_opts(&config, uct_ha_iface_config_table);
    }
    unsetenv("UCX_HA_RC_TIMEOUT");
    parse("UCX_HA_RC_TIMEOUT", "99999s", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_TIMEOUT", "-5ms", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_TIMEOUT", "long", UCS_ERR_INVALID_PARAM, UCS_OK);
}

/* `auto` is what the number for it was. */
static void test_auto(void **state)
{
    static const char *const names[] = {"GID_INDEX", "SL", "TRAFFIC_CLASS", "PATH_MTU"};
    static const char *const old[]   = {"-1", "0", "0", "0"};
    struct uct_ha_md_config  words, numbers;
    char                     name[64];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof(name), "UCX_HA_RC_%s", names[i]);
        setenv(name, "auto", 1);
        assert_int_equal(uct_ha_config_fill(&words, uct_ha_md_config_table, sizeof(words), UCT_HA_CONFIG_PREFIX),
                         UCS_OK);
        setenv(name, old[i], 1);
        assert_int_equal(uct_ha_config_fill(&numbers, uct_ha_md_config_table, sizeof(numbers), UCT_HA_CONFIG_PREFIX),
                         UCS_OK);
        assert_int_equal(words.gid_index, numbers.gid_index);
        assert_int_equal(words.gid_index, -1);
        assert_int_equal(words.sl, numbers.sl);
        assert_int_equal(words.traffic_class, numbers.traffic_class);
        assert_int_equal(words.path_mtu, numbers.path_mtu);
        ucs_config_parser_release_opts(&words, uct_ha_md_config_table);
        ucs_config_parser_release_opts(&numbers, uct_ha_md_config_table);
        setenv(name, "automatic", 1);
        assert_int_equal(uct_ha_config_fill(&words, uct_ha_md_config_table, sizeof(words), UCT_HA_CONFIG_PREFIX),
                         UCS_ERR_INVALID_PARAM);
        unsetenv(name);
    }
}

/* A file of its own for each process. */
static void test_statistics_file(void **state)
{
    (void)state;
    parse("UCX_HA_RC_STATS_FILE", "/run/ucx-ha/%h.%p.prom", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_STATS_FILE", "/run/ucx-ha/%h.prom", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_STATS_FILE", "/run/%p.%q", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_STATS_FILE", "/run/%p%", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_STATS_INTERVAL", "10ms", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_STANDBY_WARN", "0", UCS_OK, UCS_OK);
    parse("UCX_HA_RC_REQUIRE", "perhaps", UCS_ERR_INVALID_PARAM, UCS_OK);
}

static void test_out_of_range(void **state)
{
    (void)state;
    parse("UCX_HA_RC_MIN_RNR_TIMER", "0", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_TIMEOUT", "0", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_TIMEOUT", "32", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_RETRY_COUNT", "8", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_RTO", "0", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_RTO", "6s", UCS_OK, UCS_ERR_INVALID_PARAM); /* above RTO_MAX */
    parse("UCX_HA_RC_HEARTBEAT", "1us", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_SEG_SIZE", "12", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_SEG_SIZE", "inf", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_TX_QUEUE_LEN", "1000000", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_MAX_SGE", "0", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_ZONES", "mlx5_0", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_ZONES", "10.1.0.0/99:a", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_FAILBACK", "1us", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_FAILBACK", "inf", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_SLOW_RAIL", "1.5", UCS_OK, UCS_ERR_INVALID_PARAM);
    parse("UCX_HA_RC_SLOW_RAIL", "nan", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_COOLDOWN", "11s", UCS_OK, UCS_ERR_INVALID_PARAM); /* above COOLDOWN_MAX */
    parse("UCX_HA_RC_DEAD_PEER", "inf", UCS_OK, UCS_ERR_INVALID_PARAM);
}

static void test_not_a_value(void **state)
{
    (void)state;
    parse("UCX_HA_RC_FAILBACK", "sometimes", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_FAILBACK", "-1", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_SLOW_RAIL", "very", UCS_ERR_INVALID_PARAM, UCS_OK);
    parse("UCX_HA_RC_RTO", "soon", UCS_ERR_INVALID_PARAM, UCS_OK);
}

/* What is printed can be read again. */
static void test_words_are_written(void **state)
{
    static const char *const words[][2] = {
        {"FAILBACK", "never"}, {"FAILBACK", "auto"}, {"FAILBACK", "30s"}, {"SLOW_RAIL", "off"}, {"SLOW_RAIL", "20"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const ucs_config_field_t *field = uct_ha_iface_config_table;
        double                    value;
        char                      text[32];

        while (strcmp(field->name, words[i][0]) != 0) {
            field++;
        }
        assert_int_equal(field->parser.read(words[i][1], &value, field->parser.arg), 1);
        assert_int_equal(field->parser.write(text, sizeof(text), &value, field->parser.arg), 1);
        assert_string_equal(text, words[i][1]);
    }
}

/* `ucx_info -cf` prints it: name, default and help for every knob. */
static void table_is_documented(const ucs_config_field_t *field)
{
    for (; field->name != NULL; ++field) {
        if (field->name[0] == '\0') {
            continue; /* a table of UCX's own */
        }
        assert_non_null(field->dfl_value);
        assert_non_null(field->doc);
        assert_true(strlen(field->doc) > 10);
        assert_int_equal(field->doc[strlen(field->doc) - 1], '.');
    }
}

static void test_every_knob_has_help(void **state)
{
    (void)state;
    table_is_documented(uct_ha_md_config_table);
    table_is_documented(uct_ha_iface_config_table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),           cmocka_unit_test(test_values),
        cmocka_unit_test(test_timeout_as_time),    cmocka_unit_test(test_auto),
        cmocka_unit_test(test_statistics_file),    cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_not_a_value),        cmocka_unit_test(test_words_are_written),
        cmocka_unit_test(test_every_knob_has_help)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
