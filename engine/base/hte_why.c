/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_why.h"

#include <stdarg.h>
#include <stdio.h>

int hte_why_set(struct hte_why *why, int code, const char *format, ...)
{
    va_list args;

    if (why != NULL) {
        va_start(args, format);
        vsnprintf(why->text, sizeof(why->text), format, args);
        va_end(args);
    }
    return code;
}
