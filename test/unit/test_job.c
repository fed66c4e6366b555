/* SPDX-License-Identifier: BSD-3-Clause */

/* Worker threads: who cancels waits for the job that runs and for no other; who opens while another one closes gets
 * threads that work. */

#include "base/job.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define JOBS   20
#define ROUNDS 3000

static struct numbered {
    struct uct_ha_job super;
    unsigned          number, ran;
} jobs[JOBS];
static unsigned dropped, first;
static sem_t    begun, go_on;

static void wait_here(struct uct_ha_job *super)
{
    struct numbered *job = (struct numbered *)(void *)super;

    job->ran++;
    sem_post(&begun);
    sem_wait(&go_on);
}

static void repeat(struct uct_ha_job *super)
{
    wait_here(super);
    uct_ha_job_post(UCT_HA_JOB_LOOK, 0, super);
}

static void on_drop(struct uct_ha_job *super)
{
    struct numbered *job = (struct numbered *)(void *)super;

    if (dropped++ == 0) {
        first = job->number;
    }
    assert_int_equal(job->number, first + dropped - 1);
}

static void post_all(void (*run)(struct uct_ha_job *job), unsigned count)
{
    dropped = first = 0;
    sem_init(&begun, 0, 0);
    sem_init(&go_on, 0, 0);
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (struct numbered){.super = {.owner = jobs, .run = run}, .number = i};
        uct_ha_job_post(UCT_HA_JOB_LOOK, 0, &jobs[i].super);
    }
    sem_wait(&begun); /* the first one runs */
}

static void *let_go(void *arg)
{
    usleep(50000); /* by then the other one waits, most likely: it is right either way */
    for (int i = 0; i < JOBS; i++) {
        sem_post(&go_on);
    }
    return arg;
}

static void cancel(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
    uct_ha_job_cancel(UCT_HA_JOB_LOOK, jobs, on_drop);
    pthread_join(thread, NULL);
}

static void test_cancel_waits_for_one(void **state)
{
    (void)state;
    assert_int_equal(uct_ha_job_open(), 0);
    post_all(wait_here, JOBS);
    cancel();
    assert_int_equal(jobs[0].ran, 1);
    for (int i = 1; i < JOBS; i++) {
        assert_int_equal(jobs[i].ran, 0);
    }
    assert_int_equal(dropped, JOBS - 1); /* in their order */
    assert_int_equal(first, 1);
    uct_ha_job_close();
}

static void test_cancel_of_one_that_goes_on(void **state)
{
    (void)state;
    assert_int_equal(uct_ha_job_open(), 0);
    post_all(repeat, 1);
    cancel();
    assert_int_equal(dropped, 1);
    uct_ha_job_close();
}

/* ---- threads that open and close ---- */

struct visit {
    struct uct_ha_job job;
    sem_t             done;
};

static void tell(struct uct_ha_job *job)
{
    sem_post(&((struct visit *)(void *)job)->done);
}

static int is_done(struct visit *visit)
{
    struct timespec end;
    int             status;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    while ((status = sem_timedwait(&visit->done, &end)) != 0 && errno == EINTR) {
    }
    return status == 0;
}

static void *come_and_go(void *arg)
{
    struct visit visit = {.job = {.owner = arg, .run = tell}};
    unsigned    *ran   = arg;

    sem_init(&visit.done, 0, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (uct_ha_job_open() != 0) {
            break;
        }
        uct_ha_job_post(UCT_HA_JOB_BUILD, 0, &visit.job);
        if (!is_done(&visit)) {
            break; /* it never runs; not closed: that might never end, either */
        }
        uct_ha_job_close();
        ++*ran;
    }
    return NULL;
}

static void test_open_while_another_closes(void **state)
{
    pthread_t thread[2];
    unsigned  ran[2] = {0, 0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, &ran[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(ran[i], ROUNDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_waits_for_one),
        cmocka_unit_test(test_cancel_of_one_that_goes_on),
        cmocka_unit_test(test_open_while_another_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
