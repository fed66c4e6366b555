/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

/* Buffers by size class. One that came back is poisoned at once: whoever still
 * reads it after completion sends rubbish, and is found out. The oldest one that
 * is free goes next, so that soon all have been used, and what UCX keeps
 * registered for them grows no more. */

#define CLASSES 4

static const uint32_t class_size[CLASSES] = {SLOT_SMALL_SIZE, 8192, 64 << 10, MAX_SIZE};

static const uint32_t class_count[CLASSES] = {1024, 128, 128, 128}; /* at the start */

static struct {
    struct buffer  *free;
    struct buffer **last; /* where the next free one is attached */
    uint32_t        used;
} pool[CLASSES];

void *must_alloc(size_t size)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, size) != 0) {
        fprintf(stderr, "ha_torture: no memory for %zu bytes\n", size);
        exit(EXIT_USAGE);
    }
    return memory;
}

/* Every second buffer starts at an odd address. */
static struct buffer *buffer_create(uint32_t class)
{
    static unsigned count;
    struct buffer  *buffer = must_alloc(sizeof(*buffer));
    unsigned        shift  = (count++ & 1) * 13;

    buffer->class = class;
    buffer->size  = class_size[class];
    buffer->data  = (char *)must_alloc(buffer->size + 64) + shift;
    memset(buffer->data, POISON, buffer->size);
    return buffer;
}

static void buffer_free(struct buffer *buffer)
{
    buffer->next              = NULL;
    *pool[buffer->class].last = buffer;
    pool[buffer->class].last  = &buffer->next;
}

void buffers_create(void)
{
    for (uint32_t class = 0; class < CLASSES; class ++) {
        pool[class].last = &pool[class].free;
        for (uint32_t i = 0; i < class_count[class]; i++) {
            buffer_free(buffer_create(class));
        }
    }
}

/* NULL when limit_large buffers of one of the two large classes are in use, or
 * all of medium size; limit_large = 0: never. */
struct buffer *buffer_get(uint32_t size, uint32_t limit_large)
{
    uint32_t class = 0;
    struct buffer *buffer;

    while (class_size[class] < size) {
        class ++;
    }
    if (limit_large != 0 &&
        ((class >= 2 && pool[class].used >= limit_large) || (class == 1 && pool[class].free == NULL))) {
        return NULL;
    }
    buffer = pool[class].free;
    if (buffer != NULL) {
        pool[class].free = buffer->next;
        if (pool[class].free == NULL) {
            pool[class].last = &pool[class].free;
        }
    } else {
        buffer = buffer_create(class);
    }
    pool[class].used++;
    return buffer;
}

void buffer_put_unpoisoned(struct buffer *buffer)
{
    buffer_free(buffer);
    pool[buffer->class].used--;
}

void buffer_put(struct buffer *buffer, uint32_t used)
{
    memset(buffer->data, POISON, used);
    buffer_put_unpoisoned(buffer);
}
