/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/lane.h"

#include "base/now.h"
#include "base/random.h"
#include "core/ha_psn.h"
#include "lane/fence.h"
#include "lane/ledger.h"
#include "lane/look.h"
#include "lane/ring.h"
#include "lane/number.h"
#include "lane/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_NS   10000000ull /* a device that was told to flush has done so by then */
#define REAP_EVERY 5000000ull  /* ns */

#define BUILDS      3   /* others may take what was made for a lane; so often it is made again */
#define BUILDS_MOST 100 /* a number may rest for a while; a rail that takes no buffers at all does not get better */

/* Logs full of sends that a lane may have under way: every operation, each with a mark
 * where the peer wants them. */
static unsigned logs_of(const struct uct_ha_road *road)
{
    return road->marks ? 2 : 1;
}

/* The drain marker has no place of its own (drivers would make twice as many of one more than a power of
 * two): it goes into that of a send that came back. */
static unsigned sends_of(const struct uct_ha_road *road)
{
    return road->lanes->log_len * logs_of(road);
}

/* Ids name a place in the table and how often it was used, so that a late
 * completion of a lane that is gone finds nothing. */
static int add_to_table(struct uct_ha_lanes *lanes, struct uct_ha_lane *lane)
{
    struct uct_ha_lane **table;
    uint32_t             len, i;

    for (uint32_t tries = 0; tries < lanes->table_len; tries++) {
        i = lanes->next_id++ & 0x0fffffffu;
        if (lanes->table[i & lanes->table_mask] == NULL) {
            lanes->table[i & lanes->table_mask] = lane;
            lane->id                            = i;
            return 0;
        }
    }
    len   = lanes->table_len == 0 ? 64 : 4 * lanes->table_len;
    table = calloc(len, sizeof(*table));
    if (table == NULL) {
        return -ENOMEM;
    }
    /* Doubling twice keeps old ids valid: id modulo the new length, a power of two like the old one,
     * is free for each of them, because ids differ. */
    for (i = 0; i < lanes->table_len; i++) {
        if (lanes->table[i] != NULL) {
            table[lanes->table[i]->id & (len - 1)] = lanes->table[i];
        }
    }
    free(lanes->table);
    lanes->table      = table;
    lanes->table_len  = len;
    lanes->table_mask = len - 1;
    return add_to_table(lanes, lane);
}

static void take_from_table(struct uct_ha_lane *lane)
{
    lane->lanes->table[lane->id & lane->lanes->table_mask] = NULL;
    if (lane->entered) {
        uct_ha_number_park_locked(lane);
    }
}

/* A limit that is reached says so once per interface; the endpoint ends when its
 * time is over, unless there is room by then. */
static void tell_limit(struct uct_ha_lanes *lanes, int slot, int status)
{
    const struct ha_rail_limits *limits = ha_rail_limits(lanes->rail[slot]);
    ucs_log_level_t              level  = lanes->limit_told ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR;

    lanes->limit_told = 1;
    if (status == -E2BIG) {
        ucs_log(level,
                "ha_rc [HA-328]: %s has no room for %u sends of one lane, each with a mark for a peer "
                "that proves by ledger; lower UCX_HA_RC_TX_QUEUE_LEN, or set "
                "UCX_HA_RC_PROOF=count there",
                ha_rail_name(lanes->rail[slot]), lanes->log_len);
    } else if (status == -ENOSPC) {
        ucs_log(level,
                "ha_rc [HA-329]: %s: no room in the completion queue for connection number %u "
                "(%u entries, device limit %u); lower UCX_HA_RC_RX_QUEUE_INIT, "
                "UCX_HA_RC_RX_MEM or UCX_HA_RC_TX_QUEUE_LEN",
                ha_rail_name(lanes->rail[slot]), lanes->room[slot].lanes + 1, lanes->room[slot].depth, limits->max_cqe);
    } else {
        ucs_log(level,
                "ha_rc [HA-330]: %s: no queue pair and %u receive buffers of %zu bytes for "
                "connection number %u: %s (device limit %u queue pairs); raise ulimit -l, or "
                "lower UCX_HA_RC_RX_QUEUE_INIT, UCX_HA_RC_SEG_SIZE or UCX_HA_RC_TX_QUEUE_LEN",
                ha_rail_name(lanes->rail[slot]), lanes->credits + UCT_HA_RX_RESERVE, lanes->config->seg_size,
                lanes->room[slot].lanes + 1, strerror(-status), limits->max_qp);
    }
}

/* ---- a lane is built: on the job thread ---- */

static int open_queue_pair(struct uct_ha_lane *lane)
{
    struct uct_ha_lanes *lanes = lane->lanes;
    struct ha_rc_caps    caps  = lane->caps;
    int                  status;

    status = ha_rc_create(lanes->rail[lane->slot], lane->room->cq, lane->shared != NULL ? lane->shared->srq : NULL,
                          lanes, &caps, &lane->rc);
    if (status == 0 && lane->marks && caps.max_inline < UCT_HA_LEDGER_MARK) {
        ha_rc_destroy(lane->rc);
        lane->rc = NULL;
        status   = -ENOTSUP;
    }
    return status;
}

static int build(struct uct_ha_lane *lane)
{
    int status;

    /* One that stays as deep as it was is not the end: sends share what there is. */
    lane->shallow = uct_ha_room_deepen(lane->room, lane->depth) != 0;
    status        = uct_ha_desc_stock(&lane->lanes->pool, lane->stock, &lane->stocked);
    if (status == 0 && lane->wants_ledger && lane->ledger.word == NULL) {
        status = uct_ha_ledger_init(&lane->ledger, lane->lanes->rail[lane->slot]);
    }
    if (status == 0 && lane->rc == NULL) {
        status = open_queue_pair(lane);
    }
    return status;
}

static void build_run(struct uct_ha_job *job)
{
    struct uct_ha_lane  *lane   = ucs_container_of(job, struct uct_ha_lane, job);
    struct uct_ha_lanes *lanes  = lane->lanes;
    int                  status = build(lane);

    pthread_mutex_lock(&lanes->wake.lock);
    lane->building = 0;
    lane->build    = status;
    if (lane->road != NULL && !lanes->leaving) {
        lanes->built(lane);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
}

/* ---- ... and in progress ---- */

/* Places in the queue for receives of its own. */
static unsigned places_of(const struct uct_ha_lane *lane, unsigned receives)
{
    return lane->shared != NULL ? 0 : receives;
}

static void expect_room(struct uct_ha_lane *lane)
{
    lane->coming      = lane->shared != NULL ? lane->stock : lane->road->rx_window + UCT_HA_RX_RESERVE;
    lane->coming_logs = logs_of(lane->road);
    uct_ha_room_expect(lane->room, lane->coming, lane->coming_logs);
}

static void post_build(struct uct_ha_lane *lane)
{
    lane->stock = uct_ha_ring_lacks(lane->road, lane->slot);
    expect_room(lane);
    lane->depth    = uct_ha_room_ask(lane->room);
    lane->shallow  = 0;
    lane->building = 1;
    lane->builds++;
    lane->job.owner = lane->lanes;
    lane->job.run   = build_run;
    uct_ha_job_post(UCT_HA_JOB_BUILD, lane->lanes->rail_no[lane->slot], &lane->job);
}

static struct uct_ha_lane *allocate(struct uct_ha_road *road, int slot, uint32_t gen)
{
    struct uct_ha_lanes *lanes = road->lanes;
    struct uct_ha_lane  *lane  = uct_ha_line_alloc(sizeof(*lane));

    if (lane == NULL || uct_ha_ring_hold_more(lane, road->rx_window + UCT_HA_RX_RESERVE) != 0) {
        free(lane);
        return NULL;
    }
    lane->lanes  = lanes;
    lane->road   = road;
    lane->room   = &lanes->room[slot];
    lane->shared = lanes->shared[slot].srq != NULL ? &lanes->shared[slot] : NULL;
    uct_ha_chain_init(&lane->own_chain);
    lane->chain        = lane->shared != NULL ? &lane->shared->chain : &lane->own_chain;
    lane->slot         = (uint8_t)slot;
    lane->gen          = gen;
    lane->born         = uct_ha_now();
    lane->proof        = lanes->proof[slot];
    lane->psn          = (uint32_t)uct_ha_random() & HA_PSN_MASK;
    lane->marks        = road->marks;
    lane->wants_ledger = lane->proof == HA_PROOF_LEDGER && road->ledger[slot].word == NULL;
    lane->caps         = (struct ha_rc_caps){
                .send_depth = sends_of(road),
                .recv_depth = lanes->rx_depth,
                .max_sge    = lanes->max_sge,
                .max_inline = ucs_max(lanes->max_inline, road->marks ? UCT_HA_LEDGER_MARK : 0),
    };
    return lane;
}

int uct_ha_lane_begin(struct uct_ha_road *road, int slot, uint32_t gen)
{
    struct uct_ha_lane *lane;

    if (sends_of(road) > ha_rail_limits(road->lanes->rail[slot])->max_qp_wr) {
        tell_limit(road->lanes, slot, -E2BIG);
        return -E2BIG;
    }
    lane = allocate(road, slot, gen);
    if (lane == NULL) {
        return -ENOMEM;
    }
    if (add_to_table(road->lanes, lane) != 0) {
        free(lane->held);
        free(lane);
        return -ENOMEM;
    }
    lane->send_tag    = (uint32_t)(uct_ha_wr_id(UCT_HA_WR_SEND, lane->id, 0) >> 32);
    lane->receive_tag = (uint32_t)(uct_ha_wr_id(UCT_HA_WR_RECV, lane->id, 0) >> 32);
    road->next[slot]  = lane;
    if (lane->shared == NULL) {
        (void)uct_ha_ring_fill(road, slot, &lane->stocked); /* what is at hand */
    }
    post_build(lane);
    return 0;
}

static int open_lane(struct uct_ha_lane *lane)
{
    struct uct_ha_road *road     = lane->road;
    int                 slot     = lane->slot;
    unsigned            receives = places_of(lane, road->ring[slot].count);
    int                 status   = uct_ha_room_add_lane(lane->room, receives, logs_of(road));

    if (status == 0) {
        status = uct_ha_ring_post(lane);
        if (status != 0) {
            uct_ha_room_undo_lane(lane->room, receives, logs_of(road));
        }
    }
    if (status == 0 && lane->wants_ledger) {
        road->ledger[slot] = lane->ledger;
        lane->ledger.word  = NULL;
    }
    return status;
}

/* Others were quicker to take the places, and there may be more. */
static int lacks_room(const struct uct_ha_lane *lane)
{
    unsigned receives = places_of(lane, lane->road->rx_window + UCT_HA_RX_RESERVE);

    return lane->builds < BUILDS && !uct_ha_room_fits(lane->room, receives) && uct_ha_room_may_grow(lane->room);
}

/* Receives that are shared find it by the number of its queue pair. */
static int enter(struct uct_ha_lane *lane)
{
    int status;

    if (lane->shared == NULL || lane->entered) {
        return 0;
    }
    uct_ha_desc_return_list(&lane->lanes->pool, lane->stocked); /* others had filled the queue meanwhile */
    lane->stocked = NULL;
    status        = uct_ha_number_enter_locked(lane);
    lane->entered = status == 0;
    return status;
}

/* It never comes to life. Nothing was received on it, and nothing will be. */
static void bury(struct uct_ha_lane *lane);

/* What its job was to do for the queue, and did. */
static void take_room(struct uct_ha_lane *lane, int shallow)
{
    if (lane->depth != 0) {
        uct_ha_room_deepened(lane->room, shallow ? 0 : lane->depth);
    }
    uct_ha_room_forget(lane->room, lane->coming, lane->coming_logs);
}

int uct_ha_lane_complete(struct uct_ha_road *road, int slot)
{
    struct uct_ha_lane *lane   = road->next[slot];
    int                 status = lane->build;

    if (lane->building) {
        return -EINPROGRESS;
    }
    take_room(lane, lane->shallow);
    if (status == 0) {
        status = uct_ha_ring_fill(road, slot, &lane->stocked);
    }
    if (status == 0) {
        status = enter(lane);
    }
    if (lane->build == 0 && lane->builds < BUILDS_MOST && (status == -EAGAIN || (status == 0 && lacks_room(lane)))) {
        post_build(lane); /* the window has grown, the room is gone, or its number rests */
        return -EINPROGRESS;
    }
    road->next[slot] = NULL;
    if (status == 0) {
        status = open_lane(lane);
    }
    if (status == 0) {
        road->lane[slot] = lane;
        return 0;
    }
    if (status == -ENOSPC || status == -ENOMEM) {
        tell_limit(lane->lanes, slot, status);
    }
    ucs_debug("ha_rc: cannot build a queue pair on %s: %s", ha_rail_name(lane->lanes->rail[slot]), strerror(-status));
    take_from_table(lane);
    lane->road = NULL;
    bury(lane);
    return status;
}

static void not_built(struct uct_ha_job *job)
{
    struct uct_ha_lane *lane = ucs_container_of(job, struct uct_ha_lane, job);

    lane->building = 0;
    lane->build    = -ECANCELED;
}

void uct_ha_lane_cancel(struct uct_ha_lanes *lanes)
{
    uct_ha_job_cancel(UCT_HA_JOB_BUILD, lanes, not_built);
}

void uct_ha_lane_park(struct uct_ha_road *road, int slot, uint64_t until)
{
    struct uct_ha_lane *lane = road->lane[slot];

    uct_ha_ring_drop_held(lane);
    if (!lane->fenced) {
        uct_ha_fence_begin_locked(lane);
    }
    if (lane->final) { /* nobody has said that the card has stopped writing to them */
        uct_ha_ring_leave(road, slot, lane);
    }
    uct_ha_look_stopping_locked(lane->lanes, -1);
    take_from_table(lane);
    lane->places = uct_ha_room_park(lane->room, lane->receives, road->sends[slot], logs_of(road));
    uct_ha_road_leave(road, slot);
    lane->road          = NULL;
    lane->park_until    = until;
    lane->parked        = lane->lanes->parked;
    lane->lanes->parked = lane;
}

/* Its job may still be at it. */
static void leave_next(struct uct_ha_road *road, int slot)
{
    struct uct_ha_lane *lane = road->next[slot];

    road->next[slot] = NULL;
    take_from_table(lane);
    take_room(lane, 1);      /* how deep its job makes the queue nobody will say, */
    lane->room->refused = 0; /* ... or that it did not */
    lane->road          = NULL;
    lane->parked        = lane->lanes->parked;
    lane->lanes->parked = lane;
}

void uct_ha_lane_leave(struct uct_ha_road *road)
{
    struct uct_ha_lane *lane;

    road->lanes->rx_grown -= road->rx_grown;
    for (int s = 0; s < HA_SLOTS; s++) {
        lane = road->lane[s];
        if (lane != NULL) {
            uct_ha_lane_park(road, s, uct_ha_now() + FLUSH_NS);
        }
        if (road->next[s] != NULL) {
            leave_next(road, s);
        }
        uct_ha_ring_leave(road, s, lane);
        uct_ha_ledger_leave(&road->ledger[s], road->lanes, s);
    }
}

static void destroy(struct uct_ha_job *job)
{
    struct uct_ha_lane *lane    = ucs_container_of(job, struct uct_ha_lane, job);
    struct uct_ha_room *room    = lane->room;
    unsigned            places  = lane->places;
    int                 entered = lane->entered;

    if (lane->rc != NULL) {
        ha_rc_destroy(lane->rc);
    }
    uct_ha_ledger_end(&lane->ledger);
    uct_ha_desc_return_list(&lane->lanes->pool, lane->stocked);
    uct_ha_ring_return(lane);
    free(lane->held);
    if (entered) {
        uct_ha_number_bury(lane); /* its number rests until the queue was seen empty */
    } else {
        free(lane);
    }
    uct_ha_room_later(room, places);
}

static void bury(struct uct_ha_lane *lane)
{
    lane->job.owner = lane->lanes;
    lane->job.run   = destroy;
    uct_ha_job_post(UCT_HA_JOB_DESTROY, lane->lanes->rail_no[lane->slot], &lane->job);
}

void uct_ha_lane_reap(struct uct_ha_lanes *lanes, uint64_t now)
{
    struct uct_ha_lane **link, *lane;

    if (now < lanes->reap_at) {
        return; /* thousands may be parked, and progress comes often */
    }
    lanes->reap_at = now < UINT64_MAX - REAP_EVERY ? now + REAP_EVERY : now;
    for (link = &lanes->parked; (lane = *link) != NULL;) {
        if (lane->busy || lane->building || lane->fencing || lane->asking || lane->park_until > now) {
            link = &lane->parked;
        } else {
            *link = lane->parked;
            bury(lane);
        }
    }
}

static int has_parked(const struct uct_ha_lanes *lanes, int slot)
{
    const struct uct_ha_lane *lane;

    for (lane = lanes->parked; lane != NULL && lane->slot != slot; lane = lane->parked) {
    }
    return lane != NULL;
}

static int owes_leave(const struct uct_ha_lanes *lanes, int slot)
{
    return lanes->slots == HA_SLOTS && lanes->left[slot] && !lanes->left[!slot] && !lanes->room[slot].lent;
}

void uct_ha_lane_leave_queues(struct uct_ha_lanes *lanes)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        if (owes_leave(lanes, s) && uct_ha_room_is_idle(&lanes->room[s]) && !has_parked(lanes, s)) {
            uct_ha_shared_leave(lanes, s);
            uct_ha_room_leave(&lanes->room[s], &lanes->room[!s], lanes, lanes->rail_no[s]);
        }
    }
}

int uct_ha_lane_owes_leave(const struct uct_ha_lanes *lanes)
{
    return owes_leave(lanes, 0) || owes_leave(lanes, 1);
}

void uct_ha_lane_rest(struct uct_ha_lanes *lanes)
{
    for (struct uct_ha_lane *lane = lanes->parked; lane != NULL; lane = lane->parked) {
        lane->busy = 0;
    }
    for (uint32_t i = 0; i < lanes->table_len; i++) {
        if (lanes->table[i] != NULL) {
            lanes->table[i]->busy = 0;
        }
    }
}

void uct_ha_lane_finish(struct uct_ha_lanes *lanes)
{
    uct_ha_fence_cancel(lanes);
    uct_ha_shared_cancel(lanes);
    pthread_mutex_lock(&lanes->wake.lock);
    uct_ha_lane_reap(lanes, UINT64_MAX);
    pthread_mutex_unlock(&lanes->wake.lock);
    uct_ha_job_cancel(UCT_HA_JOB_DESTROY, lanes, uct_ha_job_run);
}
