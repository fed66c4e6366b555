/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_PERSONALITY_H_
#define SC_PERSONALITY_H_

/*
 * In what kinds of cards differ, as far as a program of libibverbs can see it. What all do alike is not here, and
 * what only timing would tell neither. $SOFTCARD_PERSONALITY: one name for all devices, or one for each: "mlx5,irdma".
 */

#include <stdint.h>

struct sc_personality {
    const char *name;
    uint32_t    vendor_id, part_id;
    uint8_t     no_rc;          /* datagrams only */
    uint8_t     stale_psn;      /* ibv_query_qp tells the packet number that was set, not the one expected now */
    uint8_t     forgets;        /* enum sc_forgets: when completions of a queue pair leave their queue unpolled */
    uint8_t     retry7_forever; /* seven retries never end */
    uint8_t     slow_retry;     /* ConnectX: timeouts below 16 count as 16, twice that; one retry less */
    uint8_t     port_kills;     /* a send while the own port is down: enum ibv_wc_status of it, and ERR; 0: retried */
    uint8_t     last_wqe;       /* enum sc_last_wqe: what tells that a shared queue is not used any more */
    uint8_t     no_wr_api;      /* ibv_wr_* */
    uint8_t     own_memory;     /* enum ibv_wc_status of a request whose own memory has another key; 0: LOC_PROT_ERR */
    uint8_t     long_message;   /* one too long for its receive: REM_OP_ERR there, LOC_QP_OP_ERR here */
    uint8_t     no_access;      /* an access that the queue pair does not permit: REM_INV_REQ_ERR, not REM_ACCESS_ERR */
    uint8_t     odd_atomic;     /* at an odd address: refused when it is posted */
    uint8_t     late_receive;   /* posted in ERR: never flushed */
    uint32_t    flush_vendor;   /* vendor_err of flushed requests */
    uint32_t    max_inline;
};

enum sc_forgets { SC_FORGETS_NEVER, SC_FORGETS_DESTROY, SC_FORGETS_RESET /* and destroy */ };
enum sc_last_wqe { SC_LAST_WQE_EVENT, SC_LAST_WQE_NONE, SC_LAST_WQE_FATAL };

/* That of device number `index`; NULL: there is none of that name. */
const struct sc_personality *sc_personality_of(unsigned index);

#endif
