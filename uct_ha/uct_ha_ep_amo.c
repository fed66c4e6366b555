/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_amo.h"
#include "uct_ha_ep.h"

static ucs_status_t post(uct_ep_h ep, unsigned op, uint8_t size, uint64_t value,
                         uint64_t remote_addr, uct_rkey_t rkey)
{
    struct uct_ha_amo_request request = { .address = remote_addr, .operand = value,
                                          .op = (uint8_t)op, .size = size };

    return uct_ha_amo_send(uct_ha_ep_conn(ep), &request, rkey, NULL, NULL);
}

static ucs_status_t fetch(uct_ep_h ep, unsigned op, uint8_t size, uint64_t value, uint64_t compare,
                          void *result, uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp)
{
    struct uct_ha_amo_request request = { .address = remote_addr, .operand = value,
                                          .compare = compare, .op = (uint8_t)op, .size = size };

    return uct_ha_amo_send(uct_ha_ep_conn(ep), &request, rkey, result, comp);
}

ucs_status_t uct_ha_ep_atomic32_post(uct_ep_h ep, unsigned op, uint32_t value,
                                     uint64_t remote_addr, uct_rkey_t rkey)
{
    return post(ep, op, sizeof(value), value, remote_addr, rkey);
}

ucs_status_t uct_ha_ep_atomic64_post(uct_ep_h ep, unsigned op, uint64_t value,
                                     uint64_t remote_addr, uct_rkey_t rkey)
{
    return post(ep, op, sizeof(value), value, remote_addr, rkey);
}

ucs_status_t uct_ha_ep_atomic32_fetch(uct_ep_h ep, unsigned op, uint32_t value, uint32_t *result,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp)
{
    return fetch(ep, op, sizeof(value), value, 0, result, remote_addr, rkey, comp);
}

ucs_status_t uct_ha_ep_atomic64_fetch(uct_ep_h ep, unsigned op, uint64_t value, uint64_t *result,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp)
{
    return fetch(ep, op, sizeof(value), value, 0, result, remote_addr, rkey, comp);
}

ucs_status_t uct_ha_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap,
                                      uint64_t remote_addr, uct_rkey_t rkey, uint32_t *result,
                                      uct_completion_t *comp)
{
    return fetch(ep, UCT_ATOMIC_OP_CSWAP, sizeof(swap), swap, compare, result, remote_addr, rkey,
                 comp);
}

ucs_status_t uct_ha_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap,
                                      uint64_t remote_addr, uct_rkey_t rkey, uint64_t *result,
                                      uct_completion_t *comp)
{
    return fetch(ep, UCT_ATOMIC_OP_CSWAP, sizeof(swap), swap, compare, result, remote_addr, rkey,
                 comp);
}
