/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TARGET_H_
#define TARGET_H_

/* A target in a process of its own: registers buffers and obeys one-letter orders through a pipe. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TARGET_BUFFERS_MAX 4

struct target_buffer {
    size_t length;
    int    permission; /* enum hte_permission; -1 (of the last one only): kept back for target_register_more() */
};

struct target {
    pid_t    pid;
    int      orders, answers; /* pipes */
    char     name[256];       /* of its segment */
    uint64_t addr[TARGET_BUFFERS_MAX];
    size_t   length[TARGET_BUFFERS_MAX];
    unsigned count;
};

/* First thing in main(): in the target's process it does not return. In the test's own, a single argument is the name
 * of the test to run, or a pattern of names. */
void target_main(int argc, char **argv);

/* Buffers are one after the other in memory, without a gap. Peer to peer on 127.0.0.1. */
void target_start(struct target *target, const struct target_buffer *buffers, unsigned count);
/* After its end: another process under the same name, and where the system allows it with its buffers at the same
 * addresses: then 1. */
int  target_start_again(struct target *target, const struct target_buffer *buffers, unsigned count);
void target_kill(struct target *target);  /* SIGKILL, waited for */
void target_pause(struct target *target); /* SIGSTOP, waited for */
void target_resume(struct target *target);
/* Ends in the ordinary way; fails the test when its exit status is not 0. */
void target_stop(struct target *target);

/* Whether each byte of [offset, offset + length) of buffer `index` is pattern(seed, offset). */
int  target_verify(struct target *target, unsigned index, size_t offset, size_t length, uint32_t seed);
void target_fill(struct target *target, unsigned index, size_t offset, size_t length, uint32_t seed);
void target_register_more(struct target *target); /* the last of its buffers, which it kept back */
void target_unregister(struct target *target, unsigned index);
/* As if it were not mapped any more; whole pages. */
void target_protect(struct target *target, unsigned index, size_t offset, size_t length);
/* Number of notifications it got since asked last; the last one's text. */
int target_notifications(struct target *target, char *text, size_t size);

unsigned char pattern(uint32_t seed, size_t offset);
void          pattern_fill(void *buffer, size_t offset, size_t length, uint32_t seed);
int           pattern_verify(const void *buffer, size_t offset, size_t length, uint32_t seed);

#endif
