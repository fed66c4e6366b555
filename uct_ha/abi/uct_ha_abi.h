/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ABI_H_
#define UCT_HA_ABI_H_

/*
 * The part of UCX's internal binary interface that a transport needs and that
 * UCX's development package does not install. It is declared by us, from
 * facts, for each supported UCX minor version; the installed public headers
 * are used as they are. The minor is the one of the installed headers, and
 * uct_ha_guard.c refuses at load to work with any other one at run time.
 *
 * Every file of the glue includes this header and no UCX header directly.
 * What differs between minors is confined to this folder; see docs/porting.md for
 * how a minor is added.
 */

#include <uct/api/version.h>

/* From this minor on. */
#define SINCE(_minor) (UCT_VERNO_MINOR >= (_minor))

#if UCT_VERNO_MAJOR != 1 || !SINCE(13) || SINCE(24)
#error "no description of this UCX version: use libucx-dev of 1.13 to 1.23, or see docs/porting.md"
#elif SINCE(14)
#include "ucx_1_14_on.h"
#else
#include "ucx_1_13.h"
#endif

#define UCT_HA_ABI_VERSION_MAJOR UCT_VERNO_MAJOR
#define UCT_HA_ABI_VERSION_MINOR UCT_VERNO_MINOR

#include <pthread.h>
#include <stdlib.h>

/* Layout facts, the same in every minor looked at so far (64-bit). A failing
 * line means: the installed UCX headers are not those this file describes. */
#define UCT_HA_ABI_SIZE(_type, _size) \
    _Static_assert(sizeof(_type) == (_size), #_type " does not have the size that UCX was built with")

UCT_HA_ABI_SIZE(uct_iface_t, 400);
UCT_HA_ABI_SIZE(uct_base_iface_t, 1280);
UCT_HA_ABI_SIZE(uct_base_ep_t, 8);
UCT_HA_ABI_SIZE(uct_iface_attr_t, 536);
UCT_HA_ABI_SIZE(uct_md_attr_t, 224);
UCT_HA_ABI_SIZE(uct_component_t, UCT_HA_ABI_COMPONENT_SIZE);
UCT_HA_ABI_SIZE(uct_tl_t, UCT_HA_ABI_TL_SIZE);
UCT_HA_ABI_SIZE(uct_md_ops_t, UCT_HA_ABI_MD_OPS_SIZE);
UCT_HA_ABI_SIZE(uct_iface_internal_ops_t, UCT_HA_ABI_INTERNAL_OPS_SIZE);

/* UCS functions whose headers are not installed (the same in all minors) */
void    *ucs_malloc(size_t size, const char *name);
void    *ucs_calloc(size_t nmemb, size_t size, const char *name);
void     ucs_free(void *ptr);
uint64_t ucs_generate_uuid(uint64_t seed);
double   ucs_get_cpu_clocks_per_sec(void);
int      ucs_async_is_from_async(const ucs_async_context_t *async);

/* Convert seconds to what ucs_async_add_timer() wants. */
static inline ucs_time_t uct_ha_ucs_time(double seconds)
{
    return (ucs_time_t)((seconds * ucs_get_cpu_clocks_per_sec()) + 0.5);
}

/*
 * Hand a received active message to its user. UCS_INPROGRESS means that the
 * user keeps `data`, which is possible only with UCT_CB_PARAM_FLAG_DESC.
 */
static inline ucs_status_t uct_ha_iface_invoke_am(uct_base_iface_t *iface, uint8_t id, void *data, unsigned length,
                                                  unsigned flags)
{
    uct_am_handler_t *handler = &iface->am[id];

    return handler->cb(handler->arg, data, length, flags);
}

/* One of the operations that `comp` waits for is done. The first error stays. */
static inline void uct_ha_completion_invoke(uct_completion_t *comp, ucs_status_t status)
{
    if (ucs_unlikely(status != UCS_OK)) {
        uct_completion_update_status(comp, status); /* of success it makes nothing */
    }
    if (--comp->count == 0) {
        comp->func(comp);
    }
}

static inline size_t uct_ha_iov_length(const uct_iov_t *iov, size_t iovcnt)
{
    size_t length = 0;
    size_t i;

    if (ucs_likely(iovcnt == 1)) {
        return iov->length * iov->count;
    }
    for (i = 0; i < iovcnt; ++i) {
        length += iov[i].length * iov[i].count;
    }
    return length;
}

/*
 * Keep callbacks of this worker's async context (events, timers) out while the
 * caller works on what they share. Recursive; callbacks themselves run with
 * the context blocked by their own thread.
 */
static inline void uct_ha_async_block(ucs_async_context_t *async)
{
    switch (async->mode) {
    case UCS_ASYNC_MODE_THREAD_SPINLOCK:
        ucs_recursive_spin_lock(&async->thread.spinlock);
        break;
    case UCS_ASYNC_MODE_THREAD_MUTEX:
        uct_ha_async_mutex_block(&async->thread.mutex);
        break;
    case UCS_ASYNC_MODE_SIGNAL:
        ++async->signal.block_count;
        __asm__ __volatile__("" ::: "memory");
        break;
    default:
        ++async->poll_block;
        break;
    }
}

static inline void uct_ha_async_unblock(ucs_async_context_t *async)
{
    switch (async->mode) {
    case UCS_ASYNC_MODE_THREAD_SPINLOCK:
        ucs_recursive_spin_unlock(&async->thread.spinlock);
        break;
    case UCS_ASYNC_MODE_THREAD_MUTEX:
        uct_ha_async_mutex_unblock(&async->thread.mutex);
        break;
    case UCS_ASYNC_MODE_SIGNAL:
        __asm__ __volatile__("" ::: "memory");
        --async->signal.block_count;
        break;
    default:
        --async->poll_block;
        break;
    }
}

/*
 * Pending requests: UCX lends the transport UCT_PENDING_REQ_PRIV_LEN bytes in
 * each request while it is queued, and never looks at them itself. This is
 * what we keep there; queue = an ordinary ucs_list_link_t head.
 */
typedef struct uct_ha_pending_priv {
    ucs_list_link_t list;
    uct_ep_h        ep;
    unsigned        flags;
    unsigned        amo; /* an atomic, see uct_ha_pending_purge() */
} uct_ha_pending_priv_t;

_Static_assert(sizeof(uct_ha_pending_priv_t) <= UCT_PENDING_REQ_PRIV_LEN,
               "the transport's data must fit in UCX's pending request");

static inline uct_ha_pending_priv_t *uct_ha_pending_priv(uct_pending_req_t *req)
{
    /* priv is a char array behind one pointer: aligned for pointers */
    return (uct_ha_pending_priv_t *)(void *)req->priv;
}

static inline uct_pending_req_t *uct_ha_pending_req(uct_ha_pending_priv_t *priv)
{
    return ucs_container_of(priv, uct_pending_req_t, priv);
}

/*
 * UCS_CLASS_DEFINE of the installed class.h casts function pointers in a way
 * that -Wextra refuses. The same thing with a cast that it accepts; follows
 * UCS_CLASS_INIT_FUNC / UCS_CLASS_CLEANUP_FUNC, and is followed by
 * UCS_CLASS_DEFINE_NEW_FUNC / UCS_CLASS_DEFINE_DELETE_FUNC, as usual.
 */
#define UCT_HA_CLASS_DEFINE(_type, _super)                                  \
    ucs_class_t _UCS_CLASS_DECL_NAME(_type) = {                             \
        UCS_PP_QUOTE(_type), sizeof(_type), &_UCS_CLASS_DECL_NAME(_super),  \
        (ucs_class_init_func_t)(void (*)(void))_UCS_CLASS_INIT_NAME(_type), \
        (ucs_class_cleanup_func_t)(void (*)(void))_UCS_CLASS_CLEANUP_NAME(_type)}

#endif
