/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DISPATCH_H_
#define HTE_DISPATCH_H_

/* Posting an operation the way its connection goes: by UCX's put and get, or by letters. */

#include "hte_op.h"

/* Over a connection that is usable. */
void hte_dispatch(struct hte_op *op, struct hte_conn *conn, struct hte_view *view);

#endif
