/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers and peers that do not answer: a call ends when its time is over, however far it came. */
#include "meta_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hte_net.h"
#include "hte_store.h"

#define ANSWER_MS 400
#define SLACK_MS  2000 /* a busy machine */

enum manner {
    SILENT, /* the system takes the connection, and nobody the request */
    FULL    /* not even that */
};

struct nobody {
    int  listener, waiting[4];
    char address[HTE_ADDRESS_TEXT_MAX];
};

static void nobody_open(struct nobody *nobody, enum manner manner)
{
    struct sockaddr_in place  = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          length = sizeof(place);
    int                i;

    nobody->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(nobody->listener, (struct sockaddr *)&place, length), 0);
    assert_int_equal(listen(nobody->listener, manner == FULL ? 0 : 16), 0);
    assert_int_equal(getsockname(nobody->listener, (struct sockaddr *)&place, &length), 0);
    for (i = 0; i < 4; ++i) { /* one fills the queue; the others try for long */
        nobody->waiting[i] = manner == FULL ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
        if (manner == FULL) {
            (void)connect(nobody->waiting[i], (struct sockaddr *)&place, length);
        }
    }
    snprintf(nobody->address, sizeof(nobody->address), "127.0.0.1:%u", ntohs(place.sin_port));
}

static void nobody_close(const struct nobody *nobody)
{
    int i;

    for (i = 0; i < 4; ++i) {
        if (nobody->waiting[i] >= 0) {
            close(nobody->waiting[i]);
        }
    }
    close(nobody->listener);
}

static void assert_took(int64_t begin, int64_t least, int64_t most)
{
    int64_t took = hte_net_now() - begin;

    if (took < least || took > most + SLACK_MS) {
        fail_msg("took %lld ms instead of %lld to %lld", (long long)took, (long long)least, (long long)most);
    }
}

static void ask_store(const char *format, enum manner manner, int endpoints)
{
    struct hte_store_options options = {.answer_ms = ANSWER_MS}; /* less than there is to connect */
    struct hte_store        *store;
    struct hte_why           why = {.text = ""};
    struct nobody            nobody;
    char                     url[512], *text;
    int64_t                  begin;
    int                      ret;

    nobody_open(&nobody, manner);
    snprintf(url, sizeof(url), format, nobody.address, nobody.address, nobody.address);
    ret = hte_store_open(url, &options, &store, &why);
    if (ret == HTE_ERR_NOT_IMPLEMENTED) {
        print_message("skipped: %s\n", why.text);
    } else {
        assert_int_equal(ret, 0);
        begin = hte_net_now();
        assert_int_equal(hte_store_get(store, "key", &text, &why), HTE_ERR_METADATA);
        assert_took(begin, ANSWER_MS - 50, ANSWER_MS * endpoints);
        hte_store_close(store);
    }
    nobody_close(&nobody);
}

static void test_stores(void **state)
{
    enum manner manner;

    (void)state;
    for (manner = SILENT; manner <= FULL; ++manner) {
        ask_store("http://%s/metadata", manner, 1);
        ask_store("redis://%s", manner, 1);
        ask_store("redis://:password@%s/3", manner, 1);
        ask_store("etcd://%s", manner, 1);
        ask_store("etcd://%s,%s,%s", manner, 3);
    }
}

static void test_peers(void **state)
{
    struct hte_meta_options options = {.name = "127.0.0.1", .call_ms = ANSWER_MS};
    struct hte_descriptor  *descriptor;
    struct hte_why          why = {.text = ""};
    struct hte_meta        *meta;
    struct nobody           nobody;
    enum manner             manner;
    int64_t                 begin;

    (void)state;
    OK(hte_meta_open(&options, &meta, &why));
    for (manner = SILENT; manner <= FULL; ++manner) {
        nobody_open(&nobody, manner);
        begin = hte_net_now();
        assert_int_equal(hte_meta_fetch(meta, nobody.address, &descriptor, &why), HTE_ERR_TIMEOUT);
        assert_took(begin, ANSWER_MS - 50, ANSWER_MS);
        nobody_close(&nobody);
    }
    hte_meta_close(meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_peers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
