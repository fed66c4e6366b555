/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_job.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t     wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t     idle = PTHREAD_COND_INITIALIZER;
static pthread_t          thread;
static int                users, stopping;
static struct uct_ha_job *head, **tail = &head;
static const void        *running; /* owner of the job that runs now */

static struct uct_ha_job *take(void)
{
    struct uct_ha_job *job = head;

    head = job->next;
    if (head == NULL) {
        tail = &head;
    }
    return job;
}

static void *work(void *arg)
{
    struct uct_ha_job *job;

    (void)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (head == NULL && !stopping) {
            pthread_cond_wait(&wake, &lock);
        }
        if (head == NULL) {
            break;
        }
        job     = take();
        running = job->owner;
        pthread_mutex_unlock(&lock);
        job->run(job);
        pthread_mutex_lock(&lock);
        running = NULL;
        pthread_cond_broadcast(&idle);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The application's signals are its own: this thread takes none. */
static int start(void)
{
    sigset_t all, old;
    int      status;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    stopping = 0;
    status   = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
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
    if (last) {
        stopping = 1;
        pthread_cond_signal(&wake);
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        pthread_join(thread, NULL);
    }
}

void uct_ha_job_post(struct uct_ha_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&lock);
    *tail = job;
    tail  = &job->next;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void uct_ha_job_cancel(const void *owner, void (*drop)(struct uct_ha_job *job))
{
    struct uct_ha_job **link, *job, *dropped = NULL;

    pthread_mutex_lock(&lock);
    for (link = &head; (job = *link) != NULL;) {
        if (job->owner == owner) {
            *link     = job->next;
            job->next = dropped;
            dropped   = job;
        } else {
            link = &job->next;
        }
    }
    tail = link;
    while (running == owner) {
        pthread_cond_wait(&idle, &lock);
    }
    pthread_mutex_unlock(&lock);

    while (dropped != NULL) {
        job     = dropped;
        dropped = job->next;
        drop(job);
    }
}
