/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PUBLISH_H_
#define HTE_PUBLISH_H_

struct hte_engine;

/* Make what is registered now known to peers. Blocks with a store. */
int hte_publish(struct hte_engine *engine);

#endif
