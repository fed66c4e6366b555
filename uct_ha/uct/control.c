/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/control.h"

#include "base/now.h"
#include "ctl/flush.h"
#include "data/amo.h"
#include "data/end.h"
#include "data/resume.h"
#include "data/retire.h"
#include "data/rx.h"
#include "data/tx.h"
#include "lane/lane.h"
#include "lane/number.h"
#include "lane/repost.h"
#include "pair/attend.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/lost.h"
#include "pair/outage.h"
#include "uct/accept.h"
#include "uct/poll.h"

#define GONE_POLLS      64 /* bounded: others may keep the queues busy */
#define RECLAIM_POLLS   64
#define DECLARE_POLLS   1024
#define ATTENTION_BATCH 64 /* connections served per progress call */

/* Places of destroyed lanes are free once the queue is empty. Polling may deliver messages. */
static void reclaim(struct uct_ha_iface *iface, int slot)
{
    struct uct_ha_room *room  = &iface->lanes.room[slot];
    unsigned            freed = uct_ha_room_take_freed(room);
    struct uct_ha_lane *graves;

    if (freed == 0 && __atomic_load_n(&iface->lanes.shared[slot].graves, __ATOMIC_ACQUIRE) == NULL) {
        return;
    }
    graves = uct_ha_number_take_graves(&iface->lanes, slot);
    for (int i = 0; i < RECLAIM_POLLS; i++) {
        if (uct_ha_poll_slot(iface, slot) == 0) {
            pthread_mutex_lock(&iface->lanes.wake.lock);
            uct_ha_room_release(room, freed);
            pthread_mutex_unlock(&iface->lanes.wake.lock);
            uct_ha_number_forget(&iface->lanes, slot, graves);
            uct_ha_shared_mark(&iface->lanes.shared[slot]);
            return;
        }
    }
    uct_ha_room_put_back(room, freed);
    uct_ha_number_put_back(graves);
}

/* Nothing more will come for it, when the peer saw its last messages succeed: they are in
 * the queues. */
static void destroy(struct uct_ha_iface *iface, struct uct_ha_flow *flow)
{
    for (int i = 0; i < GONE_POLLS && uct_ha_poll(iface) > 0; i++) {
    }
    pthread_mutex_lock(&iface->lanes.wake.lock);
    if (!flow->is_held) {
        uct_ha_flow_destroy(flow);
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
}

/* What a card does not say is declared behind a look into its queue that found it empty. */
static void declare(struct uct_ha_iface *iface, struct uct_ha_conn *conn)
{
    int empty[HA_SLOTS] = {0};

    for (int s = 0; s < iface->lanes.slots; s++) {
        for (int i = 0; i < DECLARE_POLLS && !empty[s]; i++) {
            empty[s] = uct_ha_poll_slot(iface, s) == 0;
        }
    }
    uct_ha_lost_declare(conn, empty);
    uct_ha_flow_turn(uct_ha_flow_of(conn->road)); /* from here on nothing is taken of it */
}

/* Outside the lock: everything that may call the user. */
static void after(struct uct_ha_iface *iface, struct uct_ha_flow *flow, unsigned todo, ucs_status_t status)
{
    if (todo & UCT_HA_TODO_DECLARE) {
        declare(iface, flow->road.conn);
    }
    if (todo & UCT_HA_TODO_REJECT) {
        uct_ha_tx_rejected(flow);
    }
    if (todo & UCT_HA_TODO_FAIL) {
        uct_ha_end_fail(flow, status);
    }
    if (todo & UCT_HA_TODO_REPORT) {
        uct_ha_end_report(flow);
    }
    uct_ha_rx_resume(flow);
    uct_ha_tx_retire(flow);
    if (!ha_log_no_backlog(&flow->tx.log) || flow->credit_due || uct_ha_amo_owes(flow)) {
        uct_ha_tx_backlog(flow);
        uct_ha_resume(flow);
    }
    if (todo & UCT_HA_TODO_TAIL) {
        uct_ha_tx_tail(flow);
    }
    uct_ha_outage_end(flow->road.conn, flow->tx_slot);
    if (todo & UCT_HA_TODO_GONE) {
        destroy(iface, flow);
    }
}

static int is_idle(const struct uct_ha_flow *flow)
{
    return uct_ha_flow_atomics(flow) == 0 && (flow->tx.dead || !uct_ha_amo_owes(flow));
}

static void attend(struct uct_ha_iface *iface, struct uct_ha_conn *conn)
{
    struct uct_ha_flow *flow = uct_ha_flow_of(conn->road);
    ucs_status_t        status;
    unsigned            todo;

    uct_ha_attend_locked(conn, is_idle(flow));
    uct_ha_flow_refresh_locked(flow);
    todo       = conn->todo;
    status     = conn->status;
    conn->todo = 0;
    uct_ha_flush_locked(&iface->ctl);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    after(iface, flow, todo, status);
    pthread_mutex_lock(&iface->lanes.wake.lock);
}

unsigned uct_ha_control(struct uct_ha_iface *iface)
{
    struct uct_ha_wake *wake   = &iface->lanes.wake;
    unsigned            served = 0;
    struct uct_ha_conn *conn;

    for (int s = 0; s < iface->lanes.slots; s++) {
        reclaim(iface, s);
    }
    pthread_mutex_lock(&wake->lock);
    __atomic_store_n(&wake->pending, 0, __ATOMIC_RELEASE);
    uct_ha_accept_all_locked(iface);
    uct_ha_lane_reap(&iface->lanes, uct_ha_now());
    uct_ha_lane_leave_queues(&iface->lanes);
    while (served < ATTENTION_BATCH && (conn = uct_ha_attention_next_locked(&iface->pairs)) != NULL) {
        attend(iface, conn);
        served++;
    }
    if (!ucs_list_is_empty(&iface->pairs.attention)) {
        uct_ha_wake_progress(wake);
    }
    uct_ha_flush_locked(&iface->ctl);
    pthread_mutex_unlock(&wake->lock);
    return served;
}
