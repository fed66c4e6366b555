/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_H_
#define PEER_H_

/* The other process of a test: an engine through transfer_engine_c.h with one registered buffer, that obeys. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_SIZE  ((size_t)4 << 20)
#define PEER_GUARD 4096 /* bytes behind it, of the same allocation and not registered: nobody may write there */

struct peer {
    pid_t    pid;
    int      orders, answers;
    char     name[64]; /* what getLocalIpAndPort() gave there */
    uint64_t addr;
};

/* First thing in main(): does not return in the peer's process. */
void peer_main(int argc, char **argv);

void peer_start(struct peer *peer);
void peer_stop(struct peer *peer); /* ends it in the ordinary way, and fails the test when it has complaints */
void peer_signal(struct peer *peer, int signal); /* SIGSTOP and SIGKILL are waited for */

void peer_fill(struct peer *peer, uint32_t seed);
/* Whether [offset, offset + length) is the pattern, and the guard is whole. */
int peer_verify(struct peer *peer, size_t offset, size_t length, uint32_t seed);
/* How many notifications it has got since it was asked last; the last one as "name/msg". */
int peer_notifications(struct peer *peer, char *text, size_t size);
/* It sends one to the segment of that name. Returns what genNotifyInEngine() did. */
int peer_notify(struct peer *peer, const char *segment);

void *buffer_new(void); /* PEER_SIZE bytes and their guard */
void  pattern_fill(void *buffer, uint32_t seed);
int   pattern_verify(const void *buffer, size_t offset, size_t length, uint32_t seed);

#endif
