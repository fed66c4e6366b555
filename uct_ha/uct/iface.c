/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/iface.h"

#include "data/amo.h"
#include "ctl/ctl.h"
#include "uct/ep.h"
#include "ctl/opts.h"
#include "base/random.h"
#include "lane/room.h"
#include "data/rx.h"
#include "base/stats.h"
#include "topo/ha_budget.h"
#include "topo/ha_near.h"
#include "pair/tell.h"
#include "data/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define ATOMIC_POST_OPS  (UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) | \
                          UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR))
#define ATOMIC_FETCH_OPS (ATOMIC_POST_OPS | UCS_BIT(UCT_ATOMIC_OP_SWAP) | \
                          UCS_BIT(UCT_ATOMIC_OP_CSWAP))

uint64_t uct_ha_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

typedef struct uct_ha_iface uct_ha_iface_t; /* UCX's class macros want one word */

/* ---- addresses -------------------------------------------------------------------- */

struct uct_ha_rail_where uct_ha_iface_where(const struct uct_ha_iface *iface, int slot)
{
    struct uct_ha_rail_where where;
    char                     netdev[HA_NETDEV_MAX];

    where.addr  = ha_rail_addr(iface->rail[slot]);
    where.place = iface->place[slot];
    where.zone  = 0;
    if (iface->zones.num > 0) { /* a subnet follows the address: asked anew each time */
        ha_rail_netdev(iface->rail[slot], netdev);
        where.zone = ha_zone_hash(ha_zone_name(&iface->zones, ha_rail_name(iface->rail[slot]),
                                               netdev, where.addr.gid));
    }
    return where;
}

static ucs_status_t get_device_address(uct_iface_h tl_iface, uct_device_addr_t *addr)
{
    struct uct_ha_iface     *iface = uct_ha_iface(tl_iface);
    struct uct_ha_rail_where where = uct_ha_iface_where(iface, 0);

    uct_ha_addr_pack_rail(&where, (void *)addr);
    return UCS_OK;
}

static ucs_status_t get_address(uct_iface_h tl_iface, uct_iface_addr_t *addr)
{
    struct uct_ha_iface      *iface = uct_ha_iface(tl_iface);
    struct uct_ha_iface_where where = {
        .cookie = iface->cookie, .slots = (unsigned)iface->slots, .credits = iface->credits,
        .caps = iface->caps,
    };

    for (int s = 0; s < iface->slots; s++) {
        where.ud_qpn[s] = iface->ctl.ud[s] == NULL ? 0 : ha_ud_qpn(iface->ctl.ud[s]);
    }
    if (iface->ctl.tcp != NULL) {
        struct uct_ha_tcp_addr tcp = uct_ha_tcp_addr(iface->ctl.tcp);

        memcpy(where.tcp_ip, tcp.ip, sizeof(where.tcp_ip));
        where.tcp_port = tcp.port;
    }
    if (iface->slots == HA_SLOTS) {
        where.standby = uct_ha_iface_where(iface, 1);
    }
    uct_ha_addr_pack_iface(&where, (void *)addr);
    return UCS_OK;
}

static int is_reachable(const uct_iface_h tl_iface, const uct_device_addr_t *dev_addr,
                        const uct_iface_addr_t *iface_addr)
{
    const struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    struct uct_ha_rail_where   own   = uct_ha_iface_where(iface, 0), peer;
    struct uct_ha_iface_where  where;
    enum ha_match              match;

    if (uct_ha_addr_unpack_rail((const void *)dev_addr, &peer) != 0) {
        uct_ha_opts_tell_version("the address", ((const struct uct_ha_packed_rail *)(const void *)dev_addr)->version,
                                 UCT_HA_ADDR_VERSION);
        return 0;
    }
    if (iface_addr != NULL &&
        (uct_ha_addr_unpack_iface((const void *)iface_addr, &where) != 0 ||
         where.cookie == iface->cookie)) {
        return 0; /* another version, or ourselves: that is what "self" is for */
    }
    match = uct_ha_addr_verdict(&own, &peer, &iface->match);
    if (match >= HA_MATCH_NO) {
        uct_ha_tell_unreachable(iface, &own, &peer, match);
    }
    return match < HA_MATCH_NO;
}

/* ---- attributes --------------------------------------------------------------------- */

#define NUMA_LATENCY 20e-9 /* of each unit of distance */

/* As UCX's own `rc` reckons it: see verbs/ha_link.h. */
static void query_speed(struct uct_ha_iface *iface, uct_iface_attr_t *attr)
{
    const struct ha_rail_limits *limits = ha_rail_limits(iface->rail[0]);
    struct ha_rail_addr          addr   = ha_rail_addr(iface->rail[0]);
    double                       packet = (double)ucs_min(addr.mtu, iface->config.seg_size);
    double                       rate   = limits->bandwidth * packet / (packet + limits->packet_extra);
    int                          far    = 0;
    struct ha_near_cpus          cpus;

    if (limits->numa_node >= 0 && ha_near_of_thread(&cpus) == 0) {
        far = ha_near_distance("/sys", limits->numa_node, &cpus) - HA_NEAR_LOCAL;
    }
    attr->bandwidth.shared    = ucs_min(rate, limits->slot_rate);
    attr->bandwidth.dedicated = 0;
    attr->latency             = ucs_linear_func_make(limits->latency + far * NUMA_LATENCY, 1e-9);
    attr->overhead            = 75e-9;
    attr->priority            = ha_match_priority(&iface->match, addr.link_layer, iface->cookie);
}

/* What the devices carry, unless the user wants less. Memory is not looked at here: how much a
 * process may lock says nothing about how much it has. */
static size_t max_eps(const struct uct_ha_iface *iface, size_t wanted)
{
    const struct uct_ha_iface_config *config = &iface->config;
    struct ha_budget_need             need   = ha_budget_need(config->tx_queue_len, config->rx_queue_len,
                                                              config->rx_queue_init, config->seg_size,
                                                              (unsigned)iface->slots);

    for (int s = 0; s < iface->slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->rail[s]);
        struct ha_budget_device      device = {
            .max_qp = limits->max_qp, .max_qp_wr = limits->max_qp_wr, .max_cqe = limits->max_cqe,
            .max_mr = HA_BUDGET_UNLIMITED, .memlock = HA_BUDGET_UNLIMITED,
        };

        wanted = ucs_min(wanted, ha_budget(&device, &need).connections);
    }
    return ucs_max(wanted, 1);
}

static ucs_status_t query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    struct ha_rail_addr  addr  = ha_rail_addr(iface->rail[0]);
    size_t               seg   = iface->config.seg_size;

    uct_base_iface_query(&iface->super, attr);
    attr->iface_addr_len  = sizeof(struct uct_ha_packed_iface);
    attr->device_addr_len = sizeof(struct uct_ha_packed_rail);
    attr->ep_addr_len     = 0;
    attr->cap.flags = UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
                      UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                      UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF | UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD;

    attr->cap.am.max_bcopy       = seg;
    attr->cap.am.max_zcopy       = seg;
    attr->cap.am.max_hdr         = seg;
    attr->cap.am.max_iov         = iface->max_sge - 1;
    attr->cap.am.opt_zcopy_align = 512;
    attr->cap.am.align_mtu       = addr.mtu;

    attr->cap.put.max_bcopy       = seg;
    attr->cap.put.max_zcopy       = iface->max_zcopy;
    attr->cap.put.max_iov         = iface->max_sge;
    attr->cap.put.opt_zcopy_align = 512;
    attr->cap.put.align_mtu       = addr.mtu;

    attr->cap.get.max_bcopy       = attr->cap.put.max_bcopy;
    attr->cap.get.max_zcopy       = attr->cap.put.max_zcopy;
    attr->cap.get.max_iov         = attr->cap.put.max_iov;
    attr->cap.get.opt_zcopy_align = attr->cap.put.opt_zcopy_align;
    attr->cap.get.align_mtu       = attr->cap.put.align_mtu;

    if (iface->max_inline >= sizeof(uint64_t)) {
        attr->cap.flags        |= UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_PUT_SHORT;
        attr->cap.am.max_short  = iface->max_inline;
        attr->cap.put.max_short = iface->max_inline;
    }
    if (iface->caps & HA_CAP_ATOMIC_HW) {
        attr->cap.flags             |= UCT_IFACE_FLAG_ATOMIC_DEVICE;
        attr->cap.atomic64.op_flags  = UCS_BIT(UCT_ATOMIC_OP_ADD);
        attr->cap.atomic64.fop_flags = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    } else if (iface->max_inline >= UCT_HA_AMO_INLINE) {
        attr->cap.flags              |= UCT_IFACE_FLAG_ATOMIC_CPU;
        attr->cap.atomic32.op_flags   = ATOMIC_POST_OPS;
        attr->cap.atomic32.fop_flags  = ATOMIC_FETCH_OPS;
        attr->cap.atomic64            = attr->cap.atomic32;
    }
    attr->max_num_eps = max_eps(iface, attr->max_num_eps);
    query_speed(iface, attr);
    return UCS_OK;
}

/* ---- progress and events --------------------------------------------------------------- */

static inline void take_completion(struct uct_ha_iface *iface, const struct ha_wc *wc)
{
    struct uct_ha_lane *lane = uct_ha_lane_find(iface, (uint32_t)(wc->wr_id >> 32) & 0x0fffffffu);
    struct ha_event     event;

    if (ucs_unlikely(lane == NULL)) {
        return; /* of a lane that is gone */
    }
    switch (wc->wr_id >> 60) {
    case UCT_HA_WR_SEND:
        uct_ha_room_polled(lane, 1);
        uct_ha_tx_completion(lane, wc);
        break;
    case UCT_HA_WR_MARK: /* on success it stands for its operation, too */
        uct_ha_room_polled(lane, wc->status == HA_WC_OK ? 2 : 1);
        uct_ha_tx_completion(lane, wc);
        break;
    case UCT_HA_WR_RECV:
        uct_ha_rx_completion(lane, wc);
        break;
    default: /* the drain marker: everything before it has come back */
        memset(&event, 0, sizeof(event));
        event.kind    = HA_EV_DRAINED;
        event.slot    = lane->slot;
        event.gen     = lane->gen;
        lane->drained = 1;
        uct_ha_ctl_event(lane->conn, &event);
        break;
    }
}

unsigned uct_ha_iface_poll_slot(struct uct_ha_iface *iface, int slot)
{
    struct ha_wc wc[UCT_HA_POLL_BATCH];
    int          count;

    if (ucs_unlikely(iface->stashed & (1u << slot))) {
        iface->stashed &= (uint8_t)~(1u << slot);
        take_completion(iface, &iface->stash[slot]);
        return 1;
    }
    count = ha_cq_poll(iface->cq[slot], wc, UCT_HA_POLL_BATCH);
    for (int i = 0; i < count; i++) {
        take_completion(iface, &wc[i]);
    }
    return count > 0 ? (unsigned)count : 0;
}

unsigned uct_ha_iface_poll(struct uct_ha_iface *iface)
{
    unsigned count = 0;

    for (int s = 0; s < iface->slots; s++) {
        count += uct_ha_iface_poll_slot(iface, s);
    }
    return count;
}

static void resume_backlog(struct uct_ha_iface *iface)
{
    struct uct_ha_conn *conn, *next;

    ucs_list_for_each_safe(conn, next, &iface->backlog, backlog_link) {
        uct_ha_tx_resume(conn);
    }
}

unsigned uct_ha_iface_progress(uct_iface_h tl_iface)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    unsigned             count = 0;

    __atomic_store_n(&iface->polls, iface->polls + 1, __ATOMIC_RELAXED);
    count += uct_ha_iface_poll(iface);
    if (ucs_unlikely(__atomic_load_n(&iface->ctl.pending, __ATOMIC_RELAXED))) {
        count += uct_ha_ctl_progress(iface);
    }
    if (ucs_unlikely(!ucs_list_is_empty(&iface->backlog))) {
        resume_backlog(iface);
    }
    if (ucs_unlikely(!ucs_list_is_empty(&iface->pending))) {
        count += uct_ha_tx_dispatch(iface);
    }
    return count;
}

static ucs_status_t event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    *fd_p = uct_ha_iface(tl_iface)->event_fd;
    return UCS_OK;
}

/* After arming a queue must be looked at once more: what came before does not
 * signal. What is found is kept for progress. */
static int arm_slot(struct uct_ha_iface *iface, int slot)
{
    (void)ha_cq_drain_fd(iface->cq[slot]);
    (void)ha_cq_arm(iface->cq[slot]);
    if (!(iface->stashed & (1u << slot)) &&
        ha_cq_poll(iface->cq[slot], &iface->stash[slot], 1) == 1) {
        iface->stashed |= (uint8_t)(1u << slot);
    }
    return (iface->stashed & (1u << slot)) != 0;
}

static ucs_status_t event_arm(uct_iface_h tl_iface, unsigned events)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    uint64_t             count;
    int                  busy  = 0;

    (void)events;
    while (read(iface->ctl.wake_fd, &count, sizeof(count)) > 0) {
    }
    __atomic_store_n(&iface->ctl.armed, 1, __ATOMIC_SEQ_CST);
    for (int s = 0; s < iface->slots; s++) {
        busy |= arm_slot(iface, s);
    }
    if (busy || __atomic_load_n(&iface->ctl.pending, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&iface->ctl.armed, 0, __ATOMIC_RELAXED);
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}

static ucs_status_t flush(uct_iface_h tl_iface, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);

    (void)flags;
    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    return iface->outstanding == 0 ? UCS_OK : UCS_INPROGRESS;
}

static ucs_status_t fence(uct_iface_h tl_iface, unsigned flags)
{
    (void)flags;
    uct_ha_iface(tl_iface)->fence_seq++;
    return UCS_OK;
}

/* ---- life ----------------------------------------------------------------------------- */

static UCS_CLASS_CLEANUP_FUNC(uct_ha_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_ha_ctl_leave(self);
    uct_ha_iface_teardown(self);
}

static uct_iface_ops_t uct_ha_iface_ops;

static uct_iface_internal_ops_t uct_ha_iface_internal_ops;

static UCS_CLASS_INIT_FUNC(uct_ha_iface_t, uct_md_h tl_md, uct_worker_h worker,
                           const uct_iface_params_t *params, const uct_iface_config_t *tl_config)
{
    struct uct_ha_md *md = uct_ha_md(tl_md);
    ucs_status_t      status;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_ha_iface_ops, &uct_ha_iface_internal_ops,
                              tl_md, worker, params, tl_config);
    /* UCX hands out memory as malloc left it. */
    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    self->md       = md;
    self->config   = *ucs_derived_of(tl_config, struct uct_ha_iface_config);
    self->slots    = md->rail[1] != NULL ? HA_SLOTS : 1;
    self->cookie   = uct_ha_random();
    self->event_fd = -1;
    status         = uct_ha_iface_config_check(&self->config);
    if (status != UCS_OK) {
        return status;
    }
    ucs_list_head_init(&self->pending);
    ucs_list_head_init(&self->backlog);
    for (int s = 0; s < self->slots; s++) {
        self->rail[s] = md->rail[s];
    }
    memcpy(self->rail_no, md->rail_no, sizeof(self->rail_no));
    return uct_ha_iface_setup(self);
}

UCT_HA_CLASS_DEFINE(uct_ha_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_ha_iface_t, uct_iface_t, uct_md_h, uct_worker_h,
                                 const uct_iface_params_t *, const uct_iface_config_t *);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_ha_iface_t, uct_iface_t);

ucs_status_t uct_ha_iface_open(uct_md_h md, uct_worker_h worker,
                               const uct_iface_params_t *params,
                               const uct_iface_config_t *config, uct_iface_h *iface_p)
{
    return UCS_CLASS_NEW_FUNC_NAME(uct_ha_iface_t)(md, worker, params, config, iface_p);
}

static void vfs_refresh(uct_iface_h iface)
{
    uct_ha_stats_vfs(iface);
    uct_ha_opts_vfs(uct_ha_iface(iface));
}

static ucs_status_t ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    (void)ep;
    (void)attr;
    return UCS_ERR_UNSUPPORTED;
}

static uct_iface_internal_ops_t uct_ha_iface_internal_ops = {
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh   = vfs_refresh,
    .ep_query            = ep_query,
    .ep_invalidate       = uct_ha_ep_invalidate,
};

static uct_iface_ops_t uct_ha_iface_ops = {
    .ep_put_short             = uct_ha_ep_put_short,
    .ep_put_bcopy             = uct_ha_ep_put_bcopy,
    .ep_put_zcopy             = uct_ha_ep_put_zcopy,
    .ep_get_bcopy             = uct_ha_ep_get_bcopy,
    .ep_get_zcopy             = uct_ha_ep_get_zcopy,
    .ep_am_short              = uct_ha_ep_am_short,
    .ep_am_short_iov          = uct_ha_ep_am_short_iov,
    .ep_am_bcopy              = uct_ha_ep_am_bcopy,
    .ep_am_zcopy              = uct_ha_ep_am_zcopy,
    .ep_atomic_cswap64        = uct_ha_ep_atomic_cswap64,
    .ep_atomic_cswap32        = uct_ha_ep_atomic_cswap32,
    .ep_atomic32_post         = uct_ha_ep_atomic32_post,
    .ep_atomic64_post         = uct_ha_ep_atomic64_post,
    .ep_atomic32_fetch        = uct_ha_ep_atomic32_fetch,
    .ep_atomic64_fetch        = uct_ha_ep_atomic64_fetch,
    .ep_pending_add           = uct_ha_ep_pending_add,
    .ep_pending_purge         = uct_ha_ep_pending_purge,
    .ep_flush                 = uct_ha_ep_flush,
    .ep_fence                 = uct_ha_ep_fence,
    .ep_check                 = uct_ha_ep_check,
    .ep_create                = uct_ha_ep_create,
    .ep_destroy               = uct_ha_ep_destroy,
    .iface_flush              = flush,
    .iface_fence              = fence,
    .iface_progress_enable    = uct_base_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_ha_iface_progress,
    .iface_event_fd_get       = event_fd_get,
    .iface_event_arm          = event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_ha_iface_t),
    .iface_query              = query,
    .iface_get_device_address = get_device_address,
    .iface_get_address        = get_address,
    .iface_is_reachable       = is_reachable,
};
