/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_RAIL_H_
#define HTE_RAIL_H_

/*
 * A rail of the engine: one UCP context on the devices of one choice.
 *
 * UCX chooses the devices of an endpoint when it is created, for its whole life. So that the engine can choose per
 * slice, each choice is a context of its own (option "devices"). Without that option there is one rail, and UCX
 * decides: right where the transport below has several rails itself, as ha_rc does.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "core/hte_pick.h"
#include "core/hte_rail_state.h"
#include "local/hte_device.h"
#include "local/hte_host.h"
#include "local/hte_origin.h"
#include "local/hte_settings.h"

struct hte_rail {
    char          name[HTE_DEVICE_NAME_MAX];
    ucp_context_h context;
    bool          knows_gpu; /* UCX can move memory of a GPU */

    pthread_mutex_t        lock; /* guards health */
    struct hte_rail_health health;

    _Atomic uint64_t paused_until; /* copy of the health's, for readers without the lock */
    _Atomic uint64_t inflight, transferred, errors, pauses;
};

struct hte_rails {
    struct hte_rail      rail[HTE_RAILS_MAX];
    unsigned             count;
    bool                 is_open;
    struct hte_rail_rule rule;
    ucp_datatype_t       letter_type;
    char                 host[HTE_HOST_MAX + 1]; /* hte_host_identity(); "": near connections are not wanted */
    uint64_t             origin;  /* this process for those that its letters write to; nobody can guess it */
    _Atomic uint64_t     epoch;   /* see local/hte_origin.h */
    struct hte_origins   origins; /* the others, who write here */
};

/* A rail for each of the devices. */
int  hte_rails_open(struct hte_rails *rails, const struct hte_settings *settings, const struct hte_devices *devices);
void hte_rails_close(struct hte_rails *rails);

/* Can UCX move memory of a GPU on all of them? */
bool hte_rails_know_gpu(const struct hte_rails *rails);

/* Bit of each rail that is paused. */
uint32_t hte_rails_paused(struct hte_rails *rails, uint64_t now);
/* A slice failed on it and then went through on another one. */
void hte_rail_charge(struct hte_rails *rails, unsigned rail, uint64_t now);
void hte_rail_clear(struct hte_rails *rails, unsigned rail, uint64_t now);

#endif
