/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/iface_setup.h"

#include "base/job.h"
#include "base/random.h"
#include "ctl/open.h"
#include "ctl/terms.h"
#include "lane/lane.h"
#include "lane/shared.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "topo/ha_budget.h"
#include "topo/ha_depths.h"
#include "uct/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ZCOPY_MAX  (1u << 30)
#define TELL_EVERY 64 /* operations that nobody waits for make one completion */

/* Ask the device what it really gives, once, before anything depends on it. */
static ucs_status_t probe_caps(struct uct_ha_iface *iface, int slot)
{
    struct ha_rc_caps caps = {
        .send_depth = iface->lanes.log_len,
        .recv_depth = iface->lanes.rx_depth,
        .max_sge    = iface->lanes.max_sge,
        .max_inline = iface->lanes.max_inline,
    };
    struct ha_rc *rc;
    int           status;

    status = ha_rc_create(iface->lanes.rail[slot], iface->lanes.room[slot].cq, NULL, NULL, &caps, &rc);
    if (status != 0) {
        ucs_error("ha_rc [HA-311]: %s refuses a queue pair of %u sends and %u receives: %s; lower "
                  "UCX_HA_RC_TX_QUEUE_LEN or UCX_HA_RC_RX_QUEUE_LEN, or raise ulimit -l",
                  ha_rail_name(iface->lanes.rail[slot]), caps.send_depth, caps.recv_depth, strerror(-status));
        return UCS_ERR_IO_ERROR;
    }
    ha_rc_destroy(rc);
    iface->lanes.max_inline = ucs_min(iface->lanes.max_inline, caps.max_inline);
    return UCS_OK;
}

static ucs_status_t derive_depths(struct uct_ha_iface *iface)
{
    const struct uct_ha_iface_config *config = &iface->config;
    struct ha_rail                   *least  = iface->lanes.rail[0];
    struct ha_depths                  depths;

    for (int s = 1; s < iface->lanes.slots; s++) {
        if (ha_rail_limits(iface->lanes.rail[s])->max_qp_wr < ha_rail_limits(least)->max_qp_wr) {
            least = iface->lanes.rail[s];
        }
    }
    if (ha_depths(config->tx_queue_len, config->rx_queue_len, config->rx_queue_init, ha_rail_limits(least)->max_qp_wr,
                  &depths) != 0) {
        ucs_error("ha_rc [HA-312]: queue pairs of %s hold %u requests (max_qp_wr), and %u are needed at least; leave "
                  "it out by UCX_HA_RC_RAILS",
                  ha_rail_name(least), ha_rail_limits(least)->max_qp_wr, HA_DEPTHS_WR_MIN);
        return UCS_ERR_UNSUPPORTED;
    }
    iface->lanes.log_len       = depths.sends;
    iface->lanes.tell_every    = ucs_min(TELL_EVERY, depths.sends / 4); /* a full log, or queue, always hears */
    iface->lanes.credits       = depths.credits;
    iface->lanes.rx_window_max = depths.window;
    iface->lanes.rx_depth      = depths.recvs;
    return UCS_OK;
}

static void derive_sizes(struct uct_ha_iface *iface)
{
    const struct uct_ha_iface_config *config = &iface->config;

    iface->lanes.max_inline = ucs_min(config->max_inline, UCT_HA_INLINE_MAX);
    iface->lanes.max_sge    = ucs_min(config->max_sge, UCT_HA_IOV_MAX);
    iface->lanes.max_zcopy  = ZCOPY_MAX;
    for (int s = 0; s < iface->lanes.slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->lanes.rail[s]);

        iface->lanes.max_sge   = ucs_min(iface->lanes.max_sge, limits->max_sge);
        iface->lanes.max_zcopy = (uint32_t)ucs_min(iface->lanes.max_zcopy, limits->max_msg_size);
    }
}

/* Said once, however many devices and workers there are, and only to who asked
 * for something that cannot be. */
static void raise_rto(struct uct_ha_iface_config *config, double rto)
{
    static int      told;
    ucs_log_level_t level = UCS_LOG_LEVEL_DEBUG;

    if (config->rto != UCT_HA_RTO_DEFAULT && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        level = UCS_LOG_LEVEL_WARN;
    }
    ucs_log(level,
            "ha_rc [HA-313]: UCX_HA_RC_RTO=%gs is raised to %.2f s, twice what the hardware itself retries "
            "(UCX_HA_RC_TIMEOUT=%u, RETRY_COUNT=%u)",
            config->rto, rto, config->timeout, config->retry_count);
    config->rto     = rto;
    config->rto_max = ucs_max(config->rto_max, rto);
}

/* The hardware alone may retry for this long; the RTO has to be patient
 * enough not to mistake that for a dead rail. */
static void fit_rto(struct uct_ha_iface *iface)
{
    struct uct_ha_iface_config *config = &iface->config;
    uint64_t                    window = 0, ns;

    for (int s = 0; s < iface->lanes.slots; s++) {
        if (config->retry_count == 7 && ha_rail_limits(iface->lanes.rail[s])->retry7_forever) {
            ucs_warn("ha_rc [HA-314]: UCX_HA_RC_RETRY_COUNT=7 means for ever on %s; using 6",
                     ha_rail_name(iface->lanes.rail[s]));
            config->retry_count = 6;
        }
    }
    for (int s = 0; s < iface->lanes.slots; s++) {
        ns     = ha_rail_limits(iface->lanes.rail[s])->mlx5 ? ha_window_mlx5(config->timeout, config->retry_count)
                                                            : ha_window_nominal(config->timeout, config->retry_count);
        window = ucs_max(window, ns);
    }
    if (config->rto < 2e-9 * (double)window) {
        raise_rto(config, 2e-9 * (double)window);
    }
}

/* The text is UCX's and may go; it was checked with the rest of the configuration. */
static void take_zones(struct uct_ha_iface *iface)
{
    char error[8];

    (void)ha_zones_parse(iface->config.zones, &iface->pairs.zones, error, sizeof(error));
    iface->config.zones                   = NULL;
    iface->pairs.match.allow_unknown_zone = iface->config.allow_unknown_zone;
    iface->pairs.match.prefer_ib          = iface->config.prefer_ib;
    iface->pairs.match.spread             = iface->config.spread;
}

static void choose_places(struct uct_ha_iface *iface)
{
    int second;

    iface->pairs.place[0] = iface->pairs.place[1] = UCT_HA_PLACE_ALONE;
    if (iface->lanes.slots == HA_SLOTS) {
        second                = strcmp(ha_rail_name(iface->lanes.rail[0]), ha_rail_name(iface->lanes.rail[1])) > 0;
        iface->pairs.place[0] = (uint8_t)second;
        iface->pairs.place[1] = (uint8_t)!second;
    }
}

static ucs_status_t open_event_fd(struct uct_ha_iface *iface)
{
    struct epoll_event event = {.events = EPOLLIN};
    int                failed;

    iface->event_fd = epoll_create1(EPOLL_CLOEXEC);
    failed = iface->event_fd < 0 || epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, iface->lanes.wake.fd, &event) != 0;
    for (int s = 0; s < iface->lanes.slots && !failed; s++) {
        failed = epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, ha_cq_fd(iface->lanes.room[s].cq), &event) != 0;
    }
    if (failed) {
        ucs_error("ha_rc [HA-315]: cannot make an event descriptor: %s (ulimit -n too low?)", strerror(errno));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

static ucs_status_t open_queues(struct uct_ha_iface *iface)
{
    struct uct_ha_room *room;
    ucs_status_t        status = UCS_OK;
    int                 error;

    for (int s = 0; s < iface->lanes.slots && status == UCS_OK; s++) {
        room          = &iface->lanes.room[s];
        room->rail    = iface->lanes.rail[s];
        room->wake    = &iface->lanes.wake;
        room->log_len = iface->lanes.log_len;
        error         = uct_ha_room_open(room);
        if (error != 0) {
            ucs_error("ha_rc [HA-316]: %s: cannot create a completion queue of %u: %s", ha_rail_name(room->rail),
                      room->depth, strerror(-error));
            return UCS_ERR_IO_ERROR;
        }
        status = probe_caps(iface, s);
    }
    return status;
}

static void close_queues(struct uct_ha_iface *iface)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        uct_ha_shared_close(&iface->lanes, s);
        uct_ha_room_close(&iface->lanes.room[s]);
    }
    uct_ha_desc_cleanup(&iface->lanes.pool);
    if (iface->event_fd >= 0) {
        close(iface->event_fd);
    }
    free(iface->lanes.table);
}

static void close_control(struct uct_ha_iface *iface)
{
    struct uct_ha_conn *conn, *next;

    uct_ha_ctl_stop(&iface->ctl);
    uct_ha_failover_cancel_jobs(&iface->pairs);
    pthread_mutex_lock(&iface->lanes.wake.lock);
    ucs_list_for_each_safe (conn, next, &iface->pairs.conns, list) {
        uct_ha_flow_destroy(uct_ha_flow_of(conn->road));
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    uct_ha_lane_finish(&iface->lanes);
    uct_ha_ctl_close(&iface->ctl);
    uct_ha_pairs_close(&iface->pairs);
    uct_ha_wake_close(&iface->lanes.wake);
}

static ucs_status_t open_control(struct uct_ha_iface *iface)
{
    ucs_status_t status;

    if (uct_ha_wake_open(&iface->lanes.wake) != 0) {
        uct_ha_wake_close(&iface->lanes.wake);
        return UCS_ERR_NO_MEMORY;
    }
    iface->lanes.stopped  = uct_ha_fact_stopped_locked;
    iface->lanes.answered = uct_ha_fact_answered_locked;
    iface->lanes.built    = uct_ha_fact_built_locked;
    uct_ha_pairs_open(&iface->pairs);
    status = uct_ha_ctl_open(&iface->ctl);
    if (status == UCS_OK) {
        status = open_event_fd(iface);
    }
    if (status != UCS_OK) {
        close_control(iface);
    }
    return status;
}

static struct ha_secret new_secret(void)
{
    struct ha_secret secret;
    uint64_t         half;

    for (size_t at = 0; at < sizeof(secret.byte); at += sizeof(half)) {
        half = uct_ha_random();
        memcpy(secret.byte + at, &half, sizeof(half));
    }
    return secret;
}

/* Who knows whom: each room its own part, and those below. */
static void introduce(struct uct_ha_iface *iface, const struct uct_ha_duo *duo, size_t headroom)
{
    struct uct_ha_lanes *lanes = &iface->lanes;

    lanes->config = &iface->config;
    lanes->slots  = duo->rail[1] != NULL ? HA_SLOTS : 1;
    lanes->alone  = duo->alone;
    uct_ha_desc_init(&lanes->pool, duo, iface->config.seg_size, headroom, iface->config.rx_mem);
    for (int s = 0; s < HA_SLOTS; s++) {
        lanes->rail[s]    = duo->rail[s];
        lanes->rail_no[s] = duo->rail_no[s];
    }
    iface->pairs.config = &iface->config;
    iface->pairs.lanes  = lanes;
    iface->pairs.secret = new_secret();
    iface->pairs.cookie = ha_seal_name(&iface->pairs.secret);
    iface->ctl.pairs    = &iface->pairs;
    iface->ctl.lanes    = lanes;
    iface->flows.base   = &iface->super;
    iface->flows.lanes  = lanes;
    uct_ha_flows_init(&iface->flows, iface->config.get_bytes);
}

ucs_status_t uct_ha_iface_setup(struct uct_ha_iface *iface, const struct uct_ha_duo *duo, size_t headroom)
{
    ucs_status_t status;

    introduce(iface, duo, headroom);
    if (iface->config.require && iface->lanes.slots < HA_SLOTS) {
        ucs_error("ha_rc [HA-331]: UCX_HA_RC_REQUIRE=y, and %s has no standby (ha_info shows why): it is not used",
                  ha_rail_name(duo->rail[0]));
        return UCS_ERR_UNSUPPORTED;
    }
    status = derive_depths(iface);
    if (status != UCS_OK) {
        return status;
    }
    derive_sizes(iface);
    fit_rto(iface);
    uct_ha_terms_init(&iface->pairs);
    choose_places(iface);
    take_zones(iface);
    if (uct_ha_job_open() != 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = open_queues(iface);
    if (status == UCS_OK) {
        status = uct_ha_choose(iface);
    }
    for (int s = 0; s < iface->lanes.slots && status == UCS_OK; s++) {
        uct_ha_shared_open(&iface->lanes, s); /* now that it is known what the rails prove */
    }
    if (status == UCS_OK) {
        iface->flows.card_atomics = (iface->pairs.caps & HA_CAP_ATOMIC_HW) != 0;
        status                    = open_control(iface);
    }
    if (status != UCS_OK) {
        close_queues(iface);
        uct_ha_job_close();
    }
    return status;
}

void uct_ha_iface_teardown(struct uct_ha_iface *iface)
{
    close_control(iface);
    uct_ha_flows_cleanup(&iface->flows);
    close_queues(iface);
    uct_ha_job_close();
}
