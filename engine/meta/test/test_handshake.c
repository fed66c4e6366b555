/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer to peer: descriptors and calls between two ends of one process, and what strangers do to the server. */
#include "meta_test.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hte_frame.h"
#include "hte_hmac.h"
#include "hte_meta_state.h"

#define READ_MS 3000 /* long enough for a machine that is busy with other things */

/* ---- ends --------------------------------------------------------------------------- */

static int handle(void *arg, enum hte_call call, const char *from, const char *payload, char *reply, size_t reply_size,
                  struct hte_why *why)
{
    int *calls = arg;

    (*calls)++;
    if (strcmp(payload, "full") == 0) {
        return hte_why_set(why, HTE_ERR_LIMIT, "the list is full");
    }
    snprintf(reply, reply_size, "%d|%s|%s", (int)call, from[0] != '\0' ? "named" : "", payload);
    return 0;
}

static struct hte_meta *open_end(const char *secret, int *calls)
{
    struct hte_meta_options options = {.name      = "127.0.0.1",
                                       .secret    = secret,
                                       .read_ms   = READ_MS,
                                       .call_ms   = 10000,
                                       .max_peers = 8,
                                       .handler   = calls != NULL ? handle : NULL,
                                       .arg       = calls};
    struct hte_meta        *meta    = NULL;
    struct hte_why          why     = {.text = ""};

    OK(hte_meta_open(&options, &meta, &why));
    return meta;
}

static void publish(struct hte_meta *meta, uint32_t num_buffers, uint64_t version)
{
    struct hte_descriptor *sample = sample_descriptor("replaced", num_buffers, version);
    struct hte_why         why    = {.text = ""};

    OK(hte_meta_publish(meta, sample, &why));
    hte_descriptor_destroy(sample);
}

/* The end at `meta` still answers, and with what was published. */
static void assert_serves(struct hte_meta *meta, const char *secret, uint32_t num_buffers, uint64_t version)
{
    struct hte_descriptor *expected = sample_descriptor(hte_meta_name(meta), num_buffers, version), *found = NULL;
    struct hte_meta       *asker = open_end(secret, NULL);
    struct hte_why         why   = {.text = ""};

    OK(hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    assert_same_descriptor(expected, found);
    hte_descriptor_destroy(expected);
    hte_descriptor_destroy(found);
    hte_meta_close(asker);
}

/* Counted is what happened before the last exchange: the server hangs up first and publishes its counters then. */
static struct hte_server_stats stats_of(const struct hte_meta *meta)
{
    struct hte_server_stats stats;

    hte_server_get_stats(meta->server, &stats);
    return stats;
}

/* ---- good manners ---------------------------------------------------------------------- */

static void test_fetch(void **state)
{
    struct hte_meta       *meta = open_end(NULL, NULL), *asker = open_end(NULL, NULL);
    struct hte_descriptor *found;
    struct hte_why         why = {.text = ""};
    char                   expected[64];

    (void)state;
    snprintf(expected, sizeof(expected), "127.0.0.1:%u", hte_meta_port(meta));
    assert_string_equal(hte_meta_name(meta), expected);
    assert_in_range(hte_meta_port(meta), HTE_META_PORT_FIRST, HTE_META_PORT_LAST);

    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "publishes no segment", hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    publish(meta, 0, 1);
    assert_serves(meta, NULL, 0, 1);
    publish(meta, 1000, 2);
    assert_serves(meta, NULL, 1000, 2);
    OK(hte_meta_withdraw(meta, &why));
    FAILS(HTE_ERR_UNKNOWN_SEGMENT, "publishes no segment", hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));

    hte_meta_close(meta);
    FAILS(HTE_ERR_SOCKET, "refused", hte_meta_fetch(asker, expected, &found, &why));
    FAILS(HTE_ERR_INVALID_ARGUMENT, "host:port", hte_meta_fetch(asker, "somewhere", &found, &why));
    FAILS(HTE_ERR_DNS, "does not resolve", hte_meta_fetch(asker, "no.such.host.invalid:15000", &found, &why));
    hte_meta_close(asker);
}

static int publish_buffers(struct hte_meta *meta, unsigned count, struct hte_why *why)
{
    struct hte_descriptor *sample = sample_descriptor("x", count, 1);
    int                    ret    = hte_meta_publish(meta, sample, why);

    hte_descriptor_destroy(sample);
    return ret;
}

/* What the message compares does not fit: the first count of buffers that is refused has more bytes than allowed. */
static void test_just_too_large(void **state)
{
    struct hte_meta *meta = open_end(NULL, NULL);
    struct hte_why   why  = {.text = ""};
    unsigned         fits = 1, refused = 6000, middle;

    (void)state;
    while (refused - fits > 1) {
        middle = (fits + refused) / 2;
        if (publish_buffers(meta, middle, &why) == HTE_OK) {
            fits = middle;
        } else {
            refused = middle;
        }
    }
    FAILS(HTE_ERR_LIMIT, "needs a message of ", publish_buffers(meta, refused, &why));
    assert_true(strtoul(strstr(why.text, "message of ") + strlen("message of "), NULL, 10) > 1048576);
    assert_non_null(strstr(why.text, "(1048576)"));
    hte_meta_close(meta);
}

static void test_too_large(void **state)
{
    struct hte_meta       *meta   = open_end(NULL, NULL);
    struct hte_descriptor *sample = sample_descriptor("x", 6000, 1);
    struct hte_why         why    = {.text = ""};

    (void)state;
    FAILS(HTE_ERR_LIMIT, "6000 buffers", hte_meta_publish(meta, sample, &why));
    hte_descriptor_destroy(sample);
    hte_meta_close(meta);
}

static void test_calls(void **state)
{
    int              calls = 0;
    struct hte_meta *meta = open_end(NULL, &calls), *asker = open_end(NULL, NULL);
    struct hte_why   why   = {.text = ""};
    char            *reply = NULL;

    (void)state;
    OK(hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_NOTIFY, "block 7 \"done\"\n", &reply, &why));
    assert_string_equal(reply, "1|named|block 7 \"done\"\n");
    free(reply);
    OK(hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_CONNECTION, NULL, NULL, &why));
    FAILS(HTE_ERR_LIMIT, "the list is full",
          hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_NOTIFY, "full", &reply, &why));
    assert_int_equal(calls, 3);
    OK(hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_PROBE, NULL, &reply, &why));
    assert_string_equal(reply, hte_meta_name(meta));
    free(reply);
    assert_int_equal(calls, 3);
    OK(hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_METRICS, NULL, &reply, &why));
    assert_string_equal(reply, "3|named|");
    free(reply);
    FAILS(HTE_ERR_NOT_IMPLEMENTED, "not taken here",
          hte_meta_call(meta, hte_meta_name(asker), HTE_CALL_NOTIFY, "x", NULL, &why));
    hte_meta_close(meta);
    hte_meta_close(asker);
}

static void test_frame_bound(void **state)
{
    struct hte_meta *meta    = open_end(NULL, NULL);
    struct hte_why   why     = {.text = ""};
    char            *payload = malloc((1 << 20) + 1);

    (void)state;
    memset(payload, 'x', 1 << 20);
    payload[1 << 20] = '\0';
    FAILS(HTE_ERR_LIMIT, "does not fit",
          hte_meta_call(meta, hte_meta_name(meta), HTE_CALL_NOTIFY, payload, NULL, &why));
    payload[0] = (char)0xff; /* not UTF-8 */
    FAILS(HTE_ERR_INVALID_ARGUMENT, "UTF-8",
          hte_meta_call(meta, hte_meta_name(meta), HTE_CALL_NOTIFY, payload, NULL, &why));
    free(payload);
    hte_meta_close(meta);
}

/* ---- places ------------------------------------------------------------------------------ */

static void test_restart_on_same_port(void **state)
{
    struct hte_meta        *meta    = open_end(NULL, NULL);
    struct hte_meta_options options = {.name = "127.0.0.1", .port = hte_meta_port(meta)};
    struct hte_meta        *second  = NULL;
    struct hte_why          why     = {.text = ""};

    (void)state;
    FAILS(HTE_ERR_SOCKET, "in use", hte_meta_open(&options, &second, &why));
    publish(meta, 1, 1);
    assert_serves(meta, NULL, 1, 1);
    hte_meta_close(meta);
    OK(hte_meta_open(&options, &second, &why));
    publish(second, 2, 2);
    assert_serves(second, NULL, 2, 2);
    hte_meta_close(second);
}

static void expect_open_fails(const struct hte_meta_options *options, int code, const char *part)
{
    struct hte_meta *meta = NULL;
    struct hte_why   why  = {.text = ""};

    FAILS(code, part, hte_meta_open(options, &meta, &why));
    assert_null(meta);
}

static void test_bad_options(void **state)
{
    (void)state;
    expect_open_fails(&(struct hte_meta_options){.secret = "short"}, HTE_ERR_INVALID_ARGUMENT, "5 characters");
    expect_open_fails(&(struct hte_meta_options){.name = "a:b"}, HTE_ERR_INVALID_ARGUMENT, "no port");
    expect_open_fails(&(struct hte_meta_options){.name = ""}, HTE_ERR_INVALID_ARGUMENT, "segment name");
    expect_open_fails(&(struct hte_meta_options){.bind_address = "203.0.113.77"}, HTE_ERR_SOCKET,
                      "set the bind address");
    expect_open_fails(&(struct hte_meta_options){.bind_address = "no.such.host.invalid"}, HTE_ERR_DNS,
                      "does not resolve");
    expect_open_fails(&(struct hte_meta_options){.max_frame = 10}, HTE_ERR_INVALID_ARGUMENT, "largest frame");
    expect_open_fails(&(struct hte_meta_options){.url = "ftp://x"}, HTE_ERR_INVALID_ARGUMENT, "'ftp://'");
    expect_open_fails(&(struct hte_meta_options){.url = "p2p"}, HTE_ERR_INVALID_ARGUMENT, "P2PHANDSHAKE");
}

/* Where the kernel says that we listen. */
static void listening_address(const struct hte_meta_options *options, char *text)
{
    struct hte_meta *meta = NULL;
    struct hte_why   why  = {.text = ""};
    char             command[128];
    FILE            *ss;

    OK(hte_meta_open(options, &meta, &why));
    snprintf(command, sizeof(command), "ss -Hltn 'sport = :%u' 2>/dev/null | awk '{print $4}'", hte_meta_port(meta));
    ss = popen(command, "r");
    if (ss == NULL || fscanf(ss, "%63s", text) != 1) {
        text[0] = '\0';
    }
    pclose(ss);
    hte_meta_close(meta);
}

static void test_default_bind(void **state)
{
    char text[64];

    (void)state;
    listening_address(&(struct hte_meta_options){.name = NULL}, text);
    if (text[0] == '\0') {
        skip(); /* no ss(8) here */
    }
    assert_true(strncmp(text, "0.0.0.0:", 8) != 0 && text[0] != '*' && strncmp(text, "[::]", 4) != 0);
    listening_address(&(struct hte_meta_options){.name = "localhost"}, text);
    assert_true(strncmp(text, "127.0.0.1:", 10) == 0 || strncmp(text, "[::1]:", 6) == 0);
    listening_address(&(struct hte_meta_options){.bind_address = "0.0.0.0"}, text);
    assert_true(strncmp(text, "0.0.0.0:", 8) == 0);
}

/* ---- secrets -------------------------------------------------------------------------------- */

static void fetch_fails(const char *own, const char *theirs, const char *part)
{
    struct hte_meta       *meta = open_end(theirs, NULL), *asker = open_end(own, NULL);
    struct hte_descriptor *found = NULL;
    struct hte_why         why   = {.text = ""};

    publish(meta, 1, 1);
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, part, hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    FAILS(HTE_ERR_HANDSHAKE_REJECTED, part, hte_meta_fetch(asker, hte_meta_name(meta), &found, &why));
    assert_null(found);
    assert_int_equal(stats_of(meta).answered, 0);
    hte_meta_close(meta);
    hte_meta_close(asker);
}

/* Who does not know the secret is told nothing. */
static void call_fails(const char *mine)
{
    int              calls = 0;
    struct hte_meta *meta = open_end(TEST_SECRET, &calls), *asker = open_end(mine, NULL);
    struct hte_why   why   = {.text = ""};
    char            *reply = NULL;

    FAILS(HTE_ERR_HANDSHAKE_REJECTED, "secret",
          hte_meta_call(asker, hte_meta_name(meta), HTE_CALL_METRICS, NULL, &reply, &why));
    assert_null(reply);
    hte_meta_close(meta);
    hte_meta_close(asker);
    assert_int_equal(calls, 0);
}

static void test_secrets(void **state)
{
    struct hte_meta *meta;

    (void)state;
    if (!hte_hmac_is_built()) {
        expect_open_fails(&(struct hte_meta_options){.secret = TEST_SECRET}, HTE_ERR_NOT_IMPLEMENTED, "libcrypto");
        return;
    }
    meta = open_end(TEST_SECRET, NULL);
    publish(meta, 100, 1);
    assert_serves(meta, TEST_SECRET, 100, 1);
    hte_meta_close(meta);
    fetch_fails(NULL, TEST_SECRET, "a secret is required");
    fetch_fails(TEST_SECRET, NULL, "this side has none");
    fetch_fails("another secret of 16 characters", TEST_SECRET, "the secrets differ");
    call_fails(NULL);
    call_fails("another secret of 16 characters");
}

/* ---- strangers -------------------------------------------------------------------------------- */

static int connect_raw(const struct hte_meta *meta)
{
    struct hte_why why = {.text = ""};
    int            fd  = -1;

    OK(hte_net_connect("127.0.0.1", hte_meta_port(meta), hte_net_now() + 2000, NULL, &fd, &why));
    return fd;
}

/* Until the server hangs up. What it says before is thrown away. */
static void wait_for_end(int fd)
{
    int64_t start = hte_net_now();
    char    bytes[4096];
    ssize_t got;

    do {
        assert_int_equal(hte_net_wait(fd, POLLIN, start + 5 * READ_MS, NULL, NULL), 0);
        got = recv(fd, bytes, sizeof(bytes), 0);
    } while (got > 0 || (got < 0 && errno == EAGAIN));
    close(fd);
}

static void send_raw(int fd, const void *bytes, size_t length)
{
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void send_frame(int fd, const char *body)
{
    uint8_t header[HTE_FRAME_HEADER_LEN];

    hte_frame_header(header, strlen(body));
    send_raw(fd, header, sizeof(header));
    send_raw(fd, body, strlen(body));
}

static void test_rubbish(void **state)
{
    struct hte_meta  *meta   = open_end(NULL, NULL);
    static const char huge[] = {'H', 'T', 'E', 1, 0x7f, 0, 0, 0};
    int               fd;

    (void)state;
    publish(meta, 3, 1);
    fd = connect_raw(meta);
    send_raw(fd, "GET / HTTP/1.0\r\n\r\n", 18);
    wait_for_end(fd);
    fd = connect_raw(meta);
    send_raw(fd, huge, sizeof(huge)); /* a frame of 2 GB: refused at its header */
    wait_for_end(fd);
    fd = connect_raw(meta);
    send_frame(fd, "{}");
    wait_for_end(fd);
    fd = connect_raw(meta);
    send_frame(fd, "[[[[[[[");
    wait_for_end(fd);
    assert_serves(meta, NULL, 3, 1);
    assert_int_equal(stats_of(meta).rejected, 4);
    assert_int_equal(stats_of(meta).timeouts, 0);
    hte_meta_close(meta);
}

/* Half a frame, one byte now and then, nothing at all: gone after read_ms, and nobody waited for them. */
static void test_slow(void **state)
{
    struct hte_meta *meta = open_end(NULL, NULL);
    int              silent, half, trickle, i;
    int64_t          start;

    (void)state;
    publish(meta, 3, 1);
    silent  = connect_raw(meta);
    half    = connect_raw(meta);
    trickle = connect_raw(meta);
    send_raw(half, "HTE\1\0\0\1\0{\"type\"", 15);
    start = hte_net_now();
    assert_serves(meta, NULL, 3, 1);
    assert_int_equal(stats_of(meta).timeouts, 0);
    for (i = 0; i < 4; i++) {
        send_raw(trickle, &"HTE\1"[i], 1);
        usleep(100000);
    }
    wait_for_end(trickle);
    wait_for_end(half);
    wait_for_end(silent);
    assert_in_range(hte_net_now() - start, READ_MS - 50, 20000);
    assert_serves(meta, NULL, 3, 1);
    assert_int_equal(stats_of(meta).timeouts, 3);
    hte_meta_close(meta);
}

/* More connections than the server has room for: the oldest ones give way, callers get through. */
static void test_crowd(void **state)
{
    struct hte_meta *meta = open_end(NULL, NULL);
    int              fds[64], i;

    (void)state;
    publish(meta, 3, 1);
    for (i = 0; i < 64; i++) {
        fds[i] = connect_raw(meta);
    }
    assert_serves(meta, NULL, 3, 1);
    assert_true(stats_of(meta).evicted >= 56);
    for (i = 0; i < 64; i++) {
        close(fds[i]);
    }
    assert_serves(meta, NULL, 3, 1);
    hte_meta_close(meta);
}

/* Without file descriptors the server waits for better times, and does not spin. */
static void test_no_descriptors(void **state)
{
    struct hte_meta   *meta    = open_end(NULL, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct timespec    before, after;
    struct rlimit      limit, before_limit;
    int                fds[256], num_fds = 0, caller;

    (void)state;
    publish(meta, 3, 1);
    caller = socket(AF_INET, SOCK_STREAM, 0);
    getrlimit(RLIMIT_NOFILE, &before_limit);
    limit          = before_limit;
    limit.rlim_cur = 128;
    setrlimit(RLIMIT_NOFILE, &limit);
    while ((fds[num_fds] = dup(0)) >= 0) {
        num_fds++;
    }
    address.sin_port        = htons(hte_meta_port(meta));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(caller, (struct sockaddr *)(void *)&address, sizeof(address)), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(500000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 200);
    setrlimit(RLIMIT_NOFILE, &before_limit);
    while (num_fds > 0) {
        close(fds[--num_fds]);
    }
    usleep(300000);
    close(caller);
    assert_serves(meta, NULL, 3, 1);
    hte_meta_close(meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),          cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_just_too_large), cmocka_unit_test(test_calls),
        cmocka_unit_test(test_frame_bound),    cmocka_unit_test(test_restart_on_same_port),
        cmocka_unit_test(test_bad_options),    cmocka_unit_test(test_default_bind),
        cmocka_unit_test(test_secrets),        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_slow),           cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_no_descriptors)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
