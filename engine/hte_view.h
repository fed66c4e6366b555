/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_VIEW_H_
#define HTE_VIEW_H_

#include "core/hte_pick.h"
#include "hte_peer.h"

/* Takes the descriptor over, also when it fails. */
int hte_view_create(struct hte_descriptor *descriptor, const char *name, uint64_t serial, struct hte_view **view);

#endif
