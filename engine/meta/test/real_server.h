/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REAL_SERVER_H_
#define REAL_SERVER_H_

/* Metadata servers as they are installed, started on a free port in a folder of their own. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct real_server {
    const char *kind;     /* "http", "redis", "etcd" */
    bool        keeps;    /* its data outlive a restart */
    char        url[128]; /* of the metadata */
    char        folder[64];
    uint16_t    port, peer_port;
    pid_t       pid; /* 0 = not running */
};

/* False when the kind is not installed, or not built: `reason` says so. Fails the test when it does not start. */
bool real_server_create(struct real_server *server, const char *kind, bool keeps, char *reason, size_t reason_size);
void real_server_destroy(struct real_server *server);

void real_server_stop(struct real_server *server);
void real_server_start(struct real_server *server); /* on the same port again; returns when it answers */

#endif
