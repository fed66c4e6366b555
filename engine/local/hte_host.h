/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_HOST_H_
#define HTE_HOST_H_

/* Which kernel this process runs on, and where in it: two processes of one text can name each other by pid. */

#include <stddef.h>

#define HTE_HOST_MAX 127 /* bytes of the text */

/* Boot, namespace of pids, namespace of users; "" when the system does not tell. */
void hte_host_identity(char text[HTE_HOST_MAX + 1]);

#endif
