/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An interface comes to life: sizes that fit the devices, completion queues,
 * the control plane, the event descriptor; and all of that again in reverse.
 */

#include "uct/iface.h"

#include "ctl/ctl.h"
#include "lane/desc.h"
#include "base/job.h"
#include "ctl/opts.h"
#include "lane/proof.h"
#include "topo/ha_budget.h"
#include "topo/ha_depths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CQ_DEPTH_MIN 1024
#define ZCOPY_MAX    (1u << 30)

static void cleanup(struct uct_ha_iface *iface)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        if (iface->cq[s] != NULL) {
            ha_cq_destroy(iface->cq[s]);
        }
    }
    uct_ha_desc_cleanup(iface);
    if (iface->event_fd >= 0) {
        close(iface->event_fd);
    }
    free(iface->lanes);
}

/* Ask the device what it really gives, once, before anything depends on it. */
static ucs_status_t probe_caps(struct uct_ha_iface *iface, int slot)
{
    struct ha_rc_caps caps = {
        .send_depth = iface->log_len + 1, .recv_depth = iface->rx_depth,
        .max_sge = iface->max_sge, .max_inline = iface->max_inline,
    };
    struct ha_rc *rc;
    int           status;

    status = ha_rc_create(iface->rail[slot], iface->cq[slot], &caps, &rc);
    if (status != 0) {
        ucs_error("ha_rc: %s refuses a queue pair of %u sends and %u receives: %s; lower "
                  "UCX_HA_RC_TX_QUEUE_LEN or UCX_HA_RC_RX_QUEUE_LEN, or raise ulimit -l",
                  ha_rail_name(iface->rail[slot]), caps.send_depth, caps.recv_depth,
                  strerror(-status));
        return UCS_ERR_IO_ERROR;
    }
    ha_rc_destroy(rc);
    iface->max_inline = ucs_min(iface->max_inline, caps.max_inline);
    return UCS_OK;
}

static ucs_status_t derive_depths(struct uct_ha_iface *iface)
{
    const struct uct_ha_iface_config *config = &iface->config;
    struct ha_rail                   *least  = iface->rail[0];
    struct ha_depths                  depths;

    for (int s = 1; s < iface->slots; s++) {
        if (ha_rail_limits(iface->rail[s])->max_qp_wr < ha_rail_limits(least)->max_qp_wr) {
            least = iface->rail[s];
        }
    }
    if (ha_depths(config->tx_queue_len, config->rx_queue_len, config->rx_queue_init,
                  ha_rail_limits(least)->max_qp_wr, &depths) != 0) {
        ucs_error("ha_rc: queue pairs of %s hold %u requests (max_qp_wr), and %u are needed at least; leave "
                  "it out by UCX_HA_RC_RAILS", ha_rail_name(least), ha_rail_limits(least)->max_qp_wr,
                  HA_DEPTHS_WR_MIN);
        return UCS_ERR_UNSUPPORTED;
    }
    iface->log_len       = depths.sends;
    iface->credits       = depths.credits;
    iface->rx_window_max = depths.window;
    iface->rx_depth      = depths.recvs;
    return UCS_OK;
}

static void derive_sizes(struct uct_ha_iface *iface)
{
    const struct uct_ha_iface_config *config = &iface->config;

    iface->max_inline = ucs_min(config->max_inline, UCT_HA_INLINE_MAX);
    iface->max_sge    = ucs_min(config->max_sge, UCT_HA_IOV_MAX);
    iface->max_zcopy  = ZCOPY_MAX;
    for (int s = 0; s < iface->slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->rail[s]);

        iface->max_sge   = ucs_min(iface->max_sge, limits->max_sge);
        iface->max_zcopy = (uint32_t)ucs_min(iface->max_zcopy, limits->max_msg_size);
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
    ucs_log(level, "ha_rc: UCX_HA_RC_RTO=%gs is raised to %.2f s, twice what the hardware itself retries "
            "(UCX_HA_RC_TIMEOUT=%u, RETRY_COUNT=%u)", config->rto, rto, config->timeout, config->retry_count);
    config->rto     = rto;
    config->rto_max = ucs_max(config->rto_max, rto);
}

/* The hardware alone may retry for this long; the RTO has to be patient
 * enough not to mistake that for a dead rail. */
static void fit_rto(struct uct_ha_iface *iface)
{
    struct uct_ha_iface_config *config = &iface->config;
    uint64_t                    window = 0, ns;

    for (int s = 0; s < iface->slots; s++) {
        if (config->retry_count == 7 && ha_rail_limits(iface->rail[s])->retry7_forever) {
            ucs_warn("ha_rc: UCX_HA_RC_RETRY_COUNT=7 means for ever on %s; using 6",
                     ha_rail_name(iface->rail[s]));
            config->retry_count = 6;
        }
    }
    for (int s = 0; s < iface->slots; s++) {
        ns = ha_rail_limits(iface->rail[s])->mlx5 ?
             ha_window_mlx5(config->timeout, config->retry_count) :
             ha_window_nominal(config->timeout, config->retry_count);
        window = ucs_max(window, ns);
    }
    if (config->rto < 2e-9 * (double)window) {
        raise_rto(config, 2e-9 * (double)window);
    }
}

/* Atomics by the card: what it cannot do, or cannot prove, is done by messages
 * as without the knob. Towards each peer it is the peer's choice that counts. */
static void choose_atomics(struct uct_ha_iface *iface)
{
    const struct ha_rail_limits *first = ha_rail_limits(iface->rail[0]);

    if (iface->config.atomics != UCT_HA_ATOMICS_HW) {
        return;
    }
    for (int s = 0; s < iface->slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->rail[s]);

        if (limits->atomics == HA_ATOMICS_NONE || limits->max_rd_init == 0 ||
            limits->max_rd_resp == 0) {
            ucs_warn("ha_rc: UCX_HA_RC_ATOMICS=hw, but %s executes no atomics; using sw",
                     ha_rail_name(iface->rail[s]));
            return;
        }
        if (iface->proof[s] == HA_PROOF_COUNT) {
            ucs_warn("ha_rc: UCX_HA_RC_ATOMICS=hw needs a proof that covers them, and %s proves by "
                     "count; using sw", ha_rail_name(iface->rail[s]));
            return;
        }
        if (limits->atomics == HA_ATOMICS_CARD && limits->node_guid != first->node_guid) {
            ucs_diag("ha_rc: UCX_HA_RC_ATOMICS=hw: %s and %s are two cards; atomics that reach a "
                     "word through both are not atomic to each other",
                     ha_rail_name(iface->rail[0]), ha_rail_name(iface->rail[s]));
        }
    }
    iface->caps |= HA_CAP_ATOMIC_HW;
}

/* The text is UCX's and may go; it was checked with the rest of the configuration. */
static void take_zones(struct uct_ha_iface *iface)
{
    char error[8];

    (void)ha_zones_parse(iface->config.zones, &iface->zones, error, sizeof(error));
    iface->config.zones             = NULL;
    iface->match.allow_unknown_zone = iface->config.allow_unknown_zone;
    iface->match.prefer_ib          = iface->config.prefer_ib;
    iface->match.spread             = iface->config.spread;
}

static void choose_places(struct uct_ha_iface *iface)
{
    int second;

    iface->place[0] = iface->place[1] = UCT_HA_PLACE_ALONE;
    if (iface->slots == HA_SLOTS) {
        second = strcmp(ha_rail_name(iface->rail[0]), ha_rail_name(iface->rail[1])) > 0;
        iface->place[0] = (uint8_t)second;
        iface->place[1] = (uint8_t)!second;
    }
}

static ucs_status_t open_event_fd(struct uct_ha_iface *iface)
{
    struct epoll_event event = { .events = EPOLLIN };
    int                failed;

    iface->event_fd = epoll_create1(EPOLL_CLOEXEC);
    failed = iface->event_fd < 0 ||
             epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, iface->ctl.wake_fd, &event) != 0;
    for (int s = 0; s < iface->slots && !failed; s++) {
        failed = epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, ha_cq_fd(iface->cq[s]), &event) != 0;
    }
    if (failed) {
        ucs_error("ha_rc: cannot make an event descriptor: %s (ulimit -n too low?)",
                  strerror(errno));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

static ucs_status_t open_queues(struct uct_ha_iface *iface)
{
    ucs_status_t status = UCS_OK;
    int          error;

    for (int s = 0; s < iface->slots && status == UCS_OK; s++) {
        iface->cq_depth[s] = ucs_min(CQ_DEPTH_MIN, ha_rail_limits(iface->rail[s])->max_cqe);
        error = ha_cq_create(iface->rail[s], iface->cq_depth[s], 1, &iface->cq[s]);
        if (error != 0) {
            ucs_error("ha_rc: %s: cannot create a completion queue of %u: %s",
                      ha_rail_name(iface->rail[s]), iface->cq_depth[s], strerror(-error));
            return UCS_ERR_IO_ERROR;
        }
        status = probe_caps(iface, s);
    }
    return status;
}

ucs_status_t uct_ha_iface_setup(struct uct_ha_iface *iface)
{
    ucs_status_t status = derive_depths(iface);

    if (status != UCS_OK) {
        return status;
    }
    derive_sizes(iface);
    fit_rto(iface);
    uct_ha_opts_init(iface);
    choose_places(iface);
    take_zones(iface);
    if (uct_ha_job_open() != 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = open_queues(iface);
    if (status == UCS_OK) {
        status = uct_ha_proof_choose(iface);
        choose_atomics(iface);
    }
    if (status == UCS_OK) {
        status = uct_ha_ctl_open(iface);
        if (status == UCS_OK) {
            status = open_event_fd(iface);
        }
        if (status != UCS_OK) {
            uct_ha_ctl_close(iface);
        }
    }
    if (status != UCS_OK) {
        cleanup(iface);
        uct_ha_job_close();
    }
    return status;
}

void uct_ha_iface_teardown(struct uct_ha_iface *iface)
{
    uct_ha_ctl_close(iface);
    cleanup(iface);
    uct_ha_job_close();
}
