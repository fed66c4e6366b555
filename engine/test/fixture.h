/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FIXTURE_H_
#define FIXTURE_H_

/* An engine with SIZE bytes of registered memory, and a target in another process whose segment it has open. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/include/hte.h"
#include "target.h"

#define K        1024ull
#define M        (1024 * K)
#define SIZE     (8 * M)
#define PATIENCE 90000 /* ms: of a sanitizer on a machine with other work */

struct fixture {
    struct hte_engine *engine;
    struct target      target;
    hte_segment_t      segment;
    char              *memory; /* SIZE, registered */
};

/* Prints what went wrong; returns error. */
int check_(int error, const char *what, int line);
#define OK(call) assert_int_equal(check_(call, #call, __LINE__), HTE_OK)

void create(struct hte_engine **engine, const struct hte_option *options, size_t count);
void open_with(struct fixture *f, const struct hte_option *options, size_t n_options,
               const struct target_buffer *buffers, unsigned n_buffers);
void open_fixture(struct fixture *f);  /* no options; one buffer of SIZE */
void close_fixture(struct fixture *f); /* the target was stopped or killed before */

/* Offsets are in f->memory, and from the target's first buffer. */
struct hte_request request(const struct fixture *f, int opcode, size_t local, size_t remote, size_t length);
/* A batch of its own: submit, wait, free. */
struct hte_batch_status transfer(const struct fixture *f, const struct hte_request *requests, size_t count);
void                    transfer_ok(const struct fixture *f, const struct hte_request *requests, size_t count);

uint64_t posts_of(const struct fixture *f); /* of its engine, so far */

#endif
