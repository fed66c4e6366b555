/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/ring.h"
#include "lane/shared.h"

#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>

#define LONG_WINDOW    128 /* beyond that a ring of its own takes no more than this part of what is left: */
#define LONG_PART      8
#define GRANTS_TO_GROW 4  /* half windows that were filled before it is doubled, if that takes memory */
#define CHAIN_MAX      32 /* a doorbell for so many is not seen any more */

static int64_t bytes(const struct uct_ha_lanes *lanes, uint32_t buffers)
{
    return (int64_t)(buffers * lanes->pool.seg_size);
}

/* Places are not in a chain when they are moved. */
static int make_places(struct uct_ha_ring *ring, uint32_t count)
{
    struct uct_ha_place *places = realloc(ring->places, count * sizeof(*places));

    if (places == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < ring->count; i++) {
        places[i].recv.sge = &places[i].sge;
    }
    ring->places = places;
    return 0;
}

/* Receives of its own? Else they are the lanes', see lane/shared.h, and the ring's count says how many it may use. */
static int is_own(const struct uct_ha_road *road, int slot)
{
    return road->lanes->shared[slot].srq == NULL;
}

static int add(struct uct_ha_road *road, int slot, struct uct_ha_desc *desc)
{
    struct uct_ha_lanes *lanes = road->lanes;
    struct uct_ha_ring  *ring  = &road->ring[slot];

    if (!uct_ha_reg_is_on(desc->mem, lanes->rail_no[slot])) {
        uct_ha_desc_free(&lanes->pool, desc); /* the standby refused it */
        return -ENOMEM;
    }
    uct_ha_place_fill(&ring->places[ring->count++], desc, lanes, slot);
    UCT_HA_STATS_ADD(rx_bytes, bytes(lanes, 1));
    return 0;
}

/* A ring has `count` buffers, all of them on the slot's rail. */
static int extend(struct uct_ha_road *road, int slot, uint32_t count)
{
    struct uct_ha_ring *ring   = &road->ring[slot];
    int                 status = ring->count >= count ? 0 : make_places(ring, count);
    struct uct_ha_desc *desc;

    while (status == 0 && ring->count < count) {
        desc   = uct_ha_desc_alloc(&road->lanes->pool);
        status = desc == NULL ? -ENOMEM : add(road, slot, desc);
    }
    return status;
}

static uint32_t lacks(const struct uct_ha_road *road, int slot)
{
    uint32_t count = (uint32_t)road->rx_window + UCT_HA_RX_RESERVE;

    return count > road->ring[slot].count ? count - road->ring[slot].count : 0;
}

uint32_t uct_ha_ring_lacks(const struct uct_ha_road *road, int slot)
{
    return is_own(road, slot) ? lacks(road, slot) : uct_ha_shared_lacks(&road->lanes->shared[slot], lacks(road, slot));
}

/* It takes its part in what is shared. */
static void join(struct uct_ha_road *road, int slot)
{
    uint32_t more = lacks(road, slot);

    uct_ha_shared_want(&road->lanes->shared[slot], (int32_t)more);
    road->ring[slot].count += more;
}

static void set_chain(struct uct_ha_road *road)
{
    road->rx_chain = (uint16_t)ucs_max(ucs_min(road->rx_window / 4, CHAIN_MAX), 1);
    if (road->rx_round == 0) {
        road->rx_round = road->rx_left = road->rx_chain;
    }
}

int uct_ha_ring_fill(struct uct_ha_road *road, int slot, struct uct_ha_desc **list)
{
    struct uct_ha_ring *ring = &road->ring[slot];
    uint32_t            more = lacks(road, slot);
    int                 status;
    struct uct_ha_desc *desc;

    set_chain(road);
    if (!is_own(road, slot)) {
        join(road, slot);
        return uct_ha_shared_fill_locked(road->lanes, slot, list);
    }
    road->lanes->rings = 1;
    status             = more == 0 ? 0 : make_places(ring, ring->count + more);
    while (status == 0 && more-- > 0) {
        desc = *list;
        if (desc != NULL) {
            *list = desc->next;
        } else if ((desc = uct_ha_desc_at_hand(&road->lanes->pool)) == NULL) {
            return -EAGAIN;
        }
        status = add(road, slot, desc);
    }
    return status;
}

int uct_ha_ring_post(struct uct_ha_lane *lane)
{
    const struct uct_ha_ring *ring   = &lane->road->ring[lane->slot];
    uint32_t                  first  = lane->receives;
    int                       status = 0;

    lane->place0 = lane->shared != NULL ? lane->shared->places : ring->places;
    if (lane->shared != NULL) {
        return 0;
    }
    for (uint32_t i = first; i < ring->count; i++) {
        ring->places[i].recv.wr_id = uct_ha_wr_id(UCT_HA_WR_RECV, lane->id, i);
        ring->places[i].recv.next  = i + 1 < ring->count ? &ring->places[i + 1].recv : NULL;
    }
    if (first < ring->count) {
        status         = ha_rc_post_recv(lane->rc, &ring->places[first].recv);
        lane->receives = status == 0 ? ring->count : first;
    }
    return status;
}

void uct_ha_ring_repost(struct uct_ha_road *road)
{
    for (int s = 0; s < road->slots; s++) {
        struct uct_ha_lane *lane  = is_own(road, s) ? road->lane[s] : NULL; /* shared: do not touch it */
        struct ha_recv     *chain = lane != NULL ? uct_ha_chain_take(&lane->own_chain) : NULL;

        if (chain != NULL && !uct_ha_lane_is_fenced(lane)) {
            (void)ha_rc_post_recv(lane->rc, chain); /* fails only on a dead lane */
        }
    }
}

/* ---- the window ------------------------------------------------------------- */

/* As far as the queue may be filled now; the device will say when that is too little. */
static void extend_shared(struct uct_ha_road *road, int slot, uint32_t count)
{
    struct uct_ha_shared *shared = &road->lanes->shared[slot];
    struct uct_ha_room   *room   = &road->lanes->room[slot];
    struct uct_ha_desc   *list   = NULL;
    uint32_t              missing;
    unsigned              depth;
    int                   status;

    pthread_mutex_lock(&road->lanes->wake.lock);
    uct_ha_shared_want(shared, (int32_t)(count - road->ring[slot].count));
    missing                = uct_ha_shared_lacks(shared, 0);
    road->ring[slot].count = count;
    if (missing > 0) {
        depth = uct_ha_room_ask_for(room, missing);
        pthread_mutex_unlock(&road->lanes->wake.lock);
        status = uct_ha_room_deepen(room, depth);
        (void)uct_ha_desc_stock(&road->lanes->pool, missing, &list);
        pthread_mutex_lock(&road->lanes->wake.lock);
        uct_ha_room_have(room, missing, depth, status);
    }
    (void)uct_ha_shared_fill_locked(road->lanes, slot, &list);
    pthread_mutex_unlock(&road->lanes->wake.lock);
    uct_ha_desc_return_list(&road->lanes->pool, list);
}

static int extend_lane(struct uct_ha_road *road, int slot, uint32_t count)
{
    struct uct_ha_lane *lane = road->lane[slot];

    if (road->ring[slot].count == 0 || ha_rail_is_gone(road->lanes->rail[slot])) {
        return 0; /* there was no lane yet, or there will be none */
    }
    if (!is_own(road, slot)) {
        extend_shared(road, slot, count);
        return 0;
    }
    if (extend(road, slot, count) != 0) {
        return -ENOMEM;
    }
    if (lane != NULL) {
        lane->place0 = road->ring[slot].places; /* they may have moved */
    }
    if (lane == NULL || uct_ha_lane_is_fenced(lane) || lane->receives >= count) {
        return 0; /* the next generation gets all of the ring */
    }
    if (uct_ha_room_add_receives(&road->lanes->room[slot], count - lane->receives) != 0) {
        return -ENOSPC;
    }
    if (uct_ha_ring_post(lane) != 0) {
        lane->receives = count; /* accounted for: a dead lane's room is freed as a whole */
        return uct_ha_lane_is_fenced(lane) ? 0 : -EIO;
    }
    return 0;
}

/* Bytes of the buffers that `more` messages take: of those that all share, only what is not there yet. */
static size_t cost_of(const struct uct_ha_road *road, unsigned more)
{
    struct uct_ha_lanes *lanes   = road->lanes;
    size_t               buffers = 0;

    pthread_mutex_lock(&lanes->wake.lock);
    for (int s = 0; s < road->slots; s++) {
        buffers += is_own(road, s) ? more : uct_ha_shared_lacks(&lanes->shared[s], more);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
    return buffers * lanes->pool.seg_size;
}

int uct_ha_ring_hold_more(struct uct_ha_lane *lane, uint32_t count)
{
    struct uct_ha_held *held = calloc(count, sizeof(*held));

    if (held == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = lane->held_head; i != lane->held_tail; i++) {
        held[i % count] = lane->held[i % lane->held_len];
    }
    free(lane->held);
    lane->held     = held;
    lane->held_len = count;
    return 0;
}

/* The lanes that there are, and those that are being built; later ones begin with the window that is set here. */
static int set_window(struct uct_ha_road *road, unsigned window)
{
    int status = 0;

    pthread_mutex_lock(&road->lanes->wake.lock);
    for (int s = 0; s < road->slots && status == 0; s++) {
        if (road->lane[s] != NULL) {
            status = uct_ha_ring_hold_more(road->lane[s], window + UCT_HA_RX_RESERVE);
        }
        if (road->next[s] != NULL && status == 0) {
            status = uct_ha_ring_hold_more(road->next[s], window + UCT_HA_RX_RESERVE);
        }
    }
    if (status == 0) {
        road->rx_window = (uint16_t)window;
    }
    pthread_mutex_unlock(&road->lanes->wake.lock);
    return status;
}

/* Few with long rings of their own must not take what many need to have rings of some length. */
static int may_take(const struct uct_ha_road *road, unsigned window, size_t cost)
{
    size_t most = road->lanes->config->rx_mem, left = most - ucs_min(road->lanes->rx_grown, most);
    int    owns = 0;

    for (int s = 0; s < road->slots; s++) {
        owns |= is_own(road, s);
    }
    return cost <= (owns && window > LONG_WINDOW ? left / LONG_PART : left);
}

/* Both lanes, so that a failover finds as many receives as the peer may send. */
static unsigned larger_window(struct uct_ha_road *road, unsigned window, size_t cost)
{
    struct uct_ha_lanes *lanes = road->lanes;
    unsigned             more  = window - road->rx_window;

    if (!may_take(road, window, cost)) {
        return 0;
    }
    for (int s = 0; s < road->slots; s++) {
        if (extend_lane(road, s, window + UCT_HA_RX_RESERVE) != 0) {
            return 0;
        }
    }
    if (set_window(road, window) != 0) {
        return 0;
    }
    lanes->rx_grown += cost;
    road->rx_grown += cost;
    set_chain(road);
    return more;
}

unsigned uct_ha_ring_grow(struct uct_ha_road *road)
{
    unsigned window = ucs_min(2u * road->rx_window, road->lanes->rx_window_max);
    size_t   cost;

    if (window == road->rx_window) {
        return 0;
    }
    cost = cost_of(road, window - road->rx_window);
    if (cost > 0 && ++road->rx_grants < GRANTS_TO_GROW) {
        return 0;
    }
    road->rx_grants = 0;
    return larger_window(road, window, cost);
}

void uct_ha_ring_drop_held(struct uct_ha_lane *lane)
{
    while (lane->shared != NULL && lane->held_head != lane->held_tail) {
        uct_ha_ring_free(uct_ha_ring_place(lane, lane->held[lane->held_head++ % lane->held_len].buffer), lane->chain);
    }
}

/* ---- the end ------------------------------------------------------------------ */

void uct_ha_ring_leave(struct uct_ha_road *road, int slot, struct uct_ha_lane *lane)
{
    struct uct_ha_ring *ring = &road->ring[slot];

    if (lane != NULL && lane->left.places != NULL) {
        return; /* it has them already */
    }
    if (ring->places == NULL) { /* shared, or none */
        uct_ha_shared_want(&road->lanes->shared[slot], -(int32_t)ring->count);
        ring->count = 0;
        return;
    }
    if (lane != NULL) {
        lane->left = *ring;
    } else {
        for (uint32_t i = 0; i < ring->count; i++) {
            uct_ha_desc_free(&road->lanes->pool, ring->places[i].desc);
        }
        UCT_HA_STATS_ADD(rx_bytes, -bytes(road->lanes, ring->count));
        free(ring->places);
    }
    ring->count  = 0;
    ring->places = NULL;
}

void uct_ha_ring_return(struct uct_ha_lane *lane)
{
    struct uct_ha_ring *ring = &lane->left;

    for (uint32_t i = 0; i < ring->count; i++) {
        uct_ha_desc_return(&lane->lanes->pool, ring->places[i].desc);
    }
    UCT_HA_STATS_ADD(rx_bytes, -bytes(lane->lanes, ring->count));
    free(ring->places);
    ring->count  = 0;
    ring->places = NULL;
}
