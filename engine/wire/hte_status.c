/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_status.h"

#include "engine/include/hte.h"

int hte_error_of_ucs(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return HTE_OK;
    case UCS_ERR_NO_MEMORY:
        return HTE_ERR_MEMORY;
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_REJECTED:
        return HTE_ERR_DEAD_PEER;
    case UCS_ERR_CANCELED:
        return HTE_ERR_ENDPOINT;
    default:
        return HTE_ERR_ENDPOINT;
    }
}
