/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include "abi/uct_ha_abi.h"

#include <sys/random.h>

uint64_t uct_ha_random(void)
{
    uint64_t value;

    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value)) {
        /* Early at boot, or a sandbox without the call: from time, place and process. */
        value = ucs_generate_uuid((uintptr_t)&value);
    }
    return value;
}
