/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NEAR_OPS_H_
#define HTE_NEAR_OPS_H_

/* Operations that are posted to near connections (hte_near.h): moved in the thread's next turn, together, and over
 * then. */

#include "hte_conn.h"

/* One was posted to the connection. */
void hte_near_note(struct hte_conn *conn);
/* All that is posted. Returns how many calls that took. */
unsigned hte_near_run_all(struct hte_lane *lane);

#endif
