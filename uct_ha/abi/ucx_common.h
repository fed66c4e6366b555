/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UCX_COMMON_H_
#define UCT_HA_UCX_COMMON_H_

/*
 * What is the same in UCX 1.13 to 1.23: 64-bit, built without statistics and
 * with assertions, as distributions build it. Order and types of the fields are facts
 * of those binaries; see uct_ha_abi.h for how they are checked. Included by
 * ucx_1_<minor>.h only.
 */

#include <ucs/async/async_fwd.h>
#include <ucs/config/global_opts.h>
#include <ucs/config/parser.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/list.h>
#include <ucs/debug/log_def.h>
#include <ucs/memory/rcache.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/class.h>
#include <ucs/type/param.h>
#include <ucs/type/spinlock.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

/* ---- component --------------------------------------------------------- */

typedef struct uct_component uct_component_t;

extern ucs_list_link_t uct_components_list;

void uct_component_register(uct_component_t *component);

/* Takes only the configuration entries out, not the component itself. */
void uct_component_unregister(uct_component_t *component);

/* ---- memory domain ----------------------------------------------------- */

struct uct_md_config {
    char unused; /* every domain's configuration starts with this */
};

extern ucs_config_field_t uct_md_config_table[];

enum {
    UCT_MD_MEM_DEREG_FIELD_MEMH       = 1 << 0,
    UCT_MD_MEM_DEREG_FIELD_FLAGS      = 1 << 1,
    UCT_MD_MEM_DEREG_FIELD_COMPLETION = 1 << 2
};

enum { UCT_MD_MEM_DEREG_FLAG_INVALIDATE = 1 << 0 };

typedef struct uct_md_mem_dereg_params {
    uint64_t          field_mask;
    unsigned          flags;
    uct_mem_h         memh;
    uct_completion_t *comp;
} uct_md_mem_dereg_params_t;

typedef struct uct_md_mkey_pack_params {
    uint64_t field_mask;
    unsigned flags;
} uct_md_mkey_pack_params_t;

typedef struct uct_md_ops uct_md_ops_t;

struct uct_md {
    uct_md_ops_t    *ops;
    uct_component_t *component;
};

/* ---- transport --------------------------------------------------------- */

typedef struct uct_tl_device_resource {
    char              name[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
    ucs_sys_device_t  sys_device;
} uct_tl_device_resource_t;

typedef struct uct_tl {
    char name[UCT_TL_NAME_MAX];

    /* The array is released by the caller with ucs_free(). */
    ucs_status_t (*query_devices)(uct_md_h md, uct_tl_device_resource_t **devices_p, unsigned *num_devices_p);
    ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
                               const uct_iface_config_t *config, uct_iface_h *iface_p);

    ucs_config_global_list_entry_t config;
    ucs_list_link_t                list; /* in uct_component::tl_list */
} uct_tl_t;

void uct_tl_register(uct_component_t *component, uct_tl_t *tl);
void uct_tl_unregister(uct_tl_t *tl);

ucs_status_t uct_single_device_resource(uct_md_h md, const char *dev_name, uct_device_type_t dev_type,
                                        ucs_sys_device_t sys_device, uct_tl_device_resource_t **devices_p,
                                        unsigned *num_devices_p);

/* ---- worker ------------------------------------------------------------ */

typedef struct uct_priv_worker {
    uct_worker_t         super;
    ucs_async_context_t *async;
    ucs_thread_mode_t    thread_mode;
    ucs_list_link_t      tl_data;
} uct_priv_worker_t;

typedef struct uct_worker_progress {
    uct_worker_cb_id_t id;
    uint32_t           refcount;
} uct_worker_progress_t;

/* ---- interface --------------------------------------------------------- */

struct uct_iface_config {
    struct {
        uct_alloc_method_t *methods;
        unsigned            count;
    } alloc_methods;
    int    failure;
    size_t max_num_eps;
};

extern ucs_config_field_t uct_iface_config_table[];

typedef struct uct_am_handler {
    uct_am_callback_t cb;
    void             *arg;
    uint32_t          flags;
} uct_am_handler_t;

/* Known only by pointer here: we pass UCX's own default on, or refuse. */
typedef struct uct_perf_attr uct_perf_attr_t;
typedef struct uct_ep_attr   uct_ep_attr_t;

typedef struct uct_iface_internal_ops uct_iface_internal_ops_t;

typedef struct uct_base_iface {
    uct_iface_t               super;
    uct_iface_internal_ops_t *internal_ops;
    uct_md_h                  md;
    uct_priv_worker_t        *worker;
    uct_am_handler_t          am[UCT_AM_ID_MAX];
    uct_am_tracer_t           am_tracer;
    void                     *am_tracer_arg;
    uct_error_handler_t       err_handler;
    void                     *err_handler_arg;
    uint32_t                  err_handler_flags;
    uct_worker_progress_t     prog;
    unsigned                  progress_flags;
    struct {
        unsigned           num_alloc_methods;
        uct_alloc_method_t alloc_methods[UCT_ALLOC_METHOD_LAST];
        ucs_log_level_t    failure_level;
        size_t             max_num_eps;
    } config;
} uct_base_iface_t;

/* Constructor arguments of the base class. The operations are copied; the
 * internal ones are not and must outlive the interface. */
UCS_CLASS_DECLARE(uct_base_iface_t, uct_iface_ops_t *, uct_iface_internal_ops_t *, uct_md_h, uct_worker_h,
                  const uct_iface_params_t *, const uct_iface_config_t *)

/* Zeroes the attributes, then fills in max_num_eps and dev_num_paths = 1. */
void         uct_base_iface_query(uct_base_iface_t *iface, uct_iface_attr_t *attr);
ucs_status_t uct_base_iface_estimate_perf(uct_iface_h iface, uct_perf_attr_t *perf_attr);
/* Both do nothing and return UCS_OK. */
ucs_status_t uct_base_iface_flush(uct_iface_h iface, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_base_iface_fence(uct_iface_h iface, unsigned flags);
void         uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void         uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);

void uct_iface_set_async_event_params(const uct_iface_params_t *params, uct_async_event_cb_t *event_cb,
                                      void **event_arg);

/* Report a dead endpoint to the user: once per endpoint, from progress only
 * unless the user said UCT_CB_FLAG_ASYNC in err_handler_flags. */
ucs_status_t uct_iface_handle_ep_err(uct_iface_h iface, uct_ep_h ep, ucs_status_t status);

#define UCT_IFACE_PARAM_VALUE(_params, _name, _flag, _default) \
    UCS_PARAM_VALUE(UCT_IFACE_PARAM_FIELD, _params, _name, _flag, _default)

/* ---- endpoint ---------------------------------------------------------- */

typedef struct uct_base_ep {
    uct_ep_t super;
} uct_base_ep_t;

UCS_CLASS_DECLARE(uct_base_ep_t, uct_base_iface_t *)

/* Both do nothing and return UCS_OK. */
ucs_status_t uct_base_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_base_ep_fence(uct_ep_h ep, unsigned flags);
/* am_short_iov by am_short of our own ops */
ucs_status_t uct_base_ep_am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt);

#define UCT_EP_PARAM_VALUE(_params, _name, _flag, _default) \
    UCS_PARAM_VALUE(UCT_EP_PARAM_FIELD, _params, _name, _flag, _default)

/* ---- async context ------------------------------------------------------ */

/* Handlers and timers come from the installed ucs/async/async_fwd.h. The
 * context itself is needed to keep its callbacks out, see
 * uct_ha_async_block(). With UCX's assertions switched off the mutex would be
 * shorter; the guard checks where `mode` really is. */
typedef struct uct_ha_async_mutex {
    pthread_mutex_t lock;
    pthread_t       owner;
    unsigned        count;
} uct_ha_async_mutex_t;

struct ucs_async_context {
    union {
        union {
            ucs_recursive_spinlock_t spinlock;
            uct_ha_async_mutex_t     mutex;
        } thread;
        struct {
            pid_t     tid;
            int       block_count;
            pthread_t pthread;
            timer_t   timer;
        } signal;
        int poll_block;
    };
    ucs_async_mode_t mode;
    /* more fields follow; contexts are only ever created by UCX */
};

static inline void uct_ha_async_mutex_block(uct_ha_async_mutex_t *mutex)
{
    pthread_mutex_lock(&mutex->lock);
    if (mutex->count++ == 0) {
        mutex->owner = pthread_self();
    }
}

static inline void uct_ha_async_mutex_unblock(uct_ha_async_mutex_t *mutex)
{
    if (--mutex->count == 0) {
        mutex->owner = UCS_ASYNC_PTHREAD_ID_NULL;
    }
    pthread_mutex_unlock(&mutex->lock);
}

#endif
