/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/job.h"

#include "verbs/ha_rail.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

struct worker {
    pthread_t          thread;
    int                started;
    pthread_cond_t     wake; /* there is a job, or an end */
    pthread_cond_t     idle; /* a job is done */
    struct uct_ha_job *head, **tail;
    const void        *running; /* owner of the job that runs now */
    unsigned           cancels; /* who takes jobs off: no other one is begun meanwhile */
};

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* open, close: one after the other; taken before `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything here */
static struct worker   workers[UCT_HA_JOB_KINDS][HA_RAILS_MAX];
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
        while ((worker->head == NULL || worker->cancels > 0) && !stopping) {
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

/* No job comes in any more: nobody uses this. */
static void stop(void)
{
    struct worker *worker = &workers[0][0], *end = worker + UCT_HA_JOB_KINDS * HA_RAILS_MAX;

    pthread_mutex_lock(&lock);
    stopping = 1;
    for (struct worker *w = worker; w < end; w++) {
        if (w->started) {
            pthread_cond_signal(&w->wake);
        }
    }
    pthread_mutex_unlock(&lock);
    for (struct worker *w = worker; w < end; w++) {
        if (w->started) {
            pthread_join(w->thread, NULL);
            w->started = 0;
        }
    }
}

/* The application's signals are its own: these threads take none. Called with
 * the lock held. */
static int start(struct worker *worker)
{
    sigset_t all, old;
    int      status;

    if (worker->started) {
        return 0;
    }
    pthread_cond_init(&worker->wake, NULL);
    pthread_cond_init(&worker->idle, NULL);
    worker->head = NULL;
    worker->tail = &worker->head;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(&worker->thread, NULL, work, worker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    worker->started = status == 0;
    return -status;
}

int uct_ha_job_open(void)
{
    int status = 0;

    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
    if (users == 0) {
        stopping = 0;
        for (int kind = 0; kind < UCT_HA_JOB_KINDS && status == 0; kind++) {
            status = start(&workers[kind][0]);
        }
    }
    users += status == 0;
    pthread_mutex_unlock(&lock);
    if (status != 0) {
        stop();
    }
    pthread_mutex_unlock(&life);
    return status;
}

void uct_ha_job_close(void)
{
    int last;

    pthread_mutex_lock(&life); /* whoever opens meanwhile finds all threads, or none */
    pthread_mutex_lock(&lock);
    last = --users == 0;
    pthread_mutex_unlock(&lock);
    if (last) {
        stop();
    }
    pthread_mutex_unlock(&life);
}

void uct_ha_job_post(enum uct_ha_job_kind kind, unsigned rail_no, struct uct_ha_job *job)
{
    struct worker *worker = &workers[kind][rail_no];

    job->next = NULL;
    pthread_mutex_lock(&lock);
    if (start(worker) != 0) {
        worker = &workers[kind][0]; /* no thread for it: with those of another rail, then */
    }
    *worker->tail = job;
    worker->tail  = &job->next;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&lock);
}

/* Onto the end of a list, where `end` is; the new end. */
static struct uct_ha_job **take_all_of(struct worker *worker, const void *owner, struct uct_ha_job **end)
{
    struct uct_ha_job **link, *job;

    for (link = &worker->head; (job = *link) != NULL;) {
        if (job->owner == owner) {
            *link     = job->next;
            job->next = NULL;
            *end      = job;
            end       = &job->next;
        } else {
            link = &job->next;
        }
    }
    worker->tail = link;
    return end;
}

static struct uct_ha_job *cancel_at(struct worker *worker, const void *owner)
{
    struct uct_ha_job *taken = NULL, **end = &taken;

    pthread_mutex_lock(&lock);
    if (worker->started) { /* before the wait: those that are queued are not waited for; after it: the one that runs may
                            * have posted itself again */
        end = take_all_of(worker, owner, end);
        worker->cancels++;
        while (worker->running == owner) {
            pthread_cond_wait(&worker->idle, &lock);
        }
        worker->cancels--;
        (void)take_all_of(worker, owner, end);
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

void uct_ha_job_cancel(enum uct_ha_job_kind kind, const void *owner, void (*drop)(struct uct_ha_job *job))
{
    struct uct_ha_job *job, *dropped;

    for (int rail = HA_RAILS_MAX - 1; rail >= 0; rail--) { /* the first may stand in for others */
        dropped = cancel_at(&workers[kind][rail], owner);
        while (dropped != NULL) {
            job     = dropped;
            dropped = job->next;
            drop(job);
        }
    }
}

void uct_ha_job_run(struct uct_ha_job *job)
{
    job->run(job);
}
