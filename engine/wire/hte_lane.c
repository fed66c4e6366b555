/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_lane.h"

#include <sys/random.h>

#include "base/hte_error.h"

#define PROGRESS_AT_ONCE 4

static int open_rail(struct hte_lane *lane, unsigned index)
{
    struct hte_rail      *rail   = &lane->rails->rail[index];
    struct hte_lane_rail *mine   = &lane->rail[index];
    ucp_worker_params_t   params = {
          .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
          .thread_mode = UCS_THREAD_MODE_SERIALIZED, /* made here, used by the thread */
    };
    ucs_status_t status = ucp_worker_create(rail->context, &params, &mine->ucp);

    if (status != UCS_OK) {
        return hte_fail(HTE_ERR_CONTEXT, "UCX cannot create a worker on %s: %s", rail->name, ucs_status_string(status));
    }
    lane->n_rails = index + 1;
    status        = ucp_worker_get_efd(mine->ucp, &mine->event_fd);
    if (status == UCS_OK) {
        status = ucp_worker_get_address(mine->ucp, &mine->address, &mine->address_length);
    }
    if (status != UCS_OK) {
        return hte_fail(HTE_ERR_CONTEXT, "UCX's worker on %s has no events or address: %s", rail->name,
                        ucs_status_string(status));
    }
    return HTE_OK;
}

void hte_lane_init(struct hte_lane *lane, const struct hte_lane_hooks *hooks, const struct hte_settings *settings,
                   unsigned index)
{
    unsigned i;

    lane->hooks       = hooks;
    lane->window      = settings->window;
    lane->retry_count = settings->retry_count;
    lane->moves       = (enum hte_moves)settings->moves;
    lane->require     = (enum hte_require)settings->require;
    lane->index       = index;
    hte_ring_init(&lane->nears);
    hte_ring_init(&lane->dirty);
    hte_ring_init(&lane->broken);
    hte_ring_init(&lane->conns);
    hte_ring_init(&lane->guests);
    hte_ring_init(&lane->answers);
    for (i = 0; i < HTE_CONN_BUCKETS; ++i) {
        hte_ring_init(&lane->buckets[i]);
        hte_ring_init(&lane->openings[i]);
        hte_ring_init(&lane->guest_buckets[i]);
    }
    pthread_mutex_init(&lane->lock, NULL);
}

int hte_lane_open(struct hte_lane *lane, struct hte_rails *rails, struct hte_regions *regions)
{
    unsigned i;
    uint32_t nonce;
    int      error = HTE_OK;

    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
        return hte_fail(HTE_ERR_CONTEXT, "getrandom(2) gives nothing");
    }
    lane->nonce   = nonce;
    lane->rails   = rails;
    lane->regions = regions;
    for (i = 0; i < rails->count && error == HTE_OK; ++i) {
        error = open_rail(lane, i);
    }
    return error;
}

void hte_lane_close(struct hte_lane *lane)
{
    unsigned i;

    for (i = 0; i < lane->n_rails; ++i) {
        if (lane->rail[i].address != NULL) {
            ucp_worker_release_address(lane->rail[i].ucp, lane->rail[i].address);
        }
        ucp_worker_destroy(lane->rail[i].ucp);
    }
}

void hte_lane_cleanup(struct hte_lane *lane)
{
    hte_letter_shelf_cleanup(&lane->shelf);
    hte_tokens_free(&lane->tokens);
    pthread_mutex_destroy(&lane->lock);
}

bool hte_lane_arm(struct hte_lane *lane)
{
    unsigned i;

    for (i = 0; i < lane->n_rails; ++i) {
        if (ucp_worker_arm(lane->rail[i].ucp) != UCS_OK) {
            return false;
        }
    }
    return true;
}

unsigned hte_lane_progress(struct hte_lane *lane)
{
    unsigned i, k, count = 0;

    for (i = 0; i < lane->n_rails; ++i) {
        for (k = 0; k < PROGRESS_AT_ONCE && ucp_worker_progress(lane->rail[i].ucp) != 0; ++k) {
            ++count;
        }
    }
    return count;
}
