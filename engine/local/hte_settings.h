/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SETTINGS_H_
#define HTE_SETTINGS_H_

/* Options of an engine: one table is parser, help and documentation. */

#include "engine/include/hte.h"

/* Whether processes of one host reach each other without UCX (wire/hte_near.h). */
enum hte_same_host { HTE_SAME_HOST_AUTO, HTE_SAME_HOST_ON, HTE_SAME_HOST_OFF };
/* What a connection has to be. */
enum hte_require { HTE_REQUIRE_ANY, HTE_REQUIRE_RDMA, HTE_REQUIRE_SAME_HOST };

/* How bytes get to the other side, see wire/hte_letter.h: as the connection's transports allow; by UCX's put and get,
 * whether in hardware or not; by letters, even where hardware could. */
enum hte_moves { HTE_MOVES_AUTO, HTE_MOVES_RMA, HTE_MOVES_LETTERS };

struct hte_settings {
    uint64_t                 threads;
    uint64_t                 slice_size, run_size, fragment_size, split_size;
    uint64_t                 window;
    uint64_t                 retry_count;
    uint64_t                 slice_timeout_ms;
    uint64_t                 poll_us;
    uint64_t                 policy;    /* enum hte_policy */
    uint64_t                 moves;     /* enum hte_moves */
    uint64_t                 same_host; /* enum hte_same_host, never AUTO: that is decided here */
    uint64_t                 require;   /* enum hte_require */
    uint64_t                 rail_errors, rail_window_ms, rail_pause_ms, rail_pause_max_ms;
    uint64_t                 pretouch_size;
    uint64_t                 handshake_timeout_ms, handshake_max, connect_timeout_ms, shutdown_timeout_ms;
    uint64_t                 keepalive_ms;
    uint64_t                 notify_max, segments_max, batches_max;
    uint64_t                 metrics_interval_ms;
    char                    *devices, *topology_file, *cluster, *metrics_file, *secret; /* "" = not set */
    const struct hte_option *ucx; /* of the caller's array, keys with "UCX_"; valid during hte_create() */
    size_t                   n_options;
};

/* Defaults, then environment, then config->options. */
int  hte_settings_init(struct hte_settings *settings, const struct hte_config *config);
void hte_settings_cleanup(struct hte_settings *settings);

#endif
