/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GPU_H_
#define GPU_H_

/*
 * A made-up GPU, and the part of UCX that knows it. Its memory has addresses at which this process can neither read
 * nor write: whoever touches it by himself dies. UCP's put and get, replaced here, move it when they are told of what
 * kind it is, within this process; what is no GPU's goes on to UCX.
 */

#include <stddef.h>
#include <stdint.h>

struct gpu {
    int is_there;                /* UCX knows CUDA */
    int in_query, mapped, moved; /* contexts that were asked; registrations; operations */
    int mistakes;                /* memory of it that was said to be ordinary, or the reverse */
    int letters;                 /* active messages of any kind */
};

extern struct gpu gpu;

void  gpu_reset(int is_there);
void *gpu_alloc(size_t length);     /* as the program sees it */
char *gpu_inside(const void *addr); /* as the GPU sees it: the same bytes; NULL: not its memory */
void  gpu_free_all(void);

#endif
