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
#include <sys/uio.h>

#include "hte_region.h"

/* HTE_OK, or RANGE: some of it is not mapped. */
int hte_access_copy(void *to, const void *from, size_t length);
/* The same into several ranges, or out of them; as many bytes as they have. */
int hte_access_scatter(const struct iovec *to, unsigned count, const void *from);
int hte_access_gather(void *to, const struct iovec *from, unsigned count);

/* HTE_OK; RANGE: not all of them in this registration, or not mapped any more; PERMISSION. */
int hte_access_write(struct hte_regions *regions, uint64_t region, const struct iovec *to, unsigned count,
                     const void *bytes);
int hte_access_read(struct hte_regions *regions, uint64_t region, const struct iovec *from, unsigned count,
                    void *bytes);

#endif
