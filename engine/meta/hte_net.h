/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NET_H_
#define HTE_NET_H_

/* TCP as the handshake needs it: addresses as text, everything with a deadline. No state. */

#include <stdbool.h>
#include <stdint.h>

#include "base/hte_why.h"

#define HTE_HOST_MAX         255
#define HTE_ADDRESS_TEXT_MAX (HTE_HOST_MAX + 9) /* "[host]:65535" and the zero byte */

/* "host", "host:port", "[v6]", "[v6]:port" or a bare v6 address. *port = 0 when there is none. */
int hte_net_split(const char *text, char host[HTE_HOST_MAX + 1], uint16_t *port, struct hte_why *why);
/* The inverse; brackets where they are needed. */
void hte_net_join(const char *host, uint16_t port, char text[HTE_ADDRESS_TEXT_MAX]);

/* Where peers are expected to reach this machine: what `host` resolves to when that is an address of this machine
 * and no loopback one ("localhost" and 127.x given as such excepted); else (also `host` = NULL) the source address
 * of the default route, else 127.0.0.1. Sends no packet but the resolver's. */
void hte_net_management_address(const char *host, char address[HTE_HOST_MAX + 1]);

/* A listening socket, close-on-exec and non-blocking, on the first free port of first..last, starting somewhere in
 * the middle, so that processes that start together do not queue for the same ones. HTE_ERR_SOCKET names the
 * address and the cause. */
int hte_net_listen(const char *host, uint16_t first, uint16_t last, int *fd, uint16_t *port, struct hte_why *why);

/* Milliseconds of the monotonic clock; deadlines are in it. */
int64_t hte_net_now(void);

/* A connected socket, close-on-exec and non-blocking. Tries every address that the name has. */
int hte_net_connect(const char *host, uint16_t port, int64_t deadline, const _Atomic bool *stop, int *fd,
                    struct hte_why *why);

/* Waits for poll(2) events; 0 when there is one, HTE_ERR_TIMEOUT at the deadline, HTE_ERR_CANCELED soon after *stop
 * became true (NULL: never does). */
int hte_net_wait(int fd, short events, int64_t deadline, const _Atomic bool *stop, struct hte_why *why);

#endif
