/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MD_H_
#define UCT_HA_MD_H_

#include "abi/uct_ha_abi.h"

/* Memory domains: methods of the component and the transport (uct/component.c). */
ucs_status_t uct_ha_md_query_resources(uct_component_t *component, uct_md_resource_desc_t **resources_p,
                                       unsigned *num_resources_p);
ucs_status_t uct_ha_md_open(uct_component_t *component, const char *md_name, const uct_md_config_t *config,
                            uct_md_h *md_p);
ucs_status_t uct_ha_query_devices(uct_md_h md, uct_tl_device_resource_t **devices_p, unsigned *num_devices_p);

#endif
