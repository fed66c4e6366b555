/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep_amo.h"

#include "data/amo.h"
#include "data/tx.h"
#include "uct/ep.h"

#include <string.h>

/* ---- by the owner's card ------------------------------------------------------- */

static void store_result(void *result, const void *data, size_t length)
{
    memcpy(result, data, length);
}

/* The card of this owner executes atomics, so nothing else may. */
static ucs_status_t check_hw(unsigned op, uint8_t size, uint64_t remote_addr)
{
    if (size != sizeof(uint64_t) || (op != UCT_ATOMIC_OP_ADD && op != UCT_ATOMIC_OP_CSWAP)) {
        ucs_error("ha_rc [HA-501]: the peer's card executes atomics (UCX_HA_RC_ATOMICS=hw there), and only "
                  "64-bit add and compare-and-swap; set UCX_HA_RC_ATOMICS=sw on all sides");
        return UCS_ERR_UNSUPPORTED;
    }
    if (remote_addr % sizeof(uint64_t) != 0) {
        ucs_error("ha_rc [HA-502]: address 0x%lx of an atomic is not a multiple of 8", (unsigned long)remote_addr);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

/* The old value comes to a bounce buffer: it is wanted even of an operation
 * whose user does not, and on any rail. */
static ucs_status_t hw(struct uct_ha_flow *flow, const struct uct_ha_amo_request *request, uct_rkey_t rkey,
                       void *result, uct_completion_t *comp)
{
    ucs_status_t        status = check_hw(request->op, request->size, request->address);
    int                 add    = request->op == UCT_ATOMIC_OP_ADD;
    struct uct_ha_desc *desc;
    struct uct_ha_txop *txop;
    struct uct_ha_more *more;

    if (status == UCS_OK) {
        status = uct_ha_tx_check(flow, 0);
    }
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    if (ucs_unlikely(desc == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    txop              = uct_ha_tx_begin(flow, add ? HA_FETCH_ADD : HA_COMPARE_SWAP, UCT_HA_PIECES, 0, request->size);
    txop->remote_addr = request->address;
    txop->rkey        = rkey;
    more              = txop->more;
    more->comp        = comp;
    more->unpack      = result == NULL ? NULL : store_result;
    more->unpack_arg  = result;
    uct_ha_txop_use(txop, desc, request->size);
    more->atomic.compare_add = add ? request->operand : request->compare;
    more->atomic.swap        = request->operand;
    uct_ha_tx_send(flow, result == NULL ? HA_OP_ATOMIC : HA_OP_FETCH, 0);
    return result == NULL ? UCS_OK : UCS_INPROGRESS;
}

/* ---- either way: the owner of the memory decides ------------------------------------ */

static ucs_status_t issue(uct_ep_h ep, struct uct_ha_amo_request *request, uct_rkey_t rkey, void *result,
                          uct_completion_t *comp)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(ep);
    ucs_status_t        status;

    if (flow->purging) {
        return flow->tx.dead ? flow->status : UCS_ERR_CANCELED;
    }
    status = flow->card_atomics ? hw(flow, request, rkey, result, comp)
                                : uct_ha_amo_send(flow, request, rkey, result, comp);
    if (status == UCS_ERR_NO_RESOURCE) {
        flow->amo_refused = 1;
    }
    return status;
}

static ucs_status_t post(uct_ep_h ep, unsigned op, uint8_t size, uint64_t value, uint64_t remote_addr, uct_rkey_t rkey)
{
    struct uct_ha_amo_request request = {.address = remote_addr, .operand = value, .op = (uint8_t)op, .size = size};

    return issue(ep, &request, rkey, NULL, NULL);
}

static ucs_status_t fetch(uct_ep_h ep, unsigned op, uint8_t size, uint64_t value, uint64_t compare, void *result,
                          uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp)
{
    struct uct_ha_amo_request request = {
        .address = remote_addr, .operand = value, .compare = compare, .op = (uint8_t)op, .size = size};

    return issue(ep, &request, rkey, result, comp);
}

ucs_status_t uct_ha_ep_atomic32_post(uct_ep_h ep, unsigned op, uint32_t value, uint64_t remote_addr, uct_rkey_t rkey)
{
    return post(ep, op, sizeof(value), value, remote_addr, rkey);
}

ucs_status_t uct_ha_ep_atomic64_post(uct_ep_h ep, unsigned op, uint64_t value, uint64_t remote_addr, uct_rkey_t rkey)
{
    return post(ep, op, sizeof(value), value, remote_addr, rkey);
}

ucs_status_t uct_ha_ep_atomic32_fetch(uct_ep_h ep, unsigned op, uint32_t value, uint32_t *result, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp)
{
    return fetch(ep, op, sizeof(value), value, 0, result, remote_addr, rkey, comp);
}

ucs_status_t uct_ha_ep_atomic64_fetch(uct_ep_h ep, unsigned op, uint64_t value, uint64_t *result, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp)
{
    return fetch(ep, op, sizeof(value), value, 0, result, remote_addr, rkey, comp);
}

ucs_status_t uct_ha_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
                                      uct_rkey_t rkey, uint32_t *result, uct_completion_t *comp)
{
    return fetch(ep, UCT_ATOMIC_OP_CSWAP, sizeof(swap), swap, compare, result, remote_addr, rkey, comp);
}

ucs_status_t uct_ha_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
                                      uct_rkey_t rkey, uint64_t *result, uct_completion_t *comp)
{
    return fetch(ep, UCT_ATOMIC_OP_CSWAP, sizeof(swap), swap, compare, result, remote_addr, rkey, comp);
}
