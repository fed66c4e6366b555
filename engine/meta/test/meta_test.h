/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef META_TEST_H_
#define META_TEST_H_

/* What the tests of the metadata share: cmocka with its prelude, and a descriptor to send around. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hte_meta.h"

#define TEST_SECRET "0123456789abcdef0123456789abcdef"

/* A call that must succeed, or fail with `code` and a sentence that holds `part`. `why` is of the caller. */
#define OK(call)                                                   \
    do {                                                           \
        int ok_ret = (call);                                       \
        if (ok_ret != 0) {                                         \
            fail_msg("%s: error %d: %s", #call, ok_ret, why.text); \
        }                                                          \
    } while (0)
#define FAILS(code, part, call)                                                                             \
    do {                                                                                                    \
        int fails_ret = (call);                                                                             \
        if (fails_ret != (code) || strstr(why.text, part) == NULL) {                                        \
            fail_msg("%s: error %d '%s' instead of %d '...%s...'", #call, fails_ret, why.text, code, part); \
        }                                                                                                   \
    } while (0)

/* Two devices, two workers, `num_buffers` buffers; every list filled, `version` in it. */
struct hte_descriptor *sample_descriptor(const char *name, uint32_t num_buffers, uint64_t version);
void                   assert_same_descriptor(const struct hte_descriptor *a, const struct hte_descriptor *b);

#endif
