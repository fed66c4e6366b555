/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_JOB_H_
#define UCT_HA_JOB_H_

/*
 * Worker threads, one per process, kind and rail, for device commands that may
 * block. Neither progress nor the thread that answers heartbeats may wait for
 * them:
 *  - creating an address handle and connecting a queue pair resolve the
 *    neighbour, which takes a second when it is dead. With many peers behind a silent
 *    rail that is many seconds: the other rail must not queue behind them, nor lanes
 *    behind handles, which are tried for ever, nor living peers behind dead ones;
 *  - any command may take a minute when the card hangs: to stop a queue pair or to ask how
 *    far it is, above all, which is what one does then; but also to make one, to look at a port;
 *  - destroying a queue pair waits until the device has let go of its packets,
 *    which on Soft-RoCE over a dead net device was seen to take 50 s.
 *
 * One of each kind starts with the first user, the others when a rail needs them; all end
 * with the last user.
 */

enum uct_ha_job_kind {
    UCT_HA_JOB_RESOLVE, /* the way to a peer's control port */
    UCT_HA_JOB_RETRY,   /* ... that was looked for in vain before */
    UCT_HA_JOB_BUILD,   /* queue pairs, with the memory they receive in */
    UCT_HA_JOB_CONNECT,
    UCT_HA_JOB_FENCE, /* stop one, ask how far it came */
    UCT_HA_JOB_LOOK,
    UCT_HA_JOB_PORT, /* how is the port, and its control queue pair */
    UCT_HA_JOB_DESTROY,
    UCT_HA_JOB_KINDS
};

struct uct_ha_job {
    struct uct_ha_job *next;
    const void        *owner;
    /* Runs on the worker thread. It may release the job, or post it again. */
    void (*run)(struct uct_ha_job *job);
};

/* Reference the worker threads; 0 or a negative errno value. */
int  uct_ha_job_open(void);
void uct_ha_job_close(void);

/* Queue a job. The caller keeps it alive until run() was called or
 * uct_ha_job_cancel() returned. Jobs of a kind and rail (its number, see mem/reg.h) run
 * in order. */
void uct_ha_job_post(enum uct_ha_job_kind kind, unsigned rail_no, struct uct_ha_job *job);

/* Take every queued job of `owner` off and wait for the running one. For each
 * job taken off `drop` is called, in their order. Not from run(). */
void uct_ha_job_cancel(enum uct_ha_job_kind kind, const void *owner, void (*drop)(struct uct_ha_job *job));

/* A `drop` that does it here and now. */
void uct_ha_job_run(struct uct_ha_job *job);

#endif
