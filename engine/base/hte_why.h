/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_WHY_H_
#define HTE_WHY_H_

/*
 * How the metadata part fails: a code for the program (enum hte_error), a
 * sentence for the human. Every function of engine/meta that returns int
 * returns HTE_OK or one of these, and explains itself in `why` when the caller
 * passed one (NULL is allowed everywhere). Nothing is printed.
 *
 *   INVALID_ARGUMENT    the caller's fault
 *   MEMORY              none left
 *   DNS, SOCKET         the name of a peer does not resolve; it cannot be reached, or hung up; no free port
 *   TIMEOUT             the peer did not answer in time
 *   MALFORMED_JSON      not JSON, or a field that is missing, of a wrong type or out of bounds: it is named
 *   HANDSHAKE_REJECTED  the peer refused, or was refused: secret, version, seal
 *   METADATA            the store cannot be reached, or answered with an error of its own
 *   UNKNOWN_SEGMENT     no such key, no such segment
 *   NOT_IMPLEMENTED     built without the library that this needs
 *   LIMIT               more than a frame, a value or a list may hold
 */

#include "engine/include/hte.h"

#define HTE_WHY_MAX 320

struct hte_why {
    char text[HTE_WHY_MAX]; /* one line without the newline; "" after success */
};

/* Writes the sentence and returns `code`, so that a failing function can end in
 * `return hte_why_set(why, HTE_ERR_SOCKET, "connect to %s: %s", ...)`. */
int hte_why_set(struct hte_why *why, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
