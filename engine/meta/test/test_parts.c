/* SPDX-License-Identifier: BSD-3-Clause */
/* The pure parts: base64, addresses, frames, sessions, seals, descriptors. */
#include "meta_test.h"

#include "hte_base64.h"
#include "hte_frame.h"
#include "hte_hmac.h"
#include "hte_net.h"
#include "hte_seal.h"
#include "hte_session.h"

/* ---- base64 ------------------------------------------------------------------------ */

static void test_base64(void **state)
{
    static const char *const pairs[][2] = {/* RFC 4648, section 10 */
                                           {"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    char                     text[16], bytes[16];
    size_t                   i, length;

    (void)state;
    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        hte_base64_encode(pairs[i][0], strlen(pairs[i][0]), text);
        assert_string_equal(text, pairs[i][1]);
        assert_true(hte_base64_decode(text, strlen(text), bytes, &length));
        assert_int_equal(length, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], length);
    }
    assert_false(hte_base64_decode("Zg=", 3, bytes, &length));
    assert_false(hte_base64_decode("Zh==", 4, bytes, &length)); /* bits left over */
    assert_false(hte_base64_decode("=Zg=", 4, bytes, &length));
    assert_false(hte_base64_decode("Zg==Zg==", 8, bytes, &length));
    assert_false(hte_base64_decode("Zm9\n", 4, bytes, &length));
}

/* ---- addresses --------------------------------------------------------------------------- */

static void expect_split(const char *text, const char *host, uint16_t port)
{
    char           found[HTE_HOST_MAX + 1], again[HTE_ADDRESS_TEXT_MAX];
    uint16_t       found_port = 1;
    struct hte_why why        = {.text = ""};

    OK(hte_net_split(text, found, &found_port, &why));
    assert_string_equal(found, host);
    assert_int_equal(found_port, port);
    if (port != 0) {
        hte_net_join(found, found_port, again);
        assert_string_equal(again, text);
    }
}

static void test_addresses(void **state)
{
    static const char *const bad[] = {"", ":1", "a:", "a:0", "a:65536", "a:1x", "a:-1", "[::1", "[::1]x", "[]:1"};
    char                     host[HTE_HOST_MAX + 1], long_name[400];
    uint16_t                 port;
    size_t                   i;

    (void)state;
    expect_split("node-1:15000", "node-1", 15000);
    expect_split("node-1", "node-1", 0);
    expect_split("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535);
    expect_split("[::1]", "::1", 0);
    expect_split("::1", "::1", 0);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(hte_net_split(bad[i], host, &port, NULL), HTE_ERR_INVALID_ARGUMENT);
    }
    memset(long_name, 'a', sizeof(long_name));
    long_name[399] = '\0';
    assert_int_equal(hte_net_split(long_name, host, &port, NULL), HTE_ERR_INVALID_ARGUMENT);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void test_frames(void **state)
{
    static const char       body[] = "{\"type\":\"probe\"}";
    uint8_t                 bytes[2 * (HTE_FRAME_HEADER_LEN + sizeof(body))];
    const size_t            length = HTE_FRAME_HEADER_LEN + sizeof(body) - 1;
    struct hte_frame_reader reader;
    size_t                  piece, at, used;
    int                     ret;

    (void)state;
    hte_frame_header(bytes, sizeof(body) - 1);
    memcpy(bytes + HTE_FRAME_HEADER_LEN, body, sizeof(body) - 1);
    for (piece = 1; piece <= length + 3; piece++) {
        hte_frame_init(&reader, 100);
        for (at = 0, ret = 0; ret == 0; at += used) {
            assert_true(at < length);
            ret = hte_frame_feed(&reader, bytes + at, piece, &used, NULL);
        }
        assert_int_equal(ret, 1);
        assert_int_equal(at, length);
        assert_string_equal((char *)reader.body, body);
        hte_frame_next(&reader);
        hte_frame_cleanup(&reader);
    }
}

static void test_frame_bounds(void **state)
{
    struct hte_frame_reader reader;
    struct hte_why          why = {.text = ""};
    uint8_t                 header[HTE_FRAME_HEADER_LEN];
    size_t                  used;

    (void)state;
    hte_frame_init(&reader, 100);
    hte_frame_header(header, 101);
    FAILS(HTE_ERR_LIMIT, "101 bytes", hte_frame_feed(&reader, header, sizeof(header), &used, &why));
    hte_frame_next(&reader);
    hte_frame_header(header, 100);
    OK(hte_frame_feed(&reader, header, sizeof(header), &used, &why));
    assert_in_range(reader.room, 0, 100); /* what is claimed costs nothing */
    hte_frame_next(&reader);
    FAILS(HTE_ERR_MALFORMED_JSON, "byte 1", hte_frame_feed(&reader, "HX", 2, &used, &why));
    hte_frame_next(&reader);
    hte_frame_header(header, 0);
    assert_int_equal(hte_frame_feed(&reader, header, sizeof(header), &used, &why), 1);
    assert_string_equal((char *)reader.body, "");
    hte_frame_cleanup(&reader);
}

/* ---- sessions ------------------------------------------------------------------------------------ */

struct pair {
    struct hte_session client, server;
    char               hello[HTE_SESSION_FRAME_MAX], challenge[HTE_SESSION_FRAME_MAX];
    char               proof[HTE_SESSION_FRAME_MAX], welcome[HTE_SESSION_FRAME_MAX];
};

static void start_pair(struct pair *pair, const char *client_secret, const char *server_secret)
{
    uint8_t nonce[HTE_SESSION_NONCE_LEN] = {'c'};

    hte_session_init(&pair->client, false, client_secret, nonce);
    nonce[0] = 's';
    hte_session_init(&pair->server, true, server_secret, nonce);
    assert_int_equal(hte_session_step(&pair->client, "", 0, pair->hello, NULL), 0);
}

static int step(struct hte_session *session, const char *in, char *out, struct hte_why *why)
{
    return hte_session_step(session, in, strlen(in), out, why);
}

/* Up to the proof that the client has written. */
static void run_to_proof(struct pair *pair)
{
    struct hte_why why = {.text = ""};

    start_pair(pair, TEST_SECRET, TEST_SECRET);
    OK(step(&pair->server, pair->hello, pair->challenge, &why));
    OK(step(&pair->client, pair->challenge, pair->proof, &why));
}

static void test_session_without_secret(void **state)
{
    struct hte_why why = {.text = ""};
    struct pair    pair;

    (void)state;
    start_pair(&pair, NULL, NULL);
    OK(step(&pair.server, pair.hello, pair.challenge, &why));
    assert_int_equal(pair.server.state, HTE_SESSION_OPEN);
    OK(step(&pair.client, pair.challenge, pair.proof, &why));
    assert_string_equal(pair.proof, "");
    assert_int_equal(pair.client.state, HTE_SESSION_OPEN);
    assert_int_equal(hte_session_seal_length(&pair.client), 0);
    FAILS(HTE_ERR_INVALID_ARGUMENT, "over", step(&pair.server, pair.hello, pair.challenge, &why));
}

static void test_session_with_secret(void **state)
{
    struct hte_why why = {.text = ""};
    uint8_t        seal[HTE_HMAC_LEN];
    struct pair    pair;

    (void)state;
    run_to_proof(&pair);
    assert_int_equal(pair.server.state, HTE_SESSION_WAIT_PROOF);
    OK(step(&pair.server, pair.proof, pair.welcome, &why));
    OK(step(&pair.client, pair.welcome, pair.hello, &why));
    assert_true(pair.server.state == HTE_SESSION_OPEN && pair.client.state == HTE_SESSION_OPEN);

    assert_true(hte_session_seal(&pair.client, "abc", 3, seal));
    assert_true(hte_session_check(&pair.server, "abc", 3, seal));
    assert_false(hte_session_check(&pair.server, "abc", 3, seal)); /* the same again is a replay */
    assert_true(hte_session_seal(&pair.server, "abc", 3, seal));
    assert_true(hte_session_check(&pair.client, "abc", 3, seal));
    assert_true(hte_session_seal(&pair.client, "abc", 3, seal));
    assert_false(hte_session_check(&pair.client, "abc", 3, seal)); /* our own frame thrown back */
    assert_true(hte_session_seal(&pair.server, "abc", 3, seal));
    assert_false(hte_session_check(&pair.client, "abd", 3, seal));
}

static void test_session_refusals(void **state)
{
    struct hte_why why = {.text = ""};
    char           answer[HTE_SESSION_FRAME_MAX];
    struct pair    pair;

    (void)state;
    start_pair(&pair, NULL, TEST_SECRET);
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "a secret is required", step(&pair.server, pair.hello, answer, &why));
    assert_string_equal(answer, "{\"type\":\"refused\",\"why\":\"a secret is required\"}");
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "a secret is required", step(&pair.client, answer, pair.proof, &why));

    start_pair(&pair, TEST_SECRET, "other secret of 20 c");
    pair.server.secret = "other secret of 20 c";
    OK(step(&pair.server, pair.hello, pair.challenge, &why));
    OK(step(&pair.client, pair.challenge, pair.proof, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "the secrets differ", step(&pair.server, pair.proof, answer, &why));
    assert_int_equal(pair.server.state, HTE_SESSION_CLOSED);
}

/* A server that says it needs no secret does not get to talk to a client that wants one. */
static void test_session_downgrade(void **state)
{
    struct hte_why why = {.text = ""};
    struct pair    pair;
    char          *flag;

    (void)state;
    start_pair(&pair, TEST_SECRET, TEST_SECRET);
    OK(step(&pair.server, pair.hello, pair.challenge, &why));
    flag = strstr(pair.challenge, "\"secret\":1");
    assert_non_null(flag);
    flag[9] = '0';
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "no secret", step(&pair.client, pair.challenge, pair.proof, &why));
}

/* Who changes anything on the way gets no proof accepted; nor one who answers with what he was told. */
static void test_session_tampered(void **state)
{
    struct hte_why why = {.text = ""};
    char           answer[HTE_SESSION_FRAME_MAX];
    struct pair    pair;

    (void)state;
    start_pair(&pair, TEST_SECRET, TEST_SECRET);
    strcat(pair.hello, " "); /* still the same JSON */
    OK(step(&pair.server, pair.hello, pair.challenge, &why));
    OK(step(&pair.client, pair.challenge, pair.proof, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "differ", step(&pair.server, pair.proof, answer, &why));

    run_to_proof(&pair);
    snprintf(answer, sizeof(answer), "{\"type\":\"welcome\",%s", strstr(pair.proof, "\"mac\""));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "differ", step(&pair.client, answer, pair.welcome, &why));

    start_pair(&pair, TEST_SECRET, TEST_SECRET);
    snprintf(answer, sizeof(answer), "{\"type\":\"challenge\",%s", strstr(pair.hello, "\"version\""));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "own nonce", step(&pair.client, answer, pair.proof, &why));
}

static void test_secret_bounds(void **state)
{
    struct hte_why why = {.text = ""};

    (void)state;
    OK(hte_session_check_secret(NULL, &why));
    OK(hte_session_check_secret(TEST_SECRET, &why));
    FAILS(HTE_ERR_INVALID_ARGUMENT, "15 characters", hte_session_check_secret("123456789012345", &why));
}

/* ---- seals ---------------------------------------------------------------------------------------- */

static void test_seals(void **state)
{
    struct hte_why why = {.text = ""};
    char          *sealed, *text = NULL;

    (void)state;
    OK(hte_seal_close(TEST_SECRET, "key", "{\"a\":1}", &sealed, &why));
    OK(hte_seal_open(TEST_SECRET, "key", sealed, &text, &why));
    assert_string_equal(text, "{\"a\":1}");
    free(text);
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "wrong seal", hte_seal_open(TEST_SECRET, "other", sealed, &text, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "wrong seal", hte_seal_open("1234567890123456", "key", sealed, &text, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "this side has none", hte_seal_open(NULL, "key", sealed, &text, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "not sealed", hte_seal_open(TEST_SECRET, "key", "{\"a\":1}", &text, &why));
    OK(hte_seal_open(NULL, "key", "{\"a\":1}", &text, &why));
    assert_string_equal(text, "{\"a\":1}");
    free(text);
    free(sealed);
}

/* ---- descriptors ------------------------------------------------------------------------------------- */

static void test_descriptor_round_trip(void **state)
{
    struct hte_descriptor *sample = sample_descriptor("node a", 100, 3), *found = NULL;
    struct hte_why         why = {.text = ""};
    char                  *text;

    (void)state;
    OK(hte_descriptor_to_json(sample, &text, &why));
    OK(hte_descriptor_from_json(text, strlen(text), &found, &why));
    assert_same_descriptor(sample, found);
    free(text);
    hte_descriptor_destroy(sample);
    hte_descriptor_destroy(found);
}

/* The sample with one piece of its JSON replaced is refused, and the sentence names the field. */
static void expect_refused(const char *piece, const char *replacement, const char *complaint)
{
    struct hte_descriptor *sample = sample_descriptor("node a", 2, 3), *found = NULL;
    struct hte_why         why = {.text = ""};
    char                  *text, *at, *changed;

    OK(hte_descriptor_to_json(sample, &text, &why));
    at = strstr(text, piece);
    if (at == NULL) {
        fail_msg("'%s' is not in %s", piece, text);
    }
    changed = malloc(strlen(text) + strlen(replacement) + 1);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, replacement, at + strlen(piece));
    FAILS(HTE_ERR_MALFORMED_JSON, complaint, hte_descriptor_from_json(changed, strlen(changed), &found, &why));
    assert_null(found);
    free(changed);
    free(text);
    hte_descriptor_destroy(sample);
}

static void test_descriptor_refusals(void **state)
{
    (void)state;
    expect_refused("{", "", "malformed JSON at byte");
    expect_refused("\"format\":1", "\"format\":2", "format: 2 is not understood");
    expect_refused("\"format\":1,", "", "format: missing");
    expect_refused("\"node a\"", "7", "name: not a string");
    expect_refused("\"node a\"", "\"\"", "name: missing or empty");
    expect_refused("\"node a\"", "\"a\\u001b[2J\"", "name: control characters");
    expect_refused("\"version\":3", "\"version\":-3", "version: -3 is not in");
    expect_refused("\"version\":3", "\"version\":1e3", "version: not an integer");
    expect_refused("\"version\":3", "\"version\":3,\"version\":4", "duplicate");
    expect_refused("\"context\":1", "\"context\":16", "workers[1].context: 16 is not in 0..15");
    expect_refused("\"address\":\"", "\"address\":\"*", "workers[0].address: not base64");
    expect_refused("\"name\":\"mlx5_0:1\"", "\"title\":\"mlx5_0:1\"", "devices[0].name: missing");
    expect_refused("\"lid\":1", "\"lid\":65536", "devices[1].lid: 65536");
    expect_refused("[[\"mlx5_1:1\"]", "[[\"mlx5_9:1\"]", "priority_matrix.cpu:0: 'mlx5_9:1' is no name in devices");
    expect_refused("[[\"mlx5_1:1\"],", "[", "priority_matrix.cpu:0: [[preferred], [available]]");
    expect_refused("\"0xfff0000000000000\"", "\"7f00\"", "buffers[0].addr: '7f00'");
    expect_refused("\"0xfff0000000000000\"", "\"0xfffffffffffffff0\"", "buffers[0].length: 1048576 bytes at");
    expect_refused("\"length\":1048576", "\"length\":0", "buffers[0].length");
    expect_refused("\"ro\"", "\"rx\"", "buffers[1].permission: 'rx'");
    expect_refused("\"keys\":[\"", "\"keys\":[7,\"", "buffers[0].keys: base64 text");
    expect_refused("\"buffers\":[", "\"buffers\":[[],", "buffers[0]: not an object");
    expect_refused("\"buffers\":[", "\"buffers\":{\"a\":[", "malformed JSON");
}

static void test_descriptor_not_writable(void **state)
{
    struct hte_descriptor *sample = sample_descriptor("node a", 1, 3);
    struct hte_why         why    = {.text = ""};
    char                  *text   = NULL;

    (void)state;
    sample->buffers[0].length = 0;
    FAILS(HTE_ERR_INVALID_ARGUMENT, "buffers[0].length", hte_descriptor_to_json(sample, &text, &why));
    sample->buffers[0].length      = 1;
    sample->buffers[0].location[0] = (char)0xff;
    FAILS(HTE_ERR_INVALID_ARGUMENT, "UTF-8", hte_descriptor_to_json(sample, &text, &why));
    sample->buffers[0].location[0]     = 'c';
    sample->priorities[0].preferred[0] = 2;
    FAILS(HTE_ERR_INVALID_ARGUMENT, "priority_matrix", hte_descriptor_to_json(sample, &text, &why));
    assert_null(text);
    hte_descriptor_destroy(sample);
}

int main(void)
{
    const struct CMUnitTest always[]      = {cmocka_unit_test(test_base64),
                                             cmocka_unit_test(test_addresses),
                                             cmocka_unit_test(test_frames),
                                             cmocka_unit_test(test_frame_bounds),
                                             cmocka_unit_test(test_session_without_secret),
                                             cmocka_unit_test(test_descriptor_round_trip),
                                             cmocka_unit_test(test_descriptor_refusals),
                                             cmocka_unit_test(test_descriptor_not_writable)};
    const struct CMUnitTest with_secret[] = {
        cmocka_unit_test(test_session_with_secret), cmocka_unit_test(test_session_refusals),
        cmocka_unit_test(test_session_downgrade),   cmocka_unit_test(test_session_tampered),
        cmocka_unit_test(test_secret_bounds),       cmocka_unit_test(test_seals)};
    int failed = cmocka_run_group_tests_name("parts", always, NULL, NULL);

    if (hte_hmac_is_built()) {
        failed += cmocka_run_group_tests_name("secrets", with_secret, NULL, NULL);
    }
    return failed;
}
