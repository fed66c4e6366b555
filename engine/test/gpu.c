/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "gpu.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

struct gpu gpu;

#define BLOCKS     16
#define EXPORT     __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static struct {
    char  *seen, *inside;
    size_t length;
} blocks[BLOCKS];
static int n_blocks;

void gpu_reset(int is_there)
{
    gpu = (struct gpu){.is_there = is_there};
}

void *gpu_alloc(size_t length)
{
    int file = memfd_create("gpu", MFD_CLOEXEC);

    assert(n_blocks < BLOCKS && file >= 0 && ftruncate(file, (off_t)length) == 0);
    blocks[n_blocks].length = length;
    blocks[n_blocks].seen   = mmap(NULL, length, PROT_NONE, MAP_SHARED, file, 0);
    blocks[n_blocks].inside = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert(blocks[n_blocks].seen != MAP_FAILED && blocks[n_blocks].inside != MAP_FAILED);
    close(file);
    return blocks[n_blocks++].seen;
}

char *gpu_inside(const void *addr)
{
    int i;

    for (i = 0; i < n_blocks; ++i) {
        if ((uintptr_t)addr - (uintptr_t)blocks[i].seen < blocks[i].length) {
            return blocks[i].inside + ((const char *)addr - blocks[i].seen);
        }
    }
    return NULL;
}

void gpu_free_all(void)
{
    while (n_blocks > 0) {
        --n_blocks;
        munmap(blocks[n_blocks].seen, blocks[n_blocks].length);
        munmap(blocks[n_blocks].inside, blocks[n_blocks].length);
    }
}

/* ---- what UCX does with it ---- */

EXPORT ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t status = REAL(ucp_context_query)(context, attr);

    if (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) {
        ++gpu.in_query;
        attr->memory_types &= ~(uint64_t)UCS_BIT(UCS_MEMORY_TYPE_CUDA);
        attr->memory_types |= gpu.is_there ? UCS_BIT(UCS_MEMORY_TYPE_CUDA) : 0;
    }
    return status;
}

static int is_told(uint64_t has_type, ucs_memory_type_t type)
{
    return has_type && type == UCS_MEMORY_TYPE_CUDA;
}

EXPORT ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh)
{
    ucp_mem_map_params_t real   = *params;
    char                *inside = gpu_inside(params->address);
    int                  told = is_told(params->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE, params->memory_type);

    if (told != (inside != NULL)) {
        __atomic_fetch_add(&gpu.mistakes, 1, __ATOMIC_RELAXED);
    }
    if (inside != NULL) {
        ++gpu.mapped;
        real.address = inside;
        real.field_mask &= ~(uint64_t)UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    }
    return REAL(ucp_mem_map)(context, &real, memh);
}

static int is_of_gpu(const void *buffer, uint64_t remote, const ucp_request_param_t *param)
{
    int told = is_told(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE, param->memory_type);

    if (told != (gpu_inside(buffer) != NULL)) {
        __atomic_fetch_add(&gpu.mistakes, 1, __ATOMIC_RELAXED);
    }
    return gpu_inside(buffer) != NULL || gpu_inside((void *)remote) != NULL;
}

static void *place_of(const void *addr)
{
    char *inside = gpu_inside(addr);

    return inside != NULL ? inside : (void *)(uintptr_t)addr;
}

EXPORT ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote, ucp_rkey_h rkey,
                                    const ucp_request_param_t *param)
{
    if (!is_of_gpu(buffer, remote, param)) {
        return REAL(ucp_put_nbx)(ep, buffer, count, remote, rkey, param);
    }
    __atomic_fetch_add(&gpu.moved, 1, __ATOMIC_RELAXED);
    memcpy(place_of((void *)remote), place_of(buffer), count);
    return NULL;
}

EXPORT ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote, ucp_rkey_h rkey,
                                    const ucp_request_param_t *param)
{
    if (!is_of_gpu(buffer, remote, param)) {
        return REAL(ucp_get_nbx)(ep, buffer, count, remote, rkey, param);
    }
    __atomic_fetch_add(&gpu.moved, 1, __ATOMIC_RELAXED);
    memcpy(place_of(buffer), place_of((void *)remote), count);
    return NULL;
}

EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                        const void *buffer, size_t count, const ucp_request_param_t *param)
{
    __atomic_fetch_add(&gpu.letters, 1, __ATOMIC_RELAXED);
    return REAL(ucp_am_send_nbx)(ep, id, header, header_length, buffer, count, param);
}
