/* SPDX-License-Identifier: BSD-3-Clause */

/* Protection domains, memory regions, and copying by their keys. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

#define KEY_SHIFT 8 /* key = place in the table, and a number that tells it from earlier ones */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    if (pd != NULL) {
        pd->context = context;
        sc_count(SC_OBJECT_PD, 1);
    }
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    sc_count(SC_OBJECT_PD, -1);
    free(pd);
    return 0;
}

static int find_place(uint32_t *key)
{
    static uint32_t last;

    for (unsigned i = 0; i < SC_MR_MAX; i++) {
        last = (last + 1) % (SC_MR_MAX << KEY_SHIFT);
        if (last >= 1 && sc.mr[last % SC_MR_MAX] == NULL) {
            *key = (last % SC_MR_MAX) << KEY_SHIFT | (last / SC_MR_MAX & 0xff);
            return 0;
        }
    }
    return -1;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    struct sc_mr *mr;
    uint32_t      key;
    int           status = sc_fault_verb(SC_VERB_REG_MR);

    if (status != 0) {
        errno = status;
        return NULL;
    }
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE)) {
        errno = EINVAL;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (mr == NULL) {
        return NULL;
    }
    sc_lock(&sc.lock);
    if (find_place(&key) != 0) {
        sc_unlock(&sc.lock);
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    mr->base = (struct ibv_mr){
        .context = pd->context, .pd = pd, .addr = addr, .length = length, .lkey = key, .rkey = key};
    mr->iova                = iova;
    mr->access              = access;
    sc.mr[key >> KEY_SHIFT] = mr;
    sc_count(SC_OBJECT_MR, 1);
    sc_unlock(&sc.lock);
    return &mr->base;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    sc_lock(&sc.lock);
    sc.mr[mr->lkey >> KEY_SHIFT] = NULL;
    sc_count(SC_OBJECT_MR, -1);
    sc_unlock(&sc.lock);
    free(mr);
    return 0;
}

static void *lookup(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t length, unsigned access)
{
    struct sc_mr *mr = key >> KEY_SHIFT < SC_MR_MAX ? sc.mr[key >> KEY_SHIFT] : NULL;

    if (mr == NULL || mr->base.lkey != key || mr->base.pd != pd || (mr->access & access) != access || addr < mr->iova ||
        length > mr->base.length || addr - mr->iova > mr->base.length - length) {
        return NULL;
    }
    return (uint8_t *)mr->base.addr + (addr - mr->iova);
}

void *sc_memory_local(const struct ibv_pd *pd, uint32_t lkey, uint64_t addr, uint64_t length, unsigned access)
{
    return lookup(pd, lkey, addr, length, access);
}

void *sc_memory_remote(const struct ibv_pd *pd, uint32_t rkey, uint64_t addr, uint64_t length, unsigned access)
{
    return lookup(pd, rkey, addr, length, access);
}

int64_t sc_scatter(struct ibv_pd *pd, const struct ibv_sge *sge, unsigned num, uint64_t offset, const uint8_t *from,
                   uint64_t length)
{
    uint64_t left = length, part;
    uint8_t *to;

    for (unsigned i = 0; i < num && left > 0; i++) {
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        part = sge[i].length - offset < left ? sge[i].length - offset : left;
        to   = sc_memory_local(pd, sge[i].lkey, sge[i].addr + offset, part, IBV_ACCESS_LOCAL_WRITE);
        if (to == NULL) {
            return -1;
        }
        memcpy(to, from, part);
        from += part;
        left -= part;
        offset = 0;
    }
    return (int64_t)(length - left);
}

int sc_gather(struct ibv_pd *pd, const struct ibv_sge *sge, unsigned num, uint64_t offset, uint8_t *to, uint64_t length)
{
    uint64_t       part;
    const uint8_t *from;

    for (unsigned i = 0; i < num && length > 0; i++) {
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        part = sge[i].length - offset < length ? sge[i].length - offset : length;
        from = sc_memory_local(pd, sge[i].lkey, sge[i].addr + offset, part, 0);
        if (from == NULL) {
            return -1;
        }
        memcpy(to, from, part);
        to += part;
        length -= part;
        offset = 0;
    }
    return 0;
}
