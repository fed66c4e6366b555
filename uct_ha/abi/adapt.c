/* SPDX-License-Identifier: BSD-3-Clause */
#include "adapt.h"

#include <stdio.h>
#include <string.h>

static const struct uct_ha_md_face    *md_face;
static const struct uct_ha_iface_face *iface_face;
static uct_ha_rkey_unpack_func_t       key_unpack;

/* ---- memory domain ---------------------------------------------------------------- */

#if SINCE(14)

/* UCX asks for everything and takes what it wanted. */
static ucs_status_t md_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    uct_md_attr_t old;
    ucs_status_t  status = md_face->query(md, &old);

#if SINCE(17)
    uct_md_base_md_query(attr); /* before, UCX has cleared it */
#elif SINCE(16)
    attr->reg_alignment = 1;
#endif
    attr->flags            = old.cap.flags;
    attr->max_reg          = old.cap.max_reg;
    attr->reg_mem_types    = old.cap.reg_mem_types;
    attr->access_mem_types = old.cap.access_mem_types;
    /* UCP registers what it sends by a rendezvous through its own cache, and ends the process by an assertion when a
     * domain does not say that it may be cached. */
    attr->cache_mem_types  = old.cap.reg_mem_types;
    attr->reg_cost         = old.reg_cost;
    attr->rkey_packed_size = old.rkey_packed_size;
    attr->local_cpus       = old.local_cpus;
    return status;
}

static ucs_status_t mem_reg(uct_md_h md, void *address, size_t length, const uct_md_mem_reg_params_t *params,
                            uct_mem_h *memh_p)
{
    unsigned flags = (params->field_mask & UCT_MD_MEM_REG_FIELD_FLAGS) ? (unsigned)params->flags : 0;

    return md_face->mem_reg(md, address, length, flags, memh_p);
}

/* Their only flags ask for what we do not offer. */
static ucs_status_t mkey_pack(uct_md_h md, uct_mem_h memh,
#if SINCE(16)
                              void *address, size_t length,
#endif
                              const uct_md_mkey_pack_params_t *params, void *rkey_buffer)
{
#if SINCE(16)
    (void)address;
    (void)length;
#endif
    (void)params;
    return md_face->mkey_pack(md, memh, rkey_buffer);
}

static ucs_status_t mem_attach(uct_md_h md, const void *mkey_buffer, uct_md_mem_attach_params_t *params,
                               uct_mem_h *memh_p)
{
    (void)md;
    (void)mkey_buffer;
    (void)params;
    (void)memh_p;
    return UCS_ERR_UNSUPPORTED;
}

#else

static ucs_status_t md_query(uct_md_h md, uct_md_attr_t *attr)
{
    return md_face->query(md, attr);
}

static ucs_status_t mem_reg(uct_md_h md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p)
{
    return md_face->mem_reg(md, address, length, flags, memh_p);
}

/* Its only flag asks for invalidation, which we do not offer. */
static ucs_status_t mkey_pack(uct_md_h md, uct_mem_h memh, const uct_md_mkey_pack_params_t *params, void *rkey_buffer)
{
    (void)params;
    return md_face->mkey_pack(md, memh, rkey_buffer);
}

#endif

#if !SINCE(16)

static int is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *sockaddr, uct_sockaddr_accessibility_t mode)
{
    (void)md;
    (void)sockaddr;
    (void)mode;
    return 0;
}

#endif

static void md_close(uct_md_h md)
{
    md_face->close(md);
}

static ucs_status_t mem_dereg(uct_md_h md, const uct_md_mem_dereg_params_t *params)
{
    return md_face->mem_dereg(md, params);
}

/* Only asked when the domain says that it can detect memory types. */
static ucs_status_t detect_memory_type(uct_md_h md, const void *addr, size_t length, ucs_memory_type_t *mem_type_p)
{
    (void)md;
    (void)addr;
    (void)length;
    (void)mem_type_p;
    return UCS_ERR_UNSUPPORTED;
}

#if SINCE(21)

/* For code on a GPU. */
static ucs_status_t mem_elem_pack(uct_md_h md, uct_mem_h memh, uct_rkey_t rkey, void *mem_elem
#if SINCE(23)
                                  ,
                                  void **release_handle_p
#endif
)
{
    (void)md;
    (void)memh;
    (void)rkey;
    (void)mem_elem;
#if SINCE(23)
    (void)release_handle_p;
#endif
    return UCS_ERR_UNSUPPORTED;
}

#endif

#if SINCE(23)

static void mem_elem_release(uct_md_h md, void *release_handle)
{
    (void)md;
    (void)release_handle;
}

#endif

uct_md_ops_t *uct_ha_adapt_md(const struct uct_ha_md_face *face)
{
    static uct_md_ops_t ops = {
        .close              = md_close,
        .query              = md_query,
        .mem_reg            = mem_reg,
        .mem_dereg          = mem_dereg,
        .mkey_pack          = mkey_pack,
        .detect_memory_type = detect_memory_type,
#if SINCE(14)
        .mem_attach = mem_attach,
#endif
#if !SINCE(16)
        .is_sockaddr_accessible = is_sockaddr_accessible,
#endif
#if SINCE(21)
        .mem_elem_pack = mem_elem_pack,
#endif
#if SINCE(23)
        .mem_elem_release = mem_elem_release,
#endif
    };

    __atomic_store_n(&md_face, face, __ATOMIC_RELAXED);
    return &ops;
}

/* ---- component -------------------------------------------------------------------------- */

static ucs_status_t rkey_unpack(uct_component_t *component, const void *rkey_buffer,
#if SINCE(19)
                                const uct_rkey_unpack_params_t *params,
#endif
                                uct_rkey_t *rkey_p, void **handle_p)
{
    (void)component;
#if SINCE(19)
    (void)params; /* the device whose memory it may be: ours is the host's */
#endif
    return key_unpack(rkey_buffer, rkey_p, handle_p);
}

static ucs_status_t rkey_ptr(uct_component_t *component, uct_rkey_t rkey, void *handle, uint64_t remote_addr,
                             void **local_addr_p)
{
    (void)component;
    (void)rkey;
    (void)handle;
    (void)remote_addr;
    (void)local_addr_p;
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t rkey_release(uct_component_t *component, uct_rkey_t rkey, void *handle)
{
    (void)component;
    (void)rkey;
    (void)handle;
    return UCS_OK;
}

void uct_ha_adapt_keys(uct_component_t *component, uct_ha_rkey_unpack_func_t unpack)
{
    key_unpack              = unpack;
    component->rkey_unpack  = rkey_unpack;
    component->rkey_ptr     = rkey_ptr;
    component->rkey_release = rkey_release;
#if SINCE(16)
    component->rkey_compare = uct_base_rkey_compare;
#endif
}

void uct_ha_component_enter(uct_component_t *component, uct_tl_t *tl)
{
    uct_component_register(component);
    uct_tl_register(component, tl);
}

/* Not every UCX takes the component out of its list. */
void uct_ha_component_leave(uct_component_t *component, uct_tl_t *tl)
{
    ucs_list_link_t *link, *next;

    uct_tl_unregister(tl);
    uct_component_unregister(component);
    for (link = uct_components_list.next; link != &uct_components_list; link = next) {
        next = link->next;
        if (link == &component->list) {
            ucs_list_del(link);
        }
    }
}

/* ---- interface --------------------------------------------------------------------------- */

static void vfs_refresh(uct_iface_h iface)
{
    iface_face->vfs_refresh(iface);
}

static ucs_status_t ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    (void)ep;
    (void)attr;
    return UCS_ERR_UNSUPPORTED;
}

#if SINCE(21)
static ucs_status_t ep_invalidate(uct_ep_h ep, const uct_ep_invalidate_params_t *params)
{
    (void)params;
    return iface_face->ep_invalidate(ep);
}
#else
static ucs_status_t ep_invalidate(uct_ep_h ep, unsigned flags)
{
    (void)flags;
    return iface_face->ep_invalidate(ep);
}
#endif

#if SINCE(15)

/* The narrow scope asks for rails of this very host's device: those of one device only. */
static int is_same_device(const uct_iface_h iface, const uct_device_addr_t *dev_addr)
{
    uct_iface_attr_t attr;
    uint64_t         own[8];

    return (iface->ops.iface_query(iface, &attr) == UCS_OK) && (attr.device_addr_len <= sizeof(own)) &&
           (iface->ops.iface_get_device_address(iface, (void *)own) == UCS_OK) &&
           (memcmp(own, dev_addr, attr.device_addr_len) == 0);
}

/* For UCX's line that nobody reaches it. */
static void say_why(const uct_iface_is_reachable_params_t *params, const char *text)
{
    if ((params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING) && (params->info_string != NULL) &&
        (params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING_LENGTH) && (params->info_string_length > 0)) {
        (void)snprintf(params->info_string, params->info_string_length, "%s", text);
    }
}

static int is_reachable(const uct_iface_h iface, const uct_iface_is_reachable_params_t *params)
{
    const uct_iface_addr_t *iface_addr = NULL;

    say_why(params, "");
    if (!(params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR) || (params->device_addr == NULL)) {
        return 0;
    }
    if (params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_IFACE_ADDR) {
        iface_addr = params->iface_addr;
    }
    if (!iface_face->is_reachable(iface, params->device_addr, iface_addr)) {
        say_why(params, "another network (UCX_LOG_LEVEL=diag), or this process itself (self or tcp in UCX_TLS)");
        return 0;
    }
    return !(params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_SCOPE) ||
           (params->scope == UCT_IFACE_REACHABILITY_SCOPE_NETWORK) || is_same_device(iface, params->device_addr);
}

#endif

#if SINCE(16)

/* Of an endpoint's own address there is none. */
static int ep_is_connected(uct_ep_h ep, const uct_ep_is_connected_params_t *params)
{
    return (params->field_mask & UCT_EP_IS_CONNECTED_FIELD_DEVICE_ADDR) &&
           (params->field_mask & UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR) && (params->iface_addr != NULL) &&
           iface_face->ep_leads_to(ep, params->device_addr, params->iface_addr);
}

#endif

#if SINCE(14)

static ucs_status_t ep_connect(uct_ep_h ep, const uct_device_addr_t *dev_addr, const uct_ep_addr_t *ep_addr,
                               const uct_ep_connect_to_ep_params_t *params)
{
    (void)ep;
    (void)dev_addr;
    (void)ep_addr;
    (void)params;
    return UCS_ERR_UNSUPPORTED;
}

#endif

#if UCT_VERNO_MINOR == 20

static ucs_status_t iface_mem_element_pack(const uct_iface_h iface, uct_mem_h memh, uct_rkey_t rkey, void *mem_element)
{
    (void)iface;
    (void)memh;
    (void)rkey;
    (void)mem_element;
    return UCS_ERR_UNSUPPORTED;
}

#endif

#if SINCE(20)

static ucs_status_t ep_get_device_ep(uct_ep_h ep, void **device_ep_p)
{
    (void)ep;
    (void)device_ep_p;
    return UCS_ERR_UNSUPPORTED;
}

#endif

#if SINCE(22)

static ucs_status_t ep_sgl_zcopy(uct_ep_h ep, void *const *buffers, const size_t *lengths, uct_mem_h const *memhs,
                                 const uint64_t *remote_addrs, uct_rkey_t const *rkeys, const size_t *counts,
                                 const size_t *strides, size_t count, uct_completion_t *comp)
{
    (void)ep;
    (void)buffers;
    (void)lengths;
    (void)memhs;
    (void)remote_addrs;
    (void)rkeys;
    (void)counts;
    (void)strides;
    (void)count;
    (void)comp;
    return UCS_ERR_UNSUPPORTED;
}

#endif

#if SINCE(23)

/* For UCX's own failover between transports, which replays what a dead one leaves: nothing here. */
static ucs_status_t ep_outstanding_purge(uct_ep_h ep, const uct_ep_outstanding_purge_params_t *params)
{
    (void)ep;
    (void)params;
    return UCS_ERR_UNSUPPORTED;
}

#endif

uct_iface_internal_ops_t *uct_ha_adapt_iface(const struct uct_ha_iface_face *face)
{
    static uct_iface_internal_ops_t ops = {
        .iface_estimate_perf = uct_base_iface_estimate_perf,
        .iface_vfs_refresh   = vfs_refresh,
        .ep_query            = ep_query,
        .ep_invalidate       = ep_invalidate,
#if SINCE(14)
        .ep_connect_to_ep_v2 = ep_connect,
#endif
#if SINCE(15)
        .iface_is_reachable_v2 = is_reachable,
#endif
#if SINCE(16)
        .ep_is_connected = ep_is_connected,
#endif
#if SINCE(14) && HAS_IFACE_QUERY_V2
        .iface_query_v2 = uct_iface_base_query_v2,
#endif
#if UCT_VERNO_MINOR == 20
        .iface_mem_element_pack = iface_mem_element_pack,
#endif
#if SINCE(20)
        .ep_get_device_ep = ep_get_device_ep,
#endif
#if SINCE(22)
        .ep_put_sgl_zcopy = ep_sgl_zcopy,
#endif
#if SINCE(23)
        .ep_get_sgl_zcopy     = ep_sgl_zcopy,
        .ep_outstanding_purge = ep_outstanding_purge,
#endif
    };

    __atomic_store_n(&iface_face, face, __ATOMIC_RELAXED);
    return &ops;
}
