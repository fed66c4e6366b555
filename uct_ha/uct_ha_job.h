/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_JOB_H_
#define UCT_HA_JOB_H_

/*
 * One worker thread per process for device commands that may block: creating
 * an address handle and connecting a queue pair resolve the neighbour, which
 * takes a second when it is dead. Neither progress nor the thread that answers
 * heartbeats may wait for that.
 *
 * The thread starts with the first user and ends with the last.
 */

struct uct_ha_job {
    struct uct_ha_job *next;
    const void        *owner;
    /* Runs on the worker thread. It may release the job itself. */
    void (*run)(struct uct_ha_job *job);
};

/* Reference the worker thread; 0 or a negative errno value. */
int  uct_ha_job_open(void);
void uct_ha_job_close(void);

/* Queue a job. The caller keeps it alive until run() was called or
 * uct_ha_job_cancel() returned. Jobs run in order. */
void uct_ha_job_post(struct uct_ha_job *job);

/* Take every queued job of `owner` off and wait for the running one. For each
 * job taken off `drop` is called. Not from run(). */
void uct_ha_job_cancel(const void *owner, void (*drop)(struct uct_ha_job *job));

#endif
