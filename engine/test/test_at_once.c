/* SPDX-License-Identifier: BSD-3-Clause */
/* On one host, little is moved by who submits it. */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static const struct target_buffer halves[] = {{.length = SIZE / 2}, {.length = SIZE / 2}};

enum { TRIES = 100 };

static void note_thread(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    (void)engine;
    (void)batch;
    *(pthread_t *)arg = pthread_self();
}

/* How often other threads of the process have gone to sleep. */
static long count_sleeps(void)
{
    DIR           *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    char           path[300], line[200];
    long           sum = 0, count;
    FILE          *file;

    while ((entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        file = entry->d_name[0] == '.' || atoi(entry->d_name) == (int)getpid() ? NULL : fopen(path, "r");
        while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1) {
                sum += count;
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(tasks);
    return sum;
}

/* Requests that somebody was woken for, about, of TRIES. Engine's thread sleeps before each. */
static long count_woken(struct fixture *f, size_t length, bool has_callback)
{
    struct hte_request      r = request(f, HTE_WRITE, 0, 0, length);
    struct hte_batch_status status;
    hte_batch_t             batch;
    pthread_t               thread = pthread_self();
    int                     i;
    long                    before = count_sleeps();

    for (i = 0; i < TRIES; ++i) {
        usleep(1000);
        pattern_fill(f->memory, 0, length, (uint32_t)i);
        OK(hte_batch_alloc(f->engine, 1, &batch));
        if (has_callback) {
            OK(hte_batch_set_callback(f->engine, batch, note_thread, &thread));
        }
        OK(hte_batch_submit(f->engine, batch, &r, 1));
        OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
        assert_int_equal(status.code, HTE_COMPLETED);
        OK(hte_batch_free(f->engine, batch));
        assert_true(!has_callback || !pthread_equal(thread, pthread_self()));
        assert_true(target_verify(&f->target, 0, 0, length, (uint32_t)i));
    }
    return count_sleeps() - before;
}

/* Little is moved without waking anybody; not what has a callback, and not what takes time. */
static void test_at_once(void **state)
{
    const struct hte_option options[] = {{"threads", "1"}, {"poll_us", "0"}};
    struct fixture          f;

    (void)state;
    open_with(&f, options, 2, halves, 2);
    count_woken(&f, 1, false); /* connected */
    assert_true(count_woken(&f, 1, false) < TRIES / 2);
    assert_true(count_woken(&f, 16 * K, false) < TRIES / 2);
    assert_true(count_woken(&f, 16 * K + 1, false) > TRIES / 2);
    assert_true(count_woken(&f, 1, true) > TRIES / 2);
    target_unregister(&f.target, 1);
    assert_int_equal(transfer(&f, &(struct hte_request){HTE_WRITE, f.segment, f.memory, f.target.addr[1], 1}, 1).code,
                     HTE_INVALID);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ms until the request to a process that has died ends. */
static double time_of_death(void)
{
    const struct hte_option options[] = {{"threads", "1"}, {"poll_us", "0"}};
    struct hte_request      r;
    struct timespec         begin, end;
    struct fixture          f;

    open_with(&f, options, 2, halves, 2);
    count_woken(&f, 1, true); /* the thread has just gone to sleep */
    target_kill(&f.target);
    r = request(&f, HTE_WRITE, 0, 0, 1);
    usleep(1000);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(transfer(&f, &r, 1).error, HTE_ERR_DEAD_PEER);
    clock_gettime(CLOCK_MONOTONIC, &end);
    close_fixture(&f);
    return (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
}

/* What did not go well is the thread's, which sleeps up to half a second when nobody wakes it. */
static void test_left(void **state)
{
    double time, best = 1e9;
    int    i;

    (void)state;
    for (i = 0; i < 4 && best >= 350; ++i) {
        time = time_of_death();
        best = time < best ? time : best;
    }
    assert_true(best < 350);
}

/* Many threads take the helm in turn, and the engine's own wants it, too. */
static void *write_often(void *arg)
{
    const struct fixture *f = arg;
    struct hte_request    r = request(f, HTE_WRITE, 0, 0, K);
    int                   i;

    for (i = 0; i < 20 * TRIES; ++i) {
        r.length = i % 5 == 0 ? 100 * K : K;
        transfer_ok(f, &r, 1);
    }
    return NULL;
}

static void test_many_at_once(void **state)
{
    const struct hte_option options[] = {{"threads", "2"}, {"poll_us", "0"}};
    struct fixture          f;
    pthread_t               thread[4];
    int                     i;

    (void)state;
    open_with(&f, options, 2, halves, 2);
    for (i = 0; i < 4; ++i) {
        pthread_create(&thread[i], NULL, write_often, &f);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(thread[i], NULL);
    }
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_many_at_once),
    };

    target_main(argc, argv);
    unsetenv("UCX_TLS"); /* who names transports gets those */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
