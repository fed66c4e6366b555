/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHIM_ERROR_H_
#define SHIM_ERROR_H_

/* What a refused call says: a code of Mooncake's, a text for hteMooncakeError() and the log. */

/* After a call of libhte that returned `error`: keeps its words under the name of Mooncake's function. Returns
 * Mooncake's code: negative, and 0 for HTE_OK. */
int shim_result(const char *function, int error);

/* The same with words of our own. */
int shim_refuse(const char *function, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
