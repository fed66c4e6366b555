/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STORE_OPTIONS_H_
#define HTE_STORE_OPTIONS_H_

/* What the user of a store asks for, and what it takes at most; its driver gets the same. */

#include <stddef.h>

#define HTE_STORE_KEY_MAX   512
#define HTE_STORE_VALUE_MAX (64u << 20)

struct hte_store_options {
    unsigned connect_ms; /* of that, to connect; 0 = 5000 */
    unsigned answer_ms;  /* for a call; 0 = 5000 */
    size_t   max_value;  /* bytes of text, both ways; 0 = 1 MiB */
};

#endif
