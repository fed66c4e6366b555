/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NIXL_STATUS_H_
#define HTE_NIXL_STATUS_H_

#include "common/nixl_log.h"
#include "hte.h"
#include "nixl_types.h"

/* NIXL has fewer words. */
inline nixl_status_t hte_nixl_status(int error)
{
    switch (error) {
    case HTE_OK:
        return NIXL_SUCCESS;
    case HTE_ERR_DEAD_PEER:
    case HTE_ERR_ENDPOINT:
    case HTE_ERR_TIMEOUT:
    case HTE_ERR_SOCKET:
        return NIXL_ERR_REMOTE_DISCONNECT;
    case HTE_ERR_CANCELED:
        return NIXL_ERR_CANCELED;
    case HTE_ERR_NOT_IMPLEMENTED:
        return NIXL_ERR_NOT_SUPPORTED;
    case HTE_ERR_NOT_REGISTERED:
    case HTE_ERR_RANGE:
    case HTE_ERR_UNKNOWN_SEGMENT:
        return NIXL_ERR_NOT_FOUND;
    case HTE_ERR_PERMISSION:
    case HTE_ERR_OVERLAP:
    case HTE_ERR_MEMORY_BUSY:
    case HTE_ERR_HANDSHAKE_REJECTED:
        return NIXL_ERR_NOT_ALLOWED;
    case HTE_ERR_INVALID_ARGUMENT:
    case HTE_ERR_ZERO_LENGTH:
    case HTE_ERR_BAD_HANDLE:
    case HTE_ERR_DNS:
        return NIXL_ERR_INVALID_PARAM;
    default:
        return NIXL_ERR_BACKEND;
    }
}

/* With the sentence that says what is wrong, to NIXL's log. For the call of libhte that this thread has just made. */
inline nixl_status_t hte_nixl_told(int error, const char *what)
{
    if (error != HTE_OK) {
        NIXL_ERROR << "HTE: " << what << ": " << hte_error_string(error) << ": " << hte_error_detail();
    }
    return hte_nixl_status(error);
}

#endif
