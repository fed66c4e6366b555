/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ERROR_H_
#define HTE_ERROR_H_

/* The one error convention: a negative enum hte_error, and a sentence per thread. */

#include "engine/include/hte.h"
#include "hte_why.h"

/* Keeps the sentence for hte_error_detail() and returns `error`. */
int hte_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with the metadata part's sentence; HTE_OK stays HTE_OK. */
int hte_fail_why(int error, const struct hte_why *why);

#endif
