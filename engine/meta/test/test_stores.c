/* SPDX-License-Identifier: BSD-3-Clause */
/* The same tests over every kind of metadata, with the real servers. */
#include "meta_test.h"

#include <signal.h>
#include <unistd.h>

#include "hte_hmac.h"
#include "hte_net.h"
#include "real_server.h"

/* What a group of tests runs against. */
struct place {
    const char        *kind; /* "p2p", or of a real_server */
    bool               keeps;
    bool               is_there;
    char               reason[128];
    struct real_server server;
};

static bool is_p2p(const struct place *place)
{
    return strcmp(place->kind, "p2p") == 0;
}

static struct place *there(void **state)
{
    struct place *place = *state;

    if (!place->is_there) {
        print_message("skipped: %s\n", place->reason);
        skip();
    }
    return place;
}

static struct hte_store *open_store(const struct place *place, size_t max_value)
{
    struct hte_store_options options = {.answer_ms = 10000, .max_value = max_value};
    struct hte_store        *store   = NULL;
    struct hte_why           why     = {.text = ""};

    OK(hte_store_open(place->server.url, &options, &store, &why));
    return store;
}

static void assert_value(struct hte_store *store, const char *key, const char *text)
{
    struct hte_why why   = {.text = ""};
    char          *found = NULL;

    OK(hte_store_get(store, key, &found, &why));
    assert_string_equal(found, text);
    free(found);
}

/* ---- keys and texts ------------------------------------------------------------------------ */

static void test_put_get_remove(void **state)
{
    struct hte_store *store = open_store(there(state), 0), *other = open_store(*state, 0);
    struct hte_why    why = {.text = ""};
    char             *found;

    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "", hte_store_get(store, "nobody", &found, &why));
    OK(hte_store_remove(store, "nobody", &why));
    OK(hte_store_put(store, "mooncake/ram/a", "{\"one\":1}", &why));
    assert_value(other, "mooncake/ram/a", "{\"one\":1}");
    OK(hte_store_put(other, "mooncake/ram/a", "two\nlines \"quoted\" \xc3\xbc", &why));
    assert_value(store, "mooncake/ram/a", "two\nlines \"quoted\" \xc3\xbc");
    OK(hte_store_put(store, "mooncake/ram/empty", "", &why));
    assert_value(other, "mooncake/ram/empty", "");
    OK(hte_store_remove(store, "mooncake/ram/a", &why));
    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "mooncake/ram/a", hte_store_get(other, "mooncake/ram/a", &found, &why));
    hte_store_close(store);
    hte_store_close(other);
}

static void test_odd_keys(void **state)
{
    static const char *const keys[] = {"a b", "a%20b", "a+b", "a&key=b", "a?b#c", "a/../b", "\xc3\xbc", "\"'\\"};
    struct hte_store        *store  = open_store(there(state), 0);
    struct hte_why           why    = {.text = ""};
    char                    *found;
    size_t                   i;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        OK(hte_store_put(store, keys[i], keys[i], &why));
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_value(store, keys[i], keys[i]);
        OK(hte_store_remove(store, keys[i], &why));
    }
    FAILS(HTE_ERR_INVALID_ARGUMENT, "control", hte_store_put(store, "a\r\nSET b c", "x", &why));
    FAILS(HTE_ERR_INVALID_ARGUMENT, "0 characters", hte_store_get(store, "", &found, &why));
    hte_store_close(store);
}

static void test_large(void **state)
{
    struct hte_store *store = open_store(there(state), 0), *small = open_store(*state, 1000);
    char             *text = malloc((1 << 20) + 2), *found;
    struct hte_why    why  = {.text = ""};

    memset(text, 'x', (1 << 20) + 1);
    text[(1 << 20) + 1] = '\0';
    FAILS(HTE_ERR_LIMIT, "1048577 bytes", hte_store_put(store, "large", text, &why));
    text[1000000] = '\0';
    OK(hte_store_put(store, "large", text, &why));
    assert_value(store, "large", text);
    FAILS(HTE_ERR_METADATA, "too long", hte_store_get(small, "large", &found, &why));
    OK(hte_store_remove(store, "large", &why));
    assert_true(hte_store_get(small, "large", &found, &why) == HTE_ERR_UNKNOWN_SEGMENT);
    free(text);
    hte_store_close(store);
    hte_store_close(small);
}

static void test_server_away(void **state)
{
    static char       large[900000];
    struct place     *place = there(state);
    struct hte_store *store = open_store(place, 0);
    struct hte_why    why   = {.text = ""};
    int64_t           start;
    char             *found;

    OK(hte_store_put(store, "kept", "yes", &why));
    real_server_stop(&place->server);
    start = hte_net_now();
    FAILS(HTE_ERR_METADATA, "127.0.0.1", hte_store_get(store, "kept", &found, &why));
    FAILS(HTE_ERR_METADATA, "127.0.0.1", hte_store_put(store, "kept", "no", &why));
    FAILS(HTE_ERR_METADATA, "127.0.0.1", hte_store_remove(store, "kept", &why));
    assert_true(hte_net_now() - start < 6000);
    real_server_start(&place->server);
    if (place->keeps) {
        assert_value(store, "kept", "yes");
    }
    OK(hte_store_put(store, "kept", "again", &why));
    assert_value(store, "kept", "again");

    /* and when it was away while nobody looked: the kept connection is dead */
    real_server_stop(&place->server);
    real_server_start(&place->server);
    OK(hte_store_put(store, "kept", "third", &why));
    assert_value(store, "kept", "third");

    /* a large text is written in pieces: the second one meets a reset, and raises SIGPIPE where that is not masked */
    real_server_stop(&place->server);
    real_server_start(&place->server);
    memset(large, 'x', sizeof(large) - 1);
    OK(hte_store_put(store, "kept", large, &why));
    assert_value(store, "kept", large);
    hte_store_close(store);
}

/* ---- segments -------------------------------------------------------------------------------- */

static int take(void *arg, enum hte_call call, const char *from, const char *payload, char *reply, size_t reply_size,
                struct hte_why *why)
{
    (void)arg;
    (void)why;
    snprintf(reply, reply_size, "%d %s %s", (int)call, from, payload);
    return 0;
}

static int try_end(const struct place *place, const char *name, const char *secret, struct hte_meta **meta,
                   struct hte_why *why)
{
    struct hte_meta_options options = {.url          = is_p2p(place) ? HTE_META_P2P : place->server.url,
                                       .cluster      = "test",
                                       .name         = is_p2p(place) ? "127.0.0.1" : name,
                                       .bind_address = "127.0.0.1",
                                       .secret       = secret,
                                       .connect_ms   = 10000,
                                       .call_ms      = 10000,
                                       .refresh_ms   = 200,
                                       .handler      = take};

    return hte_meta_open(&options, meta, why);
}

static struct hte_meta *open_end(const struct place *place, const char *name, const char *secret)
{
    struct hte_meta *meta = NULL;
    struct hte_why   why  = {.text = ""};

    OK(try_end(place, name, secret, &meta, &why));
    return meta;
}

static int publish(struct hte_meta *meta, uint64_t version, struct hte_why *why)
{
    struct hte_descriptor *sample = sample_descriptor("replaced", 50, version);
    int                    ret    = hte_meta_publish(meta, sample, why);

    hte_descriptor_destroy(sample);
    return ret;
}

static void assert_fetches(struct hte_meta *asker, const char *name, uint64_t version)
{
    struct hte_descriptor *expected = sample_descriptor(name, 50, version), *found = NULL;
    struct hte_why         why = {.text = ""};

    OK(hte_meta_fetch(asker, name, &found, &why));
    assert_same_descriptor(expected, found);
    hte_descriptor_destroy(expected);
    hte_descriptor_destroy(found);
}

static void test_publish_fetch(void **state)
{
    struct hte_meta       *meta = open_end(there(state), "node a", NULL), *asker = open_end(*state, "node b", NULL);
    struct hte_descriptor *found;
    struct hte_why         why = {.text = ""};

    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "no segment", hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    OK(publish(meta, 1, &why));
    assert_fetches(asker, hte_meta_name(meta), 1);
    assert_fetches(meta, hte_meta_name(meta), 1);
    OK(publish(meta, 2, &why));
    assert_fetches(asker, hte_meta_name(meta), 2);
    OK(hte_meta_withdraw(meta, &why));
    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "no segment", hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    hte_meta_close(meta);
    hte_meta_close(asker);
}

static void test_call(void **state)
{
    struct hte_meta *meta = open_end(there(state), "node a", NULL), *asker = open_end(*state, "node b", NULL);
    struct hte_why   why   = {.text = ""};
    char            *reply = NULL, expected[400];

    OK(publish(meta, 1, &why));
    OK(hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_NOTIFY, "ready", &reply, &why));
    snprintf(expected, sizeof(expected), "1 %s ready", hte_meta_name(asker));
    assert_string_equal(reply, expected);
    free(reply);
    OK(hte_meta_withdraw(meta, &why));
    hte_meta_close(meta);
    hte_meta_close(asker);
}

static void test_secret(void **state)
{
    struct hte_meta       *meta, *friend, *stranger, *open;
    struct hte_descriptor *found;
    struct hte_why         why = {.text = ""};

    there(state);
    if (!hte_hmac_is_built()) {
        skip();
    }
    meta     = open_end(*state, "node a", TEST_SECRET);
    friend   = open_end(*state, "node b", TEST_SECRET);
    stranger = open_end(*state, "node c", "not the secret of the others");
    open     = open_end(*state, "node d", NULL);
    OK(publish(meta, 1, &why));
    assert_fetches(friend, hte_meta_name(meta), 1);
    OK(hte_meta_call(friend, hte_meta_name(meta), HTE_CALL_PROBE, NULL, NULL, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "secret", hte_meta_fetch(stranger, hte_meta_name(meta), &found, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "secret", hte_meta_fetch(open, hte_meta_name(meta), &found, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "secret",
          hte_meta_call(stranger, hte_meta_name(meta), HTE_CALL_NOTIFY, "x", NULL, &why));
    OK(publish(open, 1, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "secret", hte_meta_fetch(friend, hte_meta_name(open), &found, &why));
    OK(hte_meta_withdraw(meta, &why));
    OK(hte_meta_withdraw(open, &why));
    hte_meta_close(meta);
    hte_meta_close(friend);
    hte_meta_close(stranger);
    hte_meta_close(open);
}

/* Who can write to the store, but has no secret, cannot pass one entry off as another. */
static void test_tampered(void **state)
{
    struct hte_store      *store = open_store(there(state), 0);
    struct hte_meta       *meta, *friend;
    struct hte_descriptor *found;
    struct hte_why         why = {.text = ""};
    char                  *sealed, *inside;

    if (!hte_hmac_is_built()) {
        skip();
    }
    meta   = open_end(*state, "node a", TEST_SECRET);
    friend = open_end(*state, "node b", TEST_SECRET);
    OK(publish(meta, 1, &why));
    OK(hte_store_get(store, "mooncake/test/ram/node a", &sealed, &why));
    OK(hte_store_put(store, "mooncake/test/ram/node x", sealed, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "wrong seal", hte_meta_fetch(friend, "node x", &found, &why));
    inside = strstr(sealed, "1700000000000000");
    assert_non_null(inside);
    inside[0] = '2';
    OK(hte_store_put(store, "mooncake/test/ram/node a", sealed, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "wrong seal", hte_meta_fetch(friend, "node a", &found, &why));
    OK(hte_store_put(store, "mooncake/test/ram/node a", "rubbish", &why));
    FAILS(HTE_ERR_MALFORMED_JSON, "malformed", hte_meta_fetch(friend, "node a", &found, &why));
    free(sealed);
    OK(hte_meta_withdraw(meta, &why));
    hte_meta_close(meta);
    hte_meta_close(friend);
    hte_store_close(store);
}

static void test_one_name_one_process(void **state)
{
    struct hte_meta *first = open_end(there(state), "node a", NULL), *second = open_end(*state, "node a", NULL);
    struct hte_why   why = {.text = ""};

    OK(publish(first, 1, &why));
    FAILS(HTE_ERR_EXISTS, "published by the process at 127.0.0.1", publish(second, 2, &why));
    assert_fetches(second, "node a", 1);
    hte_meta_close(first); /* as if killed: nothing is withdrawn */
    OK(publish(second, 3, &why));
    assert_fetches(second, "node a", 3);
    OK(hte_meta_withdraw(second, &why));
    hte_meta_close(second);
}

/* A store that comes back, with its data or without: the segment is found again. */
static void test_store_restarted(void **state)
{
    struct place          *place = there(state);
    struct hte_meta       *meta = open_end(place, "node a", NULL), *asker = open_end(place, "node b", NULL);
    struct hte_descriptor *found = NULL;
    struct hte_why         why   = {.text = ""};
    int64_t                deadline;
    int                    ret;

    OK(publish(meta, 1, &why));
    real_server_stop(&place->server);
    FAILS(HTE_ERR_METADATA, "127.0.0.1", hte_meta_fetch(asker, "node a", &found, &why));
    FAILS(HTE_ERR_METADATA, "127.0.0.1", publish(meta, 2, &why));
    real_server_start(&place->server);
    deadline = hte_net_now() + 5000;
    do {
        ret = hte_meta_fetch(asker, "node a", &found, &why);
        usleep(50000);
    } while (ret == HTE_ERR_UNKNOWN_SEGMENT && !place->keeps && hte_net_now() < deadline);
    OK(ret);
    hte_descriptor_destroy(found);
    assert_fetches(asker, "node a", 1);
    OK(publish(meta, 3, &why));
    assert_fetches(asker, "node a", 3);
    OK(hte_meta_withdraw(meta, &why));
    hte_meta_close(meta);
    hte_meta_close(asker);
}

/* ---- URLs ---------------------------------------------------------------------------------------- */

static void expect_bad_url(const char *url, const char *part)
{
    struct hte_store *store = NULL;
    struct hte_why    why   = {.text = ""};

    if (hte_store_open(url, NULL, &store, &why) == HTE_ERR_NOT_IMPLEMENTED) {
        return; /* built without what would look at the rest of it */
    }
    FAILS(HTE_ERR_INVALID_ARGUMENT, part, hte_store_open(url, NULL, &store, &why));
    assert_null(store);
    assert_null(strstr(why.text, "s3cret"));
}

static void test_urls(void **state)
{
    (void)state;
    expect_bad_url("", "must be P2PHANDSHAKE");
    expect_bad_url("host:80", "must be P2PHANDSHAKE");
    expect_bad_url("http://", "names no host");
    expect_bad_url("gopher://x", "'gopher://'");
    expect_bad_url("http://me:s3cret@x/", "without user");
    expect_bad_url("http://x/path?key=1", "query");
    expect_bad_url("redis://:s3cret%zz@x", "malformed");
    expect_bad_url("redis://:s3cret@x:99999", "no port");
    expect_bad_url("redis://:s3cret@x/three", "'three'");
    expect_bad_url("etcd://a:b", "no port");
    expect_bad_url("etcd://a/b", "without user and path");
    expect_bad_url("http://x y", "blanks");
}

static void test_wrong_path(void **state)
{
    struct place     *place = there(state);
    struct hte_store *store = NULL;
    struct hte_why    why   = {.text = ""};
    char              url[256];

    snprintf(url, sizeof(url), "%s/elsewhere", place->server.url);
    OK(hte_store_open(url, NULL, &store, &why));
    FAILS(HTE_ERR_METADATA, "/elsewhere: status 404", hte_store_put(store, "x", "y", &why));
    hte_store_close(store);
}

static void test_wrong_password(void **state)
{
    struct place     *place = there(state);
    struct hte_store *store = NULL;
    struct hte_why    why   = {.text = ""};
    char              url[128], *found;

    snprintf(url, sizeof(url), "redis://:s3cret@127.0.0.1:%u", place->server.port);
    OK(hte_store_open(url, NULL, &store, &why));
    FAILS(HTE_ERR_METADATA, "password", hte_store_get(store, "x", &found, &why));
    assert_null(strstr(hte_store_url(store), "s3cret"));
    hte_store_close(store);
}

static void test_several_endpoints(void **state)
{
    struct place     *place = there(state);
    struct hte_store *store = NULL;
    struct hte_why    why   = {.text = ""};
    char              url[128];

    snprintf(url, sizeof(url), "etcd://127.0.0.1:1,127.0.0.1:%u", place->server.port);
    OK(hte_store_open(url, NULL, &store, &why));
    OK(hte_store_put(store, "x", "y", &why));
    assert_value(store, "x", "y");
    hte_store_close(store);
}

/* ---- groups ------------------------------------------------------------------------------------- */

static struct place place;

static int set_up(void **state)
{
    (void)state;
    place.is_there = is_p2p(&place) ||
                     real_server_create(&place.server, place.kind, place.keeps, place.reason, sizeof(place.reason));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!is_p2p(&place)) {
        real_server_destroy(&place.server);
    }
    return 0;
}

#define HERE(test) cmocka_unit_test_prestate(test, &place)

static int run_p2p(void)
{
    const struct CMUnitTest tests[] = {HERE(test_urls), HERE(test_publish_fetch), HERE(test_call), HERE(test_secret)};

    place.kind = "p2p";
    return cmocka_run_group_tests_name("p2p", tests, set_up, tear_down);
}

static int run_store(const char *kind, bool keeps, CMUnitTestFunction special)
{
    const struct CMUnitTest tests[] = {HERE(test_put_get_remove),
                                       HERE(test_odd_keys),
                                       HERE(test_large),
                                       HERE(test_publish_fetch),
                                       HERE(test_call),
                                       HERE(test_secret),
                                       HERE(test_tampered),
                                       HERE(test_one_name_one_process),
                                       HERE(test_server_away),
                                       HERE(test_store_restarted),
                                       {"special", special, NULL, NULL, &place}};

    place.kind  = kind;
    place.keeps = keeps;
    print_message("%s, %s\n", kind, keeps ? "with its data on disk" : "in memory");
    return cmocka_run_group_tests_name(kind, tests, set_up, tear_down);
}

int main(void)
{
    int failed;

    signal(SIGPIPE, SIG_DFL); /* the library has to get along with that */
    failed = run_p2p();
    failed += run_store("http", false, test_wrong_path);
    failed += run_store("http", true, test_wrong_path);
    failed += run_store("redis", false, test_wrong_password);
    failed += run_store("redis", true, test_wrong_password);
    failed += run_store("etcd", true, test_several_endpoints);
    return failed;
}
