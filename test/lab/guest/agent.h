/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the agent and its client have in common: frames.
 *
 * A frame is: type (1 byte), id (4), length (4), payload; integers little-endian.
 *   to the agent:   X run (strings: cwd, number of variables, variables ..., arguments ...)   K kill   T set the clock
 * (8 byte ns) from the agent: S serving (text)   O stdout   E stderr   Q finished (4 byte exit status)
 */
#ifndef LAB_AGENT_H
#define LAB_AGENT_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_TCP_PORT 1022
#define FRAME_HEADER   9
#define FRAME_MAX      (1u << 20)

uint32_t get32(const uint8_t *p);
void     put32(uint8_t *p, uint32_t value);
int      write_all(int fd, const void *data, size_t length);
int      read_all(int fd, void *data, size_t length);
int      frame_send(int fd, char type, uint32_t id, const void *payload, size_t length);

/* Runs words on host by the agent there; returns its exit status. */
int rsh(const char *host, char **words);

#endif
