/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_OP_H_
#define HTE_OP_H_

/*
 * One operation for UCX: the put or get of a slice, or where there is one device and thus nothing to divide, of a run
 * of neighbouring ones. Its steps are those of core/hte_slice.h; who posted it learns of them by the lane's hooks
 * (hte_lane.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "core/hte_slice.h"
#include "hte_conn.h"

struct hte_op {
    struct hte_link_ring   link; /* conn's posted; its owner's, while it is not posted */
    struct hte_slice_state state;
    char                  *local;
    uint64_t               remote, length;
    uint32_t               units;        /* slices in it, for window and counters */
    uint32_t               parts;        /* ranges; more than 1: see hte_conn_parts_size(); of one remote buffer */
    uint32_t               buffer;       /* index in the view */
    bool                   is_gpu;       /* memory of a GPU, here or there: UCX alone may move it */
    bool                   is_local_gpu; /* ... here */
    bool                   is_expired;
    struct hte_conn       *conn;        /* that it was posted to last */
    struct hte_keys       *keys;        /* while posted */
    void                  *request;     /* UCX's, while UCX has it */
    uint64_t               canceled_at; /* 0: not, or not seen yet */
    /* Posted by letters, see hte_move.h: */
    uint64_t token;
    uint64_t unanswered; /* bytes that did not come, or were not confirmed */
    bool     by_letters, is_posting;
    int      move_error, refused;
    uint64_t seq; /* of the connection */
    uint64_t posted_at;
};

/* UCX or the connection is through with a posted one: the hooks are told. */
void hte_op_event(struct hte_op *op, enum hte_slice_event event, int error);
/* FAIL, or EXPIRE when it took too long. */
void hte_op_fail(struct hte_op *op, int error);

#endif
