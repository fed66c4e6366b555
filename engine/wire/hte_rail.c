/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_rail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hte_error.h"
#include "hte_letter.h"
#include "hte_orphan.h"

static int modify(ucp_config_t *config, const char *name, const char *value)
{
    ucs_status_t status = ucp_config_modify(config, name, value);

    if (status != UCS_OK) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "UCX refuses UCX_%s='%s': %s", name, value,
                        ucs_status_string(status));
    }
    return HTE_OK;
}

static int set_keepalive(ucp_config_t *config, const struct hte_settings *settings)
{
    char value[32];

    if (settings->keepalive_ms == 0 || getenv("UCX_KEEPALIVE_INTERVAL") != NULL) {
        return HTE_OK;
    }
    snprintf(value, sizeof(value), "%llums", (unsigned long long)settings->keepalive_ms);
    return modify(config, "KEEPALIVE_INTERVAL", value);
}

static int set_devices(ucp_config_t *config, const char *name)
{
    char   value[sizeof(((struct hte_rail *)0)->name)];
    size_t i;

    if (name[0] == '\0') {
        return HTE_OK;
    }
    for (i = 0; name[i] != '\0'; ++i) {
        value[i] = name[i] == '+' ? ',' : name[i];
    }
    value[i] = '\0';
    return modify(config, "NET_DEVICES", value);
}

static const char *transports_of(const struct hte_settings *settings)
{
    const char *found = getenv("UCX_TLS");
    size_t      i;

    for (i = 0; i < settings->n_options; ++i) {
        if (strcmp(settings->ucx[i].key, "UCX_TLS") == 0) {
            found = settings->ucx[i].value;
        }
    }
    return found == NULL ? "" : found;
}

/* The protocols that UCX 1.18 has by default carry a PUT of more than a few bytes over ha_rc by its emulation
 * (docs/porting.md). Those of before use the hardware. Whoever set it has it. */
static int set_protocols(ucp_config_t *config, const struct hte_settings *settings)
{
    if (getenv("UCX_PROTO_ENABLE") != NULL || strstr(transports_of(settings), "ha_rc") == NULL) {
        return HTE_OK;
    }
    return modify(config, "PROTO_ENABLE", "n");
}

static int configure(ucp_config_t *config, const struct hte_settings *settings, const char *devices)
{
    size_t i;
    int    error = set_keepalive(config, settings);

    if (error == HTE_OK) {
        error = set_devices(config, devices);
    }
    if (error == HTE_OK) {
        error = set_protocols(config, settings);
    }
    for (i = 0; i < settings->n_options && error == HTE_OK; ++i) {
        if (strncmp(settings->ucx[i].key, "UCX_", 4) == 0) {
            error = modify(config, settings->ucx[i].key + 4, settings->ucx[i].value);
        }
    }
    return error;
}

static int open_context(struct hte_rail *rail, const struct hte_settings *settings, const char *devices)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME |
                      UCP_PARAM_FIELD_REQUEST_SIZE | UCP_PARAM_FIELD_REQUEST_INIT,
        .features          = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
        .mt_workers_shared = 1,
        .name              = "hte",
        .request_size      = sizeof(struct hte_orphan),
        .request_init      = hte_orphan_init,
    };
    ucp_config_t *config;
    ucs_status_t  status = ucp_config_read(NULL, NULL, &config);
    int           error;

    if (status != UCS_OK) {
        return hte_fail(HTE_ERR_CONTEXT, "UCX cannot read its configuration: %s", ucs_status_string(status));
    }
    error = configure(config, settings, devices);
    if (error == HTE_OK) {
        status = ucp_init(&params, config, &rail->context);
        if (status == UCS_ERR_NO_DEVICE) {
            error = hte_fail(HTE_ERR_DEVICE_NOT_FOUND, "UCX finds no device for '%s'; `ucx_info -d` lists them",
                             rail->name);
        } else if (status != UCS_OK) {
            error = hte_fail(HTE_ERR_CONTEXT, "UCX cannot be initialized on '%s': %s", rail->name,
                             ucs_status_string(status));
        }
    }
    ucp_config_release(config);
    return error;
}

static bool knows_gpu(ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

    return ucp_context_query(context, &attr) == UCS_OK && (attr.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

bool hte_rails_know_gpu(const struct hte_rails *rails)
{
    unsigned i;

    for (i = 0; i < rails->count && rails->rail[i].knows_gpu; ++i) {
    }
    return i == rails->count;
}

static int open_rail(struct hte_rails *rails, const struct hte_settings *settings, const struct hte_devices *devices)
{
    struct hte_rail *rail = &rails->rail[rails->count];
    int              error;

    *rail = (struct hte_rail){.context = NULL};
    strcpy(rail->name, devices->name[rails->count]);
    error = open_context(rail, settings, devices->is_any ? "" : rail->name);
    if (error == HTE_OK) {
        pthread_mutex_init(&rail->lock, NULL);
        rail->knows_gpu = knows_gpu(rail->context);
        ++rails->count;
    }
    return error;
}

int hte_rails_open(struct hte_rails *rails, const struct hte_settings *settings, const struct hte_devices *devices)
{
    int error = HTE_OK;

    if (getrandom(&rails->origin, sizeof(rails->origin), 0) != sizeof(rails->origin)) {
        return hte_fail(HTE_ERR_CONTEXT, "getrandom(2) gives nothing");
    }
    error = hte_letter_type_create(&rails->letter_type);
    if (error != HTE_OK) {
        return error;
    }
    if (settings->same_host == HTE_SAME_HOST_ON) {
        hte_host_identity(rails->host);
    }
    atomic_init(&rails->epoch, 1);
    hte_origins_init(&rails->origins);
    rails->is_open = true;
    rails->count   = 0;
    rails->rule    = (struct hte_rail_rule){
           .errors    = (uint32_t)settings->rail_errors,
           .window    = settings->rail_window_ms * 1000000,
           .pause     = settings->rail_pause_ms * 1000000,
           .pause_max = settings->rail_pause_max_ms * 1000000,
    };
    while (rails->count < devices->count && error == HTE_OK) {
        error = open_rail(rails, settings, devices);
    }
    if (error != HTE_OK) {
        hte_rails_close(rails);
    }
    return error;
}

void hte_rails_close(struct hte_rails *rails)
{
    if (rails->is_open) {
        rails->is_open = false;
        hte_letter_type_destroy(rails->letter_type);
        hte_origins_cleanup(&rails->origins);
    }
    while (rails->count > 0) {
        --rails->count;
        ucp_cleanup(rails->rail[rails->count].context);
        pthread_mutex_destroy(&rails->rail[rails->count].lock);
    }
}

uint32_t hte_rails_paused(struct hte_rails *rails, uint64_t now)
{
    uint32_t mask = 0;
    unsigned i;

    for (i = 0; i < rails->count; ++i) {
        mask |= (uint32_t)(now < atomic_load_explicit(&rails->rail[i].paused_until, memory_order_relaxed)) << i;
    }
    return mask;
}

void hte_rail_charge(struct hte_rails *rails, unsigned index, uint64_t now)
{
    struct hte_rail *rail   = &rails->rail[index];
    uint32_t         others = ((1u << rails->count) - 1) & ~(1u << index) & ~hte_rails_paused(rails, now);

    pthread_mutex_lock(&rail->lock);
    if (hte_rail_error(&rail->health, &rails->rule, now, others != 0)) {
        atomic_store_explicit(&rail->paused_until, rail->health.paused_until, memory_order_relaxed);
        atomic_fetch_add_explicit(&rail->pauses, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&rail->lock);
}

void hte_rail_clear(struct hte_rails *rails, unsigned index, uint64_t now)
{
    struct hte_rail *rail = &rails->rail[index];

    pthread_mutex_lock(&rail->lock);
    hte_rail_success(&rail->health, now);
    pthread_mutex_unlock(&rail->lock);
}
