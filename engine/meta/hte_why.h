/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_WHY_H_
#define HTE_WHY_H_

/*
 * How the metadata part fails: a code for the program, a sentence for the
 * human. Every function of engine/meta returns 0 or one of these negative
 * codes, and explains itself in `why` when the caller passed one (NULL is
 * allowed everywhere). Nothing is printed.
 */

enum hte_meta_code {
    HTE_META_OK              = 0,
    HTE_META_INVALID         = -1,  /* an argument: the caller's fault */
    HTE_META_NO_MEMORY       = -2,
    HTE_META_DNS             = -3,  /* a name that does not resolve */
    HTE_META_SOCKET          = -4,  /* refused, reset, unreachable, no free port */
    HTE_META_TIMEOUT         = -5,  /* the other side did not answer in time */
    HTE_META_MALFORMED       = -6,  /* not JSON, or a field that is missing, of a wrong type or out of bounds */
    HTE_META_REJECTED        = -7,  /* the peer refused: wrong or missing secret, version, its handler said no */
    HTE_META_STORE           = -8,  /* the metadata server answered with an error of its own */
    HTE_META_NOT_FOUND       = -9,  /* no such key, no such segment */
    HTE_META_NOT_IMPLEMENTED = -10, /* built without the library that this URL needs */
    HTE_META_TOO_BIG         = -11  /* more than a frame, a value or a list may hold */
};

#define HTE_WHY_MAX 320

struct hte_why {
    char text[HTE_WHY_MAX]; /* one line without the newline; "" after success */
};

/* Writes the sentence and returns `code`, so that a failing function can end in
 * `return hte_why_set(why, HTE_META_SOCKET, "connect to %s: %s", ...)`. */
int hte_why_set(struct hte_why *why, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
