/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_HMAC_H_
#define HTE_HMAC_H_

/* HMAC-SHA256, by libcrypto. The only file pair that knows which library that is. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTE_HMAC_LEN     32
#define HTE_HMAC_HEX_LEN (2 * HTE_HMAC_LEN)

struct hte_bytes {
    const void *bytes;
    size_t      length;
};

/* False when the build has no libcrypto: then hte_hmac() always fails. */
bool hte_hmac_is_built(void);

/* Of the pieces one behind the other. False when the library refuses, which it does only without memory. */
bool hte_hmac(const void *key, size_t key_length, const struct hte_bytes *pieces, int num_pieces,
              uint8_t mac[HTE_HMAC_LEN]);

/* Takes the same time whatever differs. */
bool hte_hmac_equal(const uint8_t a[HTE_HMAC_LEN], const uint8_t b[HTE_HMAC_LEN]);

/* Overwrites; not left out by the compiler. */
void hte_wipe(void *bytes, size_t length);

void hte_hex_encode(const void *bytes, size_t length, char *text);
/* Exactly 2 * length characters of 0-9a-f. */
bool hte_hex_decode(const char *text, void *bytes, size_t length);

#endif
