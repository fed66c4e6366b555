/* SPDX-License-Identifier: BSD-3-Clause */
/* What hte_create() refuses: it names the value, and the way out. */
#include <string.h>

#include "fixture.h"

static void test_bad_config(void **state)
{
    static const struct hte_option bad[]  = {{"threads", "0"},
                                             {"threads", "x"},
                                             {"threads", "-1"},
                                             {"window", "1KK"},
                                             {"no_such", "1"},
                                             {"policy", "best"},
                                             {"slice_size", "99999999999999999999"},
                                             {"devices", "lo,,lo"},
                                             {NULL, "1"}};
    struct hte_config              config = {.size = sizeof(config), .name = "127.0.0.1", .n_options = 1};
    struct hte_engine             *engine;
    struct hte_option_help         help;
    unsigned                       i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        config.options = &bad[i];
        assert_int_equal(hte_create(&config, &engine), HTE_ERR_INVALID_ARGUMENT);
        assert_true(bad[i].key == NULL || strstr(hte_error_detail(), bad[i].key) != NULL);
    }
    config.options = &(const struct hte_option){"topology_file", "/nonexistent"};
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_MALFORMED_JSON);
    config.size = 8;
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_INVALID_ARGUMENT);
    for (i = 0; hte_option_help(i, &help) == HTE_OK; ++i) {
        assert_true(help.key[0] != '\0' && help.help[0] != '\0');
    }
    assert_true(i > 20);
}

/* The URL is wrong, whatever the name is; and nothing is opened for it. */
static void test_bad_metadata(void **state)
{
    static const struct {
        const char *url, *name, *words;
    } bad[]                   = {{"foo://x", NULL, "'foo://' is not known; http, https, redis and etcd are"},
                                 {"foo://x", "segment", "'foo://' is not known; http, https, redis and etcd are"},
                                 {"127.0.0.1:8080", NULL, "must be P2PHANDSHAKE or begin with http://"},
                                 {"http://", NULL, "names no host"},
                                 {"http://127.0.0.1/metadata", NULL, "needs a name"},
                                 {"http://127.0.0.1/metadata", "", "needs a name"}};
    struct hte_config  config = {.size = sizeof(config)};
    struct hte_engine *engine;
    unsigned           i;
    int                error;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        config.metadata = bad[i].url;
        config.name     = bad[i].name;
        error           = hte_create(&config, &engine);
        if (error == HTE_ERR_NOT_IMPLEMENTED) {
            skip(); /* built without libcurl */
        }
        assert_int_equal(error, HTE_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(hte_error_detail(), bad[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_config),
        cmocka_unit_test(test_bad_metadata),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
