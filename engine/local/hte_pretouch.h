/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PRETOUCH_H_
#define HTE_PRETOUCH_H_

#include <stdint.h>

/*
 * Make the pages of large memory present, by several threads at a time, because registration faults them in
 * one after the other. Contents do not change. Below `min_length`, or with 0,
 * nothing happens; nor for memory that this process may not write.
 */
void hte_pretouch(void *addr, uint64_t length, uint64_t min_length);

#endif
