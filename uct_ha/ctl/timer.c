/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/timer.h"

#include "ctl/check.h"
#include "ctl/fall.h"
#include "ctl/prom.h"
#include "ctl/tcp.h"
#include "pair/conn.h"
#include "pair/lost.h"

#include <sys/timerfd.h>

uint64_t uct_ha_timer_due(const struct uct_ha_conn *conn)
{
    const struct uct_ha_lane *lane;
    uint64_t                  due = ha_pair_next_timer(&conn->pair);

    for (int s = 0; s < HA_SLOTS; s++) {
        lane = conn->road->lane[s];
        if (lane != NULL && lane->fenced) {
            due = ucs_min(due, uct_ha_check_settle_due(lane));
            due = ucs_min(due, uct_ha_lost_due(lane));
        }
    }
    return due;
}

static uint64_t next_due(struct uct_ha_ctl *ctl)
{
    struct uct_ha_conn *touched;
    struct uct_ha_due  *conn;
    uint64_t            due = ucs_min(uct_ha_prom_due(), uct_ha_fall_due(ctl));

    while ((conn = uct_ha_due_next_touched(&ctl->pairs->dues)) != NULL) {
        touched = ucs_container_of(conn, struct uct_ha_conn, due);
        uct_ha_awake_now(&touched->awake);
        uct_ha_due_set(conn, uct_ha_timer_due(touched));
    }
    if (ctl->tcp != NULL) {
        due = ucs_min(due, uct_ha_tcp_due(ctl->tcp));
    }
    if (ucs_list_is_empty(&ctl->pairs->peers)) {
        return due; /* nobody to watch */
    }
    conn = uct_ha_due_first(&ctl->pairs->dues);
    due  = ucs_min(due, conn == NULL ? ctl->check_at : ucs_min(conn->when, ctl->check_at));
    return ctl->pairs->heartbeat != 0 ? ucs_min(due, ctl->heartbeat_at) : due;
}

void uct_ha_timer_set_locked(struct uct_ha_ctl *ctl)
{
    uint64_t          due  = next_due(ctl);
    struct itimerspec spec = {.it_interval = {0, 0}};

    if (due == ctl->timer_at || ctl->timer_fd < 0) {
        return;
    }
    ctl->timer_at = due;
    if (due != UINT64_MAX) {
        due                   = due == 0 ? 1 : due; /* 0 would disarm */
        spec.it_value.tv_sec  = (time_t)(due / 1000000000ull);
        spec.it_value.tv_nsec = (long)(due % 1000000000ull);
    }
    (void)timerfd_settime(ctl->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}
