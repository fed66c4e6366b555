/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hte_error.h"
#include "base/hte_fork.h"
#include "hte_metrics.h"
#include "hte_metrics_text.h"
#include "hte_prepare.h"
#include "hte_publish.h"
#include "hte_take.h"
#include "meta/hte_store.h"
#include "run/hte_worker.h"
#include "wire/hte_mapping.h"

/* ---- the metadata door ---- */

static int tell_metrics(struct hte_engine *engine, char *reply, size_t reply_size, struct hte_why *why)
{
    char *text;
    int   error;

    if (!atomic_load(&engine->is_named)) {
        return hte_why_set(why, HTE_ERR_CANCELED, "the engine is being created");
    }
    error = hte_metrics_text(engine, reply_size, &text);
    if (error != HTE_OK) {
        return hte_why_set(why, error, "%s", hte_error_detail());
    }
    strcpy(reply, text);
    free(text);
    return HTE_OK;
}

static int on_call(void *arg, enum hte_call call, const char *from, const char *payload, char *reply, size_t reply_size,
                   struct hte_why *why)
{
    struct hte_engine *engine = arg;

    if (call == HTE_CALL_NOTIFY) {
        return hte_notify_receive(&engine->notify, from, payload, why);
    }
    return call == HTE_CALL_METRICS ? tell_metrics(engine, reply, reply_size, why) : HTE_OK;
}

static const char *text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static int open_meta(struct hte_engine *engine, const struct hte_config *config)
{
    const struct hte_settings *settings = &engine->settings;
    struct hte_meta_options    options  = {
            .url          = config->metadata,
            .cluster      = text_or_null(settings->cluster),
            .name         = config->name,
            .bind_address = config->bind_host,
            .port         = config->port,
            .secret       = text_or_null(settings->secret),
            .connect_ms   = (unsigned)settings->connect_timeout_ms,
            .call_ms      = (unsigned)settings->handshake_timeout_ms,
            .max_frame    = settings->handshake_max,
            .handler      = on_call,
            .arg          = engine,
    };
    struct hte_why why   = {""};
    int            error = hte_meta_open(&options, &engine->meta, &why);

    atomic_store(&engine->is_named, error == HTE_OK);
    return hte_fail_why(error, &why);
}

/* ---- life ---- */

/* What does not fail, so that end() may be called from here on. */
static void init(struct hte_engine *engine)
{
    engine->generation = hte_fork_generation();
    hte_regions_init(&engine->regions);
    hte_shareds_init(&engine->shareds);
    engine->run.settings = &engine->settings;
    engine->run.rails    = &engine->rails;
    engine->run.regions  = &engine->regions;
    engine->run.refresh  = &engine->refresh;
    hte_queue_init(&engine->run.queue);
    hte_lists_init(engine);
    hte_notify_init(&engine->notify, engine->settings.notify_max);
    pthread_mutex_init(&engine->publish_lock, NULL);
}

static int open_tables(struct hte_engine *engine)
{
    int error = hte_segments_init(&engine->segments, (uint32_t)engine->settings.segments_max, hte_target_create,
                                  (unsigned)engine->settings.threads);

    if (error == HTE_OK) {
        error = hte_batches_init(&engine->batches, (uint32_t)engine->settings.batches_max, engine, hte_take_release);
    }
    return error;
}

static int build(struct hte_engine *engine, const struct hte_config *config)
{
    int error = open_tables(engine);

    if (error == HTE_OK) {
        error = hte_devices_choose(&engine->settings, &engine->devices);
    }
    if (error == HTE_OK) {
        error = hte_rails_open(&engine->rails, &engine->settings, &engine->devices);
    }
    if (error == HTE_OK && engine->rails.host[0] != '\0') {
        hte_board_open(&engine->board);
    }
    if (error == HTE_OK) {
        error = hte_topology_init(&engine->topology, &engine->devices, &engine->settings);
    }
    if (error == HTE_OK) {
        error = hte_workers_open(&engine->workers, &engine->run);
    }
    if (error == HTE_OK) {
        error = open_meta(engine, config);
    }
    if (error == HTE_OK) {
        error = hte_metrics_start(engine);
    }
    if (error == HTE_OK) {
        error = hte_publish(engine);
    }
    if (error == HTE_OK) {
        error = hte_notify_start(&engine->notify, engine->meta);
    }
    if (error == HTE_OK) {
        error = hte_refresh_init(&engine->refresh, &engine->segments, engine->meta);
    }
    if (error == HTE_OK) {
        error = hte_workers_start(&engine->workers);
    }
    return error;
}

static void cancel_all(struct hte_engine *engine)
{
    struct hte_batch **batches;
    size_t             i, count;

    batches = hte_batches_all(&engine->batches, &count);
    for (i = 0; i < count; ++i) {
        hte_batch_cancel_tasks(batches[i]);
        hte_batch_put(batches[i]);
    }
    free(batches);
}

static void stop_workers(struct hte_engine *engine)
{
    hte_workers_stop(&engine->workers, engine->settings.shutdown_timeout_ms);
    cancel_all(engine);
    hte_workers_join(&engine->workers);
}

static void await_zero(_Atomic uint32_t *count)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load(count) > 0) {
        nanosleep(&pause, NULL);
    }
}

static void free_batches(struct hte_engine *engine)
{
    struct hte_batch **batches;
    size_t             i, count;

    batches = hte_batches_all(&engine->batches, &count);
    for (i = 0; i < count; ++i) {
        hte_batch_put(batches[i]);
        hte_batch_put(batches[i]); /* the table's */
    }
    free(batches);
}

static void free_regions(struct hte_engine *engine)
{
    size_t i;

    for (i = 0; i < engine->regions.count; ++i) {
        hte_region_unmap(&engine->rails, engine->regions.list[i]);
        free(engine->regions.list[i]);
    }
    hte_regions_cleanup(&engine->regions);
}

/* All but the engine itself: what hte_enter() looks at stays. */
static void end(struct hte_engine *engine)
{
    struct hte_why why;

    atomic_store(&engine->is_closing, true);
    hte_notify_stop(&engine->notify, engine->settings.shutdown_timeout_ms);
    if (engine->meta != NULL) {
        hte_meta_withdraw(engine->meta, &why);
        hte_meta_stop(engine->meta);
    }
    stop_workers(engine);
    hte_refresh_stop(&engine->refresh);
    await_zero(&engine->calls);
    hte_metrics_file_stop(&engine->metrics_file);
    if (engine->meta != NULL) {
        hte_meta_close(engine->meta);
    }
    cancel_all(engine); /* a submit may have come in between: it ends as the workers are closed */
    hte_workers_close(&engine->workers);
    await_zero(&engine->waiters);
    free(engine->workers.list);
    free_batches(engine);
    hte_lists_cleanup(engine);
    hte_board_close(&engine->board);
    free_regions(engine);
    hte_shareds_cleanup(&engine->shareds);
    hte_notify_cleanup(&engine->notify);
    hte_refresh_cleanup(&engine->refresh);
    hte_segments_cleanup(&engine->segments);
    hte_batches_cleanup(&engine->batches);
    hte_rails_close(&engine->rails);
    hte_queue_cleanup(&engine->run.queue);
    pthread_mutex_destroy(&engine->publish_lock);
    hte_settings_cleanup(&engine->settings);
    engine->is_ended = true;
}

/* The URL before the name: who wrote foo://x has to hear of that. */
static int check_store(const struct hte_config *config)
{
    struct hte_why why   = {""};
    int            error = hte_fail_why(hte_store_check(config->metadata, &why), &why);

    if (error == HTE_OK && (config->name == NULL || config->name[0] == '\0')) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "a segment in a store needs a name: set config.name");
    }
    return error;
}

static int check_config(const struct hte_config *config)
{
    bool is_p2p = config->metadata == NULL || strcmp(config->metadata, HTE_META_P2P) == 0;

    if (config->size < offsetof(struct hte_config, n_options) + sizeof(config->n_options)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "config.size is %zu: set it to sizeof(struct hte_config)",
                        config->size);
    }
    if (config->name != NULL && strlen(config->name) > HTE_NAME_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "the name is longer than %d bytes", HTE_NAME_MAX);
    }
    return is_p2p ? HTE_OK : check_store(config);
}

int hte_create(const struct hte_config *config, struct hte_engine **engine_p)
{
    static const struct hte_config defaults = {.size = sizeof(defaults)};
    struct hte_engine             *engine;
    int                            error;

    config = config == NULL ? &defaults : config;
    if (engine_p == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "engine is NULL");
    }
    error = check_config(config);
    if (error != HTE_OK) {
        return error;
    }
    engine = hte_fork_watch() == 0 ? calloc(1, sizeof(*engine)) : NULL;
    if (engine == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for an engine");
    }
    error = hte_settings_init(&engine->settings, config);
    if (error != HTE_OK) {
        free(engine);
        return error;
    }
    init(engine);
    error = build(engine, config);
    if (error != HTE_OK) {
        hte_destroy(engine);
        return error;
    }
    *engine_p = engine;
    return HTE_OK;
}

void hte_shutdown(struct hte_engine *engine)
{
    if (engine != NULL && !hte_engine_is_foreign(engine) && !engine->is_ended) {
        end(engine);
    }
}

/* In a child of fork() it is not even freed: other threads of the child, or destructors, may still ask it, and are
 * refused as long as it is there. */
void hte_destroy(struct hte_engine *engine)
{
    if (engine != NULL && !hte_engine_is_foreign(engine)) {
        hte_shutdown(engine);
        free(engine);
    }
}
