/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BASE_H_
#define BENCH_BASE_H_

/* Says why, and ends the process. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
void must_do(int error, const char *what); /* dies of an enum hte_error */

double now_seconds(void);
double cpu_seconds(void);
void   flush_output(void);

#endif
