/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ACCESS_H_
#define HTE_ACCESS_H_

/*
 * What peers want of registered memory where no hardware does it for them: checked against what is registered at this
 * moment, and copied. When hte_memory_unregister() has returned, none of these touches the memory any more.
 *
 * Memory that is registered but was unmapped makes an error, and no signal: the kernel copies.
 */

#include <stddef.h>
#include <stdint.h>

#include "hte_region.h"

/* HTE_OK, or RANGE: some of it is not mapped. */
int hte_access_copy(void *to, const void *from, size_t length);

/* HTE_OK; RANGE: not in this registration, or not mapped any more; PERMISSION. */
int hte_access_write(struct hte_regions *regions, uint64_t region, uint64_t addr, const void *bytes, size_t length);
int hte_access_read(struct hte_regions *regions, uint64_t region, uint64_t addr, void *bytes, size_t length);

#endif
