/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/number.h"

#include <errno.h>
#include <stdlib.h>

#define PAGES (1u << (24 - UCT_HA_PAGE_BITS))

/* Of all numbers that no lane has had yet, so that whoever looks has a page. Never written. */
static struct uct_ha_road *empty[1u << UCT_HA_PAGE_BITS];

int uct_ha_number_open(struct uct_ha_shared *shared)
{
    shared->page = malloc(PAGES * sizeof(*shared->page));
    for (unsigned i = 0; shared->page != NULL && i < PAGES; i++) {
        shared->page[i] = empty;
    }
    return shared->page == NULL ? -ENOMEM : 0;
}

static void free_graves(struct uct_ha_lane *lane)
{
    struct uct_ha_lane *next;

    for (; lane != NULL; lane = next) {
        next = lane->parked;
        free(lane);
    }
}

void uct_ha_number_close(struct uct_ha_shared *shared)
{
    for (unsigned i = 0; shared->page != NULL && i < PAGES; i++) {
        if (shared->page[i] != empty) {
            free(shared->page[i]);
        }
    }
    free(shared->page);
    shared->page = NULL;
    free_graves(shared->graves);
    shared->graves = NULL;
}

static struct uct_ha_road **entry_of(struct uct_ha_shared *shared, uint32_t qpn)
{
    struct uct_ha_road ***page = &shared->page[qpn >> UCT_HA_PAGE_BITS & UCT_HA_PAGE_MASK];
    struct uct_ha_road  **made;

    if (*page == empty) {
        made = calloc(UCT_HA_PAGE_MASK + 1, sizeof(*made));
        if (made == NULL) {
            return NULL;
        }
        *page = made;
    }
    return &(*page)[qpn & UCT_HA_PAGE_MASK];
}

struct uct_ha_lane *uct_ha_number_find_locked(const struct uct_ha_shared *shared, uint32_t qpn)
{
    struct uct_ha_road *road;
    struct uct_ha_lane *lane;

    qpn &= (1u << 24) - 1;
    road = shared->page == NULL ? NULL : uct_ha_number_road(shared, qpn);
    if (road == NULL) {
        return NULL;
    }
    lane = road->lane[shared->slot];
    if (lane == NULL || lane->qpn != qpn) {
        lane = road->next[shared->slot];
    }
    return lane != NULL && lane->qpn == qpn ? lane : NULL;
}

int uct_ha_number_enter_locked(struct uct_ha_lane *lane)
{
    struct uct_ha_road **entry;

    lane->qpn = ha_rc_qpn(lane->rc);
    entry     = entry_of(lane->shared, lane->qpn);

    if (entry == NULL || *entry != NULL) {
        return entry == NULL ? -ENOMEM : -EAGAIN;
    }
    *entry = lane->road;
    return 0;
}

void uct_ha_number_park_locked(struct uct_ha_lane *lane)
{
    *entry_of(lane->shared, lane->qpn) = UCT_HA_NUMBER_RESTS;
}

void uct_ha_number_bury(struct uct_ha_lane *lane)
{
    pthread_mutex_lock(&lane->lanes->wake.lock);
    lane->parked = lane->shared->graves;
    __atomic_store_n(&lane->shared->graves, lane, __ATOMIC_RELEASE); /* progress looks whether there is one */
    pthread_mutex_unlock(&lane->lanes->wake.lock);
}

struct uct_ha_lane *uct_ha_number_take_graves(struct uct_ha_lanes *lanes, int slot)
{
    struct uct_ha_lane *graves;

    pthread_mutex_lock(&lanes->wake.lock);
    graves = lanes->shared[slot].graves;
    __atomic_store_n(&lanes->shared[slot].graves, NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lanes->wake.lock);
    return graves;
}

void uct_ha_number_forget(struct uct_ha_lanes *lanes, int slot, struct uct_ha_lane *graves)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];

    if (graves == NULL) {
        return;
    }
    pthread_mutex_lock(&lanes->wake.lock);
    for (struct uct_ha_lane *lane = graves; lane != NULL; lane = lane->parked) {
        *entry_of(shared, lane->qpn) = NULL;
    }
    pthread_mutex_unlock(&lanes->wake.lock);
    free_graves(graves);
}

void uct_ha_number_put_back(struct uct_ha_lane *graves)
{
    struct uct_ha_lane *next;

    for (; graves != NULL; graves = next) {
        next = graves->parked;
        uct_ha_number_bury(graves);
    }
}
