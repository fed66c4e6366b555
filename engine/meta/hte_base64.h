/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_BASE64_H_
#define HTE_BASE64_H_

/* Base64 of RFC 4648, section 4: with padding, without line breaks. Pure. */

#include <stdbool.h>
#include <stddef.h>

/* Characters for `length` bytes, without the zero byte. */
static inline size_t hte_base64_length(size_t length)
{
    return (length + 2) / 3 * 4;
}

/* Writes hte_base64_length(length) characters and a zero byte to `text`. */
void hte_base64_encode(const void *bytes, size_t length, char *text);

/* `length` characters of text become at most length / 4 * 3 bytes; how many is stored in *bytes_length. False
 * for anything that hte_base64_encode() would not have written. */
bool hte_base64_decode(const char *text, size_t length, void *bytes, size_t *bytes_length);

#endif
