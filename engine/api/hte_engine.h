/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ENGINE_H_
#define HTE_ENGINE_H_

/*
 * The engine: what hte_create() makes. Order of the locks, outer first:
 * a batch's submit_lock, a list's, publish_lock, a segment's fetch_lock, regions, segments, batches, lists, a batch,
 * queue, a rail, notify, refresh.
 */

#include <stdatomic.h>

#include "engine/include/hte.h"
#include "job/hte_batch.h"
#include "local/hte_board.h"
#include "local/hte_device.h"
#include "local/hte_metrics_file.h"
#include "local/hte_region.h"
#include "local/hte_settings.h"
#include "local/hte_shared.h"
#include "local/hte_topology.h"
#include "meta/hte_meta.h"
#include "remote/hte_notify.h"
#include "remote/hte_refresh.h"
#include "remote/hte_segment.h"
#include "run/hte_run.h"
#include "run/hte_worker.h"
#include "wire/hte_rail.h"

struct hte_engine {
    struct hte_settings settings;
    struct hte_devices  devices;
    struct hte_rails    rails;
    struct hte_topology topology;
    struct hte_regions  regions;
    struct hte_board    board; /* changed under publish_lock */
    struct hte_shareds  shareds;
    struct hte_segments segments;
    struct hte_batches  batches;
    struct hte_notify   notify;
    struct hte_refresh  refresh;
    struct hte_run      run;
    struct hte_workers  workers;
    struct hte_meta    *meta;
    _Atomic bool        is_named;   /* `meta` may be looked at by its own thread, too */
    pthread_mutex_t     lists_lock; /* guards the table of prepared lists */
    struct hte_table    lists;
    struct hte_slot     list_slots[HTE_LISTS_MAX];
    pthread_mutex_t     publish_lock; /* one publication at a time; guards version */
    uint64_t            version;
    _Atomic bool        is_closing; /* hte_destroy() has begun: calls are refused, long ones end soon */
    bool                is_ended;   /* hte_shutdown() is through: only hte_enter() may be called */
    _Atomic uint32_t    calls;      /* threads inside a function of hte.h, but for the next */
    _Atomic uint32_t    waiters;    /* threads that sleep in hte_batch_wait() */
    uint64_t            generation; /* of hte_fork.h: of the process that made it */

    struct hte_metrics_file metrics_file;
};

/* Whether the process that made it was forked since, and this is the child: its threads are not here, and what they
 * held at that moment, locks too, stays as it was. Nothing of it may be touched. */
bool hte_engine_is_foreign(const struct hte_engine *engine);

/* Around every call of hte.h, so that hte_destroy() frees nothing that a call uses. INVALID_ARGUMENT for NULL;
 * CANCELED when the engine is another process's, or is being destroyed, but not inside a callback: those run until the
 * workers have ended. Only after HTE_OK: leave. */
int  hte_enter(struct hte_engine *engine);
void hte_leave(struct hte_engine *engine);

#endif
