/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_RUN_H_
#define HTE_RUN_H_

/* What all worker threads of an engine share. */

#include <stdatomic.h>
#include <stdbool.h>

#include "hte_queue.h"
#include "local/hte_region.h"
#include "local/hte_settings.h"
#include "remote/hte_refresh.h"
#include "wire/hte_rail.h"

struct hte_run {
    const struct hte_settings *settings;
    struct hte_rails          *rails;
    struct hte_regions        *regions;
    struct hte_refresh        *refresh;
    struct hte_queue           queue;
    _Atomic bool               is_stopping; /* the threads cancel everything and end */
};

#endif
