/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_WAY_H_
#define HTE_WAY_H_

/* Which transports an endpoint really uses: UCX decides when it is made, and tells in print only. */

#include <stdbool.h>

#include <ucp/api/ucp.h>

/* One of them has remote memory access in hardware, so that the target's process takes no part in a transfer. false
 * also when it cannot be told. And their names. */
bool hte_way_has_rma(ucp_ep_h ep, char *names, size_t size);

#endif
