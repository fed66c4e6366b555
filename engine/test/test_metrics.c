/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text: what it says is what happened, it is as the format wants it, and as long as may be. */
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define SERIES_MAX 8192
#define REPLY_MAX  (128 * K)
#define MANY       1100 /* names for one target; 1024 are shown */

/* ---- the text, read as Prometheus does ---- */

static char *metrics_of(struct hte_engine *engine)
{
    char *text = NULL;

    OK(hte_metrics(engine, &text));
    return text;
}

/* The value of the series that begins so, which is there once. */
static double value(const char *text, const char *series)
{
    const char *found = strstr(text, series), *space;

    while (found != NULL && found != text && found[-1] != '\n') {
        found = strstr(found + 1, series);
    }
    assert_non_null(found);
    space = strstr(found, "} ");
    assert_non_null(space);
    return strtod(space + 2, NULL);
}

static unsigned count_of(const char *text, const char *piece)
{
    unsigned count = 0;

    for (; (text = strstr(text, piece)) != NULL; ++text) {
        ++count;
    }
    return count;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of a line: name{labels} without its value; the name is the one that HELP and TYPE were just given for. */
static char *check_series(char *line, const char *name, bool is_counter)
{
    size_t length = strlen(name);
    char  *end    = strrchr(line, ' '), *rest;

    assert_non_null(end);
    assert_int_equal(strncmp(line, name, length), 0);
    assert_int_equal(line[length], '{');
    assert_int_equal(end[-1], '}');
    assert_true(strtod(end + 1, &rest) >= 0 && rest != end + 1 && *rest == '\0');
    assert_int_equal(is_counter, strcmp(name + length - 6, "_total") == 0);
    *end = '\0';
    return line;
}

static void check_format(const char *text)
{
    static char *series[SERIES_MAX];
    char        *copy = strdup(text), *line, *save = NULL, name[128] = "", type[16];
    size_t       count = 0, i;

    assert_non_null(copy);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (line = strtok_r(copy, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#') {
            assert_int_equal(sscanf(line, "# HELP %127s", name), 1);
            line = strtok_r(NULL, "\n", &save);
            assert_int_equal(strncmp(line + strlen("# TYPE "), name, strlen(name)), 0);
            assert_int_equal(sscanf(line, "# TYPE %*s %15s", type), 1);
            continue;
        }
        assert_true(count < SERIES_MAX);
        series[count++] = check_series(line, name, strcmp(type, "counter") == 0);
    }
    qsort(series, count, sizeof(series[0]), by_text);
    for (i = 1; i < count; ++i) {
        assert_string_not_equal(series[i - 1], series[i]);
    }
    free(copy);
}

/* ---- tests ---- */

static void test_own(void **state)
{
    struct hte_nic_load load;
    struct hte_request  r[2];
    struct fixture      f;
    size_t              one = 1;
    char               *text, series[1024], name[256];

    (void)state;
    open_fixture(&f);
    text = metrics_of(f.engine);
    check_format(text);
    assert_true(value(text, "hte_requests_total{") == 0);
    free(text);
    r[0] = request(&f, HTE_WRITE, 0, 0, M);
    r[1] = request(&f, HTE_READ, 4 * M, M, 2 * M);
    transfer_ok(&f, r, 2);
    text = metrics_of(f.engine);
    check_format(text);
    assert_true(value(text, "hte_requests_total{") == 2);
    assert_true(value(text, "hte_requests_ended_total{") == 2);
    assert_true(value(text, "hte_slices_posted_total{") == 48);
    assert_true(value(text, "hte_batches_open{") == 0);
    assert_true(value(text, "hte_memory_regions{") == 1);
    assert_true(value(text, "hte_segments_open{") == 1);
    assert_true(value(text, "hte_peers_left_out{") == 0);
    OK(hte_nic_load(f.engine, &load, &one));
    assert_true(value(text, "hte_device_transferred_bytes_total{") == (double)load.transferred);
    assert_true(load.transferred == 3 * M);
    OK(hte_local_name(f.engine, name, sizeof(name)));
    snprintf(series, sizeof(series), "hte_peer_transferred_bytes_total{pid=\"%d\",engine=\"%s\",peer=\"%s\"} %llu\n",
             (int)getpid(), name, f.target.name, 3 * M);
    assert_non_null(strstr(text, series));
    snprintf(series, sizeof(series), "hte_peer_connections{pid=\"%d\",engine=\"%s\",peer=\"%s\",way=\"", (int)getpid(),
             name, f.target.name);
    assert_true(value(text, series) >= 1);
    free(text);
    assert_int_equal(hte_metrics(f.engine, NULL), HTE_ERR_INVALID_ARGUMENT);
    target_stop(&f.target);
    close_fixture(&f);
}

/* Connections to a process that is no more have ended: what went over them stays counted. */
static void test_restarted(void **state)
{
    static const struct hte_option    one    = {"threads", "1"};
    static const struct target_buffer buffer = {.length = SIZE};
    struct hte_request                r;
    struct fixture                    f;
    size_t                            links;
    char                             *text;

    (void)state;
    open_with(&f, &one, 1, &buffer, 1);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    target_stop(&f.target);
    target_start_again(&f.target, &buffer, 1);
    OK(hte_segment_sync(f.engine, f.segment));
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    for (unsigned i = 0; i < PATIENCE / 10; ++i) {
        OK(hte_links(f.engine, NULL, &links));
        if (links == 1) { /* the one of before was swept away */
            break;
        }
        usleep(10000);
    }
    assert_int_equal(links, 1);
    text = metrics_of(f.engine);
    assert_true(value(text, "hte_peer_transferred_bytes_total{") == (double)(2 * M));
    free(text);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_of_another(void **state)
{
    struct fixture f;
    char          *text = NULL, label[1024];

    (void)state;
    open_fixture(&f);
    OK(hte_segment_metrics(f.engine, f.segment, &text));
    check_format(text);
    snprintf(label, sizeof(label), "hte_memory_regions{pid=\"%d\",engine=\"%s\"} 1\n", (int)f.target.pid,
             f.target.name);
    assert_non_null(strstr(text, label));
    free(text);
    OK(hte_segment_metrics(f.engine, HTE_SEGMENT_LOCAL, &text));
    snprintf(label, sizeof(label), "hte_memory_regions{pid=\"%d\",", (int)getpid());
    assert_non_null(strstr(text, label));
    free(text);
    assert_int_equal(hte_segment_metrics(f.engine, f.segment, NULL), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_segment_metrics(f.engine, 4711, &text), HTE_ERR_BAD_HANDLE);
    target_stop(&f.target);
    assert_int_equal(hte_segment_metrics(f.engine, f.segment, &text), HTE_ERR_SOCKET);
    close_fixture(&f);
}

/* One process by so many names: its address may begin with any number of zeros. */
static void open_many(const struct fixture *f)
{
    const char   *port = strrchr(f->target.name, ':');
    hte_segment_t segment;
    char          name[HTE_NAME_MAX + 1];
    int           i;

    for (i = 0; i < MANY; ++i) {
        snprintf(name, sizeof(name), "%0*o.%0*o.0.1%s", 100 + i % 50, 127, 40 + i / 50, 0, port);
        OK(hte_segment_open(f->engine, name, &segment));
    }
}

/* Nobody can ask so much of a process that its answer does not fit: it tells of fewer peers, and says so. */
static void test_many_peers(void **state)
{
    struct hte_engine *asker;
    struct fixture     f;
    hte_segment_t      segment;
    double             left;
    char              *text, name[256];

    (void)state;
    open_fixture(&f);
    open_many(&f);
    text = metrics_of(f.engine);
    check_format(text);
    assert_true(value(text, "hte_segments_open{") == MANY + 1);
    assert_int_equal(count_of(text, "\nhte_peer_reconnects_total{"), 1024);
    assert_true(value(text, "hte_peers_left_out{") == MANY + 1 - 1024);
    free(text);
    create(&asker, NULL, 0);
    OK(hte_local_name(f.engine, name, sizeof(name)));
    OK(hte_segment_open(asker, name, &segment));
    OK(hte_segment_metrics(asker, segment, &text));
    check_format(text);
    left = value(text, "hte_peers_left_out{");
    assert_true(value(text, "hte_segments_open{") == MANY + 1);
    assert_int_equal(count_of(text, "\nhte_peer_reconnects_total{"), (int)(MANY + 1 - left));
    assert_true(strlen(text) < REPLY_MAX);
    assert_true(strlen(text) > REPLY_MAX * 3 / 4); /* as many as fit */
    free(text);
    hte_destroy(asker);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- the file ---- */

struct folder {
    char   path[64];
    glob_t found;
};

static void make_folder(struct folder *folder)
{
    *folder = (struct folder){.path = "/tmp/test_metrics.XXXXXX"};
    assert_non_null(mkdtemp(folder->path));
}

/* Names of the files in it that fit. */
static size_t look(struct folder *folder, const char *pattern)
{
    char all[128];

    globfree(&folder->found);
    snprintf(all, sizeof(all), "%s/%s", folder->path, pattern);
    folder->found = (glob_t){.gl_pathc = 0};
    return glob(all, 0, NULL, &folder->found) == 0 ? folder->found.gl_pathc : 0;
}

static char *read_file(const char *path)
{
    char  *text = calloc(1, REPLY_MAX);
    FILE  *file = fopen(path, "r");
    size_t length;

    assert_non_null(text);
    if (file == NULL) {
        free(text);
        return NULL;
    }
    length = fread(text, 1, REPLY_MAX - 1, file);
    assert_true(length > 0);
    fclose(file);
    return text;
}

/* Until the file says so; every time it is whole. */
static bool comes_to_say(const char *path, const char *series, double wanted)
{
    bool  is_there = false;
    char *text;
    int   i;

    for (i = 0; i < PATIENCE / 10 && !is_there; ++i) {
        text = read_file(path);
        assert_non_null(text);
        check_format(text);
        is_there = value(text, series) == wanted;
        free(text);
        usleep(10000);
    }
    return is_there;
}

static struct hte_engine *create_with_file(const char *pattern)
{
    const struct hte_option options[] = {{"metrics_file", pattern}, {"metrics_interval_ms", "100"}};
    struct hte_engine      *engine;

    create(&engine, options, 2);
    return engine;
}

/* It is there at once, is kept up to date and whole, and goes with its engine; two engines have two. */
static void test_file(void **state)
{
    struct hte_engine *first, *second;
    struct folder      folder;
    struct hte_memory  memory;
    char               pattern[128], host[64] = "", name[128];

    (void)state;
    make_folder(&folder);
    snprintf(pattern, sizeof(pattern), "%s/%%h.%%p.prom", folder.path);
    gethostname(host, sizeof(host) - 1);
    first = create_with_file(pattern);
    snprintf(name, sizeof(name), "%.60s.%d.prom", host, (int)getpid());
    assert_int_equal(look(&folder, name), 1);
    snprintf(name, sizeof(name), "%s", folder.found.gl_pathv[0]);
    assert_true(comes_to_say(name, "hte_memory_regions{", 0));
    memory = (struct hte_memory){.addr = aligned_alloc(4096, M), .length = M};
    OK(hte_memory_register(first, &memory));
    assert_true(comes_to_say(name, "hte_memory_regions{", 1));
    second = create_with_file(pattern);
    assert_int_equal(look(&folder, "*.prom"), 2);
    assert_int_equal(look(&folder, "*.2.prom"), 1);
    hte_destroy(second);
    assert_int_equal(look(&folder, "*"), 1);
    assert_true(comes_to_say(name, "hte_memory_regions{", 1));
    hte_destroy(first);
    assert_int_equal(look(&folder, "*"), 0);
    free(memory.addr);
    rmdir(folder.path);
}

/* Once it is open an engine goes on without it, and says how often it failed. */
static void test_file_lost(void **state)
{
    struct hte_engine *engine;
    struct folder      folder;
    char               pattern[128], *text;
    double             failures = 0;

    (void)state;
    make_folder(&folder);
    snprintf(pattern, sizeof(pattern), "%s/%%p", folder.path);
    engine = create_with_file(pattern);
    for (int i = 0; i < PATIENCE / 10 && failures < 2; ++i) {
        if (look(&folder, "*") > 0) {
            unlink(folder.found.gl_pathv[0]);
        }
        rmdir(folder.path);
        usleep(10000);
        text     = metrics_of(engine);
        failures = value(text, "hte_metrics_file_failures_total{");
        free(text);
    }
    assert_true(failures >= 2);
    hte_destroy(engine);
}

static void test_bad_file(void **state)
{
    static const struct {
        const char *pattern, *words;
    } bad[]                  = {{"/tmp/hte.prom", "it needs %p"},
                                {"/tmp/%p.%x.prom", "no other %"},
                                {"/tmp/%p%", "no other %"},
                                {"/no/such/folder/%p.prom", "No such file or directory: make its folder"}};
    struct hte_config config = {.size = sizeof(config), .name = "127.0.0.1", .n_options = 1};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        const struct hte_option option = {"metrics_file", bad[i].pattern};
        struct hte_engine      *engine;

        config.options = &option;
        assert_int_equal(hte_create(&config, &engine), HTE_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(hte_error_detail(), bad[i].pattern));
        assert_non_null(strstr(hte_error_detail(), bad[i].words));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),        cmocka_unit_test(test_restarted), cmocka_unit_test(test_of_another),
        cmocka_unit_test(test_many_peers), cmocka_unit_test(test_file),      cmocka_unit_test(test_file_lost),
        cmocka_unit_test(test_bad_file),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
