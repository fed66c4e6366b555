/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte.h"
#include "transfer_engine_c.h"

static _Thread_local char last_error[1024];

const char *hteMooncakeError(void)
{
    return last_error;
}

/* Mooncake's numbers. Where it has no such error: the one that its users look for in the same place. */
static int code_of(int error)
{
    static const int codes[] = {
        [-HTE_ERR_INVALID_ARGUMENT]   = -1,
        [-HTE_ERR_TOO_MANY_REQUESTS]  = -2,
        [-HTE_ERR_NOT_REGISTERED]     = -3,
        [-HTE_ERR_BATCH_BUSY]         = -4,
        [-HTE_ERR_DEVICE_NOT_FOUND]   = -6,
        [-HTE_ERR_OVERLAP]            = -7,
        [-HTE_ERR_DNS]                = -101,
        [-HTE_ERR_SOCKET]             = -102,
        [-HTE_ERR_MALFORMED_JSON]     = -103,
        [-HTE_ERR_HANDSHAKE_REJECTED] = -104,
        [-HTE_ERR_METADATA]           = -200,
        [-HTE_ERR_ENDPOINT]           = -201,
        [-HTE_ERR_CONTEXT]            = -202,
        [-HTE_ERR_NUMA]               = -300,
        [-HTE_ERR_MEMORY]             = -302,
        [-HTE_ERR_NOT_IMPLEMENTED]    = -303,
        [-HTE_ERR_UNKNOWN_SEGMENT]    = -200,
        [-HTE_ERR_DEAD_PEER]          = -201,
        [-HTE_ERR_RANGE]              = -3,
        [-HTE_ERR_MEMORY_BUSY]        = -4,
        [-HTE_ERR_TIMEOUT]            = -102,
        [-HTE_ERR_CANCELED]           = -202,
        [-HTE_ERR_LIMIT]              = -2,
        [-HTE_ERR_EXISTS]             = -200,
    };
    if (error > 0 || error <= -(int)(sizeof(codes) / sizeof(codes[0])) || codes[-error] == 0) {
        return -1;
    }
    return codes[-error];
}

/* Only where the user asks for it: a library does not print by itself. */
static void write_log(void)
{
    const char *path = getenv("HTE_MOONCAKE_LOG");
    FILE       *log;

    if (path == NULL || path[0] == '\0') {
        return;
    }
    if (strcmp(path, "stderr") == 0) {
        fprintf(stderr, "transfer_engine (libhte): %s\n", last_error);
        return;
    }
    log = fopen(path, "ae");
    if (log != NULL) {
        fprintf(log, "transfer_engine (libhte): %s\n", last_error);
        fclose(log);
    }
}

int shim_refuse(const char *function, int error, const char *format, ...)
{
    int     length = snprintf(last_error, sizeof(last_error), "%s: %s: ", function, hte_error_string(error));
    va_list args;

    va_start(args, format);
    vsnprintf(last_error + length, sizeof(last_error) - (size_t)length, format, args);
    va_end(args);
    write_log();
    return code_of(error);
}

int shim_result(const char *function, int error)
{
    return error == HTE_OK ? 0 : shim_refuse(function, error, "%s", hte_error_detail());
}
