/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_job.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

struct worker {
    pthread_t          thread;
    pthread_cond_t     wake; /* there is a job, or an end */
    pthread_cond_t     idle; /* a job is done */
    struct uct_ha_job *head, **tail;
    const void        *running; /* owner of the job that runs now */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything here */
static struct worker   workers[UCT_HA_JOB_KINDS];
static int             users, stopping;

static struct uct_ha_job *take(struct worker *worker)
{
    struct uct_ha_job *job = worker->head;

    worker->head = job->next;
    if (worker->head == NULL) {
        worker->tail = &worker->head;
    }
    return job;
}

static void *work(void *arg)
{
    struct worker     *worker = arg;
    struct uct_ha_job *job;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (worker->head == NULL && !stopping) {
            pthread_cond_wait(&worker->wake, &lock);
        }
        if (worker->head == NULL) {
            break;
        }
        job             = take(worker);
        worker->running = job->owner;
        pthread_mutex_unlock(&lock);
        job->run(job);
        pthread_mutex_lock(&lock);
        worker->running = NULL;
        pthread_cond_broadcast(&worker->idle);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void stop(int count)
{
    pthread_mutex_lock(&lock);
    stopping = 1;
    for (int i = 0; i < count; i++) {
        pthread_cond_signal(&workers[i].wake);
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

/* The application's signals are its own: these threads take none. Called with
 * the lock held. */
static int start(void)
{
    sigset_t all, old;
    int      status = 0, started = 0;

    stopping = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < UCT_HA_JOB_KINDS && status == 0; i++) {
        pthread_cond_init(&workers[i].wake, NULL);
        pthread_cond_init(&workers[i].idle, NULL);
        workers[i].head = NULL;
        workers[i].tail = &workers[i].head;
        status   = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        started += status == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0) {
        pthread_mutex_unlock(&lock);
        stop(started);
        pthread_mutex_lock(&lock);
    }
    return -status;
}

int uct_ha_job_open(void)
{
    int status = 0;

    pthread_mutex_lock(&lock);
    if (users == 0) {
        status = start();
    }
    users += status == 0;
    pthread_mutex_unlock(&lock);
    return status;
}

void uct_ha_job_close(void)
{
    int last;

    pthread_mutex_lock(&lock);
    last = --users == 0;
    pthread_mutex_unlock(&lock);
    if (last) {
        stop(UCT_HA_JOB_KINDS);
    }
}

void uct_ha_job_post(enum uct_ha_job_kind kind, struct uct_ha_job *job)
{
    struct worker *worker = &workers[kind];

    job->next = NULL;
    pthread_mutex_lock(&lock);
    *worker->tail = job;
    worker->tail  = &job->next;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&lock);
}

static struct uct_ha_job *take_all_of(struct worker *worker, const void *owner)
{
    struct uct_ha_job **link, *job, *taken = NULL;

    for (link = &worker->head; (job = *link) != NULL;) {
        if (job->owner == owner) {
            *link     = job->next;
            job->next = taken;
            taken     = job;
        } else {
            link = &job->next;
        }
    }
    worker->tail = link;
    return taken;
}

void uct_ha_job_cancel(enum uct_ha_job_kind kind, const void *owner,
                       void (*drop)(struct uct_ha_job *job))
{
    struct worker     *worker = &workers[kind];
    struct uct_ha_job *job, *dropped;

    pthread_mutex_lock(&lock);
    while (worker->running == owner) {
        pthread_cond_wait(&worker->idle, &lock);
    }
    dropped = take_all_of(worker, owner); /* after the wait: it may have posted itself again */
    pthread_mutex_unlock(&lock);

    while (dropped != NULL) {
        job     = dropped;
        dropped = job->next;
        drop(job);
    }
}
