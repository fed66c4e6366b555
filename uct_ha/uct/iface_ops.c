/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/iface_ops.h"

#include "abi/adapt.h"
#include "ctl/tcp.h"
#include "ctl/terms.h"
#include "data/amo.h"
#include "data/tx.h"
#include "topo/ha_budget.h"
#include "topo/ha_near.h"
#include "uct/addr.h"
#include "uct/domain.h"
#include "uct/ep.h"
#include "uct/ep_am.h"
#include "uct/ep_amo.h"
#include "uct/ep_rma.h"
#include "uct/iface_setup.h"
#include "uct/leave.h"
#include "uct/progress.h"
#include "uct/reach.h"
#include "uct/totals.h"

#include <string.h>

#define ATOMIC_POST_OPS \
    (UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) | UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR))
#define ATOMIC_FETCH_OPS (ATOMIC_POST_OPS | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP))

typedef struct uct_ha_iface uct_ha_iface_t; /* UCX's class macros want one word */

/* ---- addresses -------------------------------------------------------------------- */

static uint32_t control_port(struct uct_ha_iface *iface, int slot)
{
    uint32_t qpn;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    qpn = iface->ctl.ud[slot] == NULL ? 0 : ha_ud_qpn(iface->ctl.ud[slot]);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return qpn;
}

static ucs_status_t get_device_address(uct_iface_h tl_iface, uct_device_addr_t *addr)
{
    struct uct_ha_iface    *iface = uct_ha_iface(tl_iface);
    struct uct_ha_dev_where where = {.primary = uct_ha_pairs_where(&iface->pairs, 0)};

    if (iface->lanes.slots == HA_SLOTS) {
        where.standby     = uct_ha_pairs_where(&iface->pairs, 1);
        where.standby_qpn = control_port(iface, 1);
    }
    if (iface->ctl.tcp != NULL) {
        where.tcp = uct_ha_tcp_addr(iface->ctl.tcp);
    }
    uct_ha_addr_pack_dev(&where, (void *)addr);
    return UCS_OK;
}

static ucs_status_t get_address(uct_iface_h tl_iface, uct_iface_addr_t *addr)
{
    struct uct_ha_iface      *iface = uct_ha_iface(tl_iface);
    struct uct_ha_iface_where where = {
        .secret  = iface->pairs.secret,
        .slots   = (unsigned)iface->lanes.slots,
        .credits = iface->lanes.credits,
        .caps    = iface->pairs.caps,
        .ud_qpn  = control_port(iface, 0),
    };

    uct_ha_addr_pack_iface(&where, (void *)addr);
    return UCS_OK;
}

/* ---- attributes --------------------------------------------------------------------- */

#define NUMA_LATENCY 20e-9 /* of each unit of distance */

/* As UCX's own `rc` reckons it: see verbs/ha_link.h. */
static void query_speed(struct uct_ha_iface *iface, uct_iface_attr_t *attr)
{
    const struct ha_rail_limits *limits = ha_rail_limits(iface->lanes.rail[0]);
    struct ha_rail_addr          addr   = ha_rail_addr(iface->lanes.rail[0]);
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
    attr->priority            = ha_match_priority(&iface->pairs.match, addr.link_layer, iface->pairs.cookie);
}

/* What the devices carry, unless the user wants less. Memory is not looked at here: how much a
 * process may lock says nothing about how much it has. */
static size_t max_eps(const struct uct_ha_iface *iface, size_t wanted)
{
    const struct uct_ha_iface_config *config = &iface->config;
    struct ha_budget_need need = ha_budget_need(config->tx_queue_len, config->rx_queue_len, config->rx_queue_init,
                                                config->seg_size, (unsigned)iface->lanes.slots);

    for (int s = 0; s < iface->lanes.slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(iface->lanes.rail[s]);
        struct ha_budget_device      device = {
                 .max_qp    = limits->max_qp,
                 .max_qp_wr = limits->max_qp_wr,
                 .max_cqe   = limits->max_cqe,
                 .max_mr    = HA_BUDGET_UNLIMITED,
                 .memlock   = HA_BUDGET_UNLIMITED,
        };

        wanted = ucs_min(wanted, ha_budget(&device, &need).connections);
    }
    return ucs_max(wanted, 1);
}

static ucs_status_t query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    struct ha_rail_addr  addr  = ha_rail_addr(iface->lanes.rail[0]);
    size_t               seg   = iface->config.seg_size;

    uct_base_iface_query(&iface->super, attr);
    attr->iface_addr_len  = sizeof(struct uct_ha_packed_iface);
    attr->device_addr_len = sizeof(struct uct_ha_packed_dev);
    attr->ep_addr_len     = 0;
    attr->cap.flags       = UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_BCOPY |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_CB_SYNC |
                      UCT_IFACE_FLAG_EP_CHECK | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF | UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM | UCT_HA_IFACE_FLAGS_NET;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;

    attr->cap.am.max_bcopy       = seg;
    attr->cap.am.max_zcopy       = seg;
    attr->cap.am.max_hdr         = seg;
    attr->cap.am.max_iov         = iface->lanes.max_sge - 1;
    attr->cap.am.opt_zcopy_align = 512;
    attr->cap.am.align_mtu       = addr.mtu;

    attr->cap.put.max_bcopy       = seg;
    attr->cap.put.max_zcopy       = iface->lanes.max_zcopy;
    attr->cap.put.max_iov         = iface->lanes.max_sge;
    attr->cap.put.opt_zcopy_align = 512;
    attr->cap.put.align_mtu       = addr.mtu;

    attr->cap.get.max_bcopy       = attr->cap.put.max_bcopy;
    attr->cap.get.max_zcopy       = attr->cap.put.max_zcopy;
    attr->cap.get.max_iov         = attr->cap.put.max_iov;
    attr->cap.get.opt_zcopy_align = attr->cap.put.opt_zcopy_align;
    attr->cap.get.align_mtu       = attr->cap.put.align_mtu;

    if (iface->lanes.max_inline >= sizeof(uint64_t)) {
        attr->cap.flags |= UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_PUT_SHORT;
        attr->cap.am.max_short  = iface->lanes.max_inline;
        attr->cap.put.max_short = iface->lanes.max_inline;
    }
    if (iface->pairs.caps & HA_CAP_ATOMIC_HW) {
        attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_DEVICE;
        attr->cap.atomic64.op_flags  = UCS_BIT(UCT_ATOMIC_OP_ADD);
        attr->cap.atomic64.fop_flags = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    } else if (iface->lanes.max_inline >= UCT_HA_AMO_INLINE) {
        attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_CPU;
        attr->cap.atomic32.op_flags  = ATOMIC_POST_OPS;
        attr->cap.atomic32.fop_flags = ATOMIC_FETCH_OPS;
        attr->cap.atomic64           = attr->cap.atomic32;
    }
    attr->max_num_eps = max_eps(iface, attr->max_num_eps);
    query_speed(iface, attr);
    return UCS_OK;
}

/* ---- events, flush, fence ---------------------------------------------------------------- */

static ucs_status_t event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    *fd_p = uct_ha_iface(tl_iface)->event_fd;
    return UCS_OK;
}

/* After arming a queue must be looked at once more: what came before does not
 * signal. What is found is kept for progress. */
static int arm_slot(struct uct_ha_iface *iface, int slot)
{
    struct ha_cq *cq = iface->lanes.room[slot].cq;

    (void)ha_cq_drain_fd(cq);
    (void)ha_cq_arm(cq);
    if (!(iface->stashed & (1u << slot)) && ha_cq_poll(cq, &iface->stash[slot], 1) == 1) {
        iface->stashed |= (uint8_t)(1u << slot);
    }
    return (iface->stashed & (1u << slot)) != 0;
}

static ucs_status_t event_arm(uct_iface_h tl_iface, unsigned events)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    int                  busy  = 0;

    (void)events;
    uct_ha_tx_tails(&iface->flows, 1); /* who sleeps does not look after a while */
    uct_ha_wake_arm(&iface->lanes.wake);
    for (int s = 0; s < iface->lanes.slots; s++) {
        busy |= !iface->lanes.room[s].lent && arm_slot(iface, s);
    }
    iface->patience = 0;
    return uct_ha_wake_may_sleep(&iface->lanes.wake, busy) ? UCS_OK : UCS_ERR_BUSY;
}

static ucs_status_t flush(uct_iface_h tl_iface, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_iface *iface = uct_ha_iface(tl_iface);

    (void)flags;
    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (iface->flows.outstanding == 0 && ucs_list_is_empty(&iface->flows.pending)) {
        return UCS_OK; /* nothing is out, and nothing waits for room to go out */
    }
    uct_ha_tx_tails(&iface->flows, 1);
    return UCS_INPROGRESS;
}

static ucs_status_t fence(uct_iface_h tl_iface, unsigned flags)
{
    (void)flags;
    uct_ha_iface(tl_iface)->flows.fence_seq++;
    return UCS_OK;
}

/* ---- life ----------------------------------------------------------------------------- */

static UCS_CLASS_CLEANUP_FUNC(uct_ha_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_ha_leave(self);
    uct_ha_iface_teardown(self);
}

static uct_iface_ops_t uct_ha_iface_ops;

static const struct uct_ha_iface_face iface_face;

static UCS_CLASS_INIT_FUNC(uct_ha_iface_t, uct_md_h tl_md, uct_worker_h worker, const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    ucs_status_t status;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_ha_iface_ops, uct_ha_adapt_iface(&iface_face), tl_md, worker,
                              params, tl_config);
    /* UCX hands out memory as malloc left it. */
    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0, sizeof(*self) - sizeof(self->super));
    self->config   = *ucs_derived_of(tl_config, struct uct_ha_iface_config);
    self->event_fd = -1;
    status         = uct_ha_iface_config_check(&self->config);
    if (status != UCS_OK) {
        return status;
    }
    return uct_ha_iface_setup(self, &uct_ha_md(tl_md)->duo,
                              (params->field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ? params->rx_headroom : 0);
}

UCT_HA_CLASS_DEFINE(uct_ha_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_ha_iface_t, uct_iface_t, uct_md_h, uct_worker_h, const uct_iface_params_t *,
                                 const uct_iface_config_t *);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_ha_iface_t, uct_iface_t);

ucs_status_t uct_ha_iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
                               const uct_iface_config_t *config, uct_iface_h *iface_p)
{
    return UCS_CLASS_NEW_FUNC_NAME(uct_ha_iface_t)(md, worker, params, config, iface_p);
}

static void vfs_refresh(uct_iface_h iface)
{
    uct_ha_totals_vfs(iface);
    uct_ha_terms_vfs(iface, &uct_ha_iface(iface)->pairs);
}

static const struct uct_ha_iface_face iface_face = {
    .vfs_refresh   = vfs_refresh,
    .is_reachable  = uct_ha_reach,
    .ep_leads_to   = uct_ha_ep_leads_to,
    .ep_invalidate = uct_ha_ep_invalidate,
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
    .iface_progress           = uct_ha_progress,
    .iface_event_fd_get       = event_fd_get,
    .iface_event_arm          = event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_ha_iface_t),
    .iface_query              = query,
    .iface_get_device_address = get_device_address,
    .iface_get_address        = get_address,
    .iface_is_reachable       = uct_ha_reach,
};
