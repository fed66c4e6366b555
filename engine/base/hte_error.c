/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char detail[512];

int hte_fail(int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    return error;
}

const char *hte_error_detail(void)
{
    return detail;
}

const char *hte_error_string(int error)
{
    static const char *const text[] = {
        [-HTE_OK]                     = "success",
        [-HTE_ERR_INVALID_ARGUMENT]   = "invalid argument",
        [-HTE_ERR_TOO_MANY_REQUESTS]  = "too many requests for this batch",
        [-HTE_ERR_NOT_REGISTERED]     = "address not registered",
        [-HTE_ERR_BATCH_BUSY]         = "batch has unfinished requests",
        [-HTE_ERR_DEVICE_NOT_FOUND]   = "device not found",
        [-HTE_ERR_OVERLAP]            = "memory overlaps registered memory",
        [-HTE_ERR_DNS]                = "host name cannot be resolved",
        [-HTE_ERR_SOCKET]             = "socket error",
        [-HTE_ERR_MALFORMED_JSON]     = "malformed JSON",
        [-HTE_ERR_HANDSHAKE_REJECTED] = "handshake rejected by the peer",
        [-HTE_ERR_METADATA]           = "metadata store error",
        [-HTE_ERR_ENDPOINT]           = "connection failed",
        [-HTE_ERR_CONTEXT]            = "UCX cannot be initialized",
        [-HTE_ERR_NUMA]               = "no such NUMA node",
        [-HTE_ERR_MEMORY]             = "out of memory or memory cannot be registered",
        [-HTE_ERR_NOT_IMPLEMENTED]    = "not implemented",
        [-HTE_ERR_UNKNOWN_SEGMENT]    = "unknown segment",
        [-HTE_ERR_DEAD_PEER]          = "peer is gone",
        [-HTE_ERR_RANGE]              = "remote range is not in a registered buffer",
        [-HTE_ERR_ZERO_LENGTH]        = "zero length",
        [-HTE_ERR_BAD_HANDLE]         = "bad handle",
        [-HTE_ERR_MEMORY_BUSY]        = "memory is used by unfinished requests",
        [-HTE_ERR_PERMISSION]         = "remote buffer does not allow this",
        [-HTE_ERR_TIMEOUT]            = "timed out",
        [-HTE_ERR_CANCELED]           = "canceled",
        [-HTE_ERR_LIMIT]              = "limit reached",
        [-HTE_ERR_EXISTS]             = "name is taken",
    };
    if (error > 0 || error <= -(int)(sizeof(text) / sizeof(text[0])) || text[-error] == NULL) {
        return "unknown error";
    }
    return text[-error];
}

#define TEXT_OF(number)   #number
#define NUMBER_TEXT(name) TEXT_OF(name)

const char *hte_version(void)
{
    return NUMBER_TEXT(HTE_VERSION_MAJOR) "." NUMBER_TEXT(HTE_VERSION_MINOR) "." NUMBER_TEXT(HTE_VERSION_PATCH);
}

int hte_fail_why(int error, const struct hte_why *why)
{
    return error == HTE_OK ? HTE_OK : hte_fail(error, "%s", why->text);
}
