/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MD_WORLD_H_
#define MD_WORLD_H_

/* Memory domains over rails that are made up: they count what is opened and registered. */

#include "base/config.h"
#include "mem/rkey.h"
#include "uct/domain.h"
#include "uct/md.h"
#include "uct/md_mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct ha_rail {
    char                  name[HA_RAIL_NAME_MAX];
    int                   opened;
    int                   open_error;
    int                   down;
    uint8_t               link_layer; /* 0 = Ethernet */
    int                   reg_error;
    int                   registered; /* now */
    int                   total;      /* ever */
    unsigned              last_access;
    struct ha_rail_limits limits;
};

extern struct ha_rail      rails[HA_RAILS_MAX];
extern struct ha_rail_opts last_opts; /* with which a rail was opened */
extern uct_component_t     component;

/* No rails, default settings, no cache. */
int  md_setup(void **state);
void add_rail(const char *name);

/* What is offered; `found` has room for all rails. */
unsigned query(uct_md_resource_desc_t *found);

ucs_status_t open_md(const char *name, uct_md_h *md);

/* Also checks that nothing is left open or registered. */
void close_md(uct_md_h md);

void dereg(uct_md_h md, uct_mem_h memh);

#endif
