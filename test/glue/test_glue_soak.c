/* SPDX-License-Identifier: BSD-3-Clause */
#include "glue_tests.h"

int glue_soak(void)
{
    return 0;
}
