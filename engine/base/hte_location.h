/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_LOCATION_H_
#define HTE_LOCATION_H_

#include <stdbool.h>
#include <string.h>

/* Memory of a GPU: no instruction of this process touches it, UCX alone moves it. */
static inline bool hte_location_is_gpu(const char *location)
{
    return location != NULL && strncmp(location, "cuda:", 5) == 0;
}

#endif
