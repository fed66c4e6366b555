/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COST_SIDE_H_
#define COST_SIDE_H_

/* One of the two ends of bench/cost: an interface of a transport, its endpoints and its memory. */

#include <uct/api/uct.h>
#include <ucs/async/async_fwd.h>

#define COST_EPS_MAX 4096
#define COST_MEMORY  (1u << 20)
#define COST_AM_ID   5

struct cost_side {
    uct_component_h      component;
    ucs_async_context_t *async;
    uct_worker_h         worker;
    uct_md_h             md;
    uct_iface_h          iface;
    uct_iface_attr_t     attr;
    uct_ep_h            *eps;
    char                *memory;
    uct_mem_h            memh;
    uct_rkey_bundle_t    rkey; /* of the other side's memory */
    unsigned long        got;  /* active messages */
};

void cost_die(const char *what, ucs_status_t status) __attribute__((noreturn));
void cost_open(struct cost_side *side, const char *tl, const char *device);
void cost_connect(struct cost_side *a, struct cost_side *b, unsigned eps);

#endif
