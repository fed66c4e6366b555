/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RAILS_H_
#define UCT_HA_RAILS_H_

/*
 * The rails of this host and who backs whom, as every memory domain of the
 * process sees them. What is learnt of the devices is kept for the process, so
 * that all domains come to the same pairs. No logging: callers know whom to tell.
 */

#include "topo/ha_topo_pair.h"
#include "verbs/ha_rail.h"

struct uct_ha_rails {
    struct ha_topo_rail   rail[HA_RAILS_MAX];
    struct ha_topo_choice choice[HA_RAILS_MAX];
    int                   num;
};

/* Names only; nothing else is known yet. Returns the number of rails. */
int uct_ha_rails_list(struct uct_ha_rails *rails);

/* Open every rail in turn and look where it is. A rail that does not open keeps
 * HA_LINK_NONE and is nobody's standby; then the next call looks again. */
void uct_ha_rails_learn(struct uct_ha_rails *rails, const struct ha_rail_opts *opts);

/* Fill in the choices: by `groups` (UCX_HA_RC_RAILS) if the user gave some, which
 * needs names only, else by topology, which needs uct_ha_rails_learn(). Returns
 * 0, or -EINVAL with a sentence that names the bad value. */
int uct_ha_rails_pair(struct uct_ha_rails *rails, const char *groups, char *error, size_t error_size);

#endif
