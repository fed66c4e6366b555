/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stats.h"

struct uct_ha_stats uct_ha_stats_total;
