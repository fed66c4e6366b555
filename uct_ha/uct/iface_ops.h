/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IFACE_OPS_H_
#define UCT_HA_IFACE_OPS_H_

#include "abi/uct_ha_abi.h"

/* For the transport's table: see uct_iface_open_func of UCX. */
ucs_status_t uct_ha_iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
                               const uct_iface_config_t *config, uct_iface_h *iface_p);

#endif
