/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STATUS_H_
#define HTE_STATUS_H_

#include <ucp/api/ucp.h>

/* Why a slice failed: UCX's reason as an enum hte_error. */
int hte_error_of_ucs(ucs_status_t status);

#endif
