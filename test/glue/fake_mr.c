/* SPDX-License-Identifier: BSD-3-Clause */

/* Registered memory, and what a key gives access to. */

#include "fake_priv.h"

#include <stdlib.h>
#include <string.h>

int ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access, struct ha_mr **mr_p)
{
    struct ha_mr *mr = calloc(1, sizeof(*mr));
    int           status;

    fake_command(FAKE_CALL_MR_REG, rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_MR_REG, rail);
    if (status == 0) {
        fake.next_key += 2 + 2 * fake_draw(50);
        mr->rail   = rail;
        mr->addr   = (uintptr_t)addr;
        mr->length = length;
        mr->access = access;
        mr->key    = fake.next_key;
        mr->next   = fake.mrs;
        fake.mrs   = mr;
        fake.counts.mr_regs++;
        fake.counts.mr_regs_in_switch += fake.switching[rail->host] != NULL;
        fake.live++;
        *mr_p = mr;
    }
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(mr);
    }
    return status;
}

void ha_mr_dereg(struct ha_mr *mr)
{
    struct ha_mr **link;

    fake_command(FAKE_CALL_MR_DEREG, mr->rail);
    pthread_mutex_lock(&fake.lock);
    for (link = &fake.mrs; *link != mr; link = &(*link)->next) {
    }
    *link = mr->next;
    fake.live--;
    pthread_mutex_unlock(&fake.lock);
    free(mr);
}

uint32_t ha_mr_lkey(const struct ha_mr *mr)
{
    return mr->key;
}

uint32_t ha_mr_rkey(const struct ha_mr *mr)
{
    return mr->key + 1;
}

static void *memory(const struct ha_rail *rail, uint64_t addr, uint64_t length, uint32_t key, unsigned access)
{
    const struct ha_mr *mr;

    for (mr = fake.mrs; mr != NULL; mr = mr->next) {
        if (mr->key == key && mr->rail == rail) {
            return addr >= mr->addr && addr + length <= mr->addr + mr->length && (mr->access & access) == access
                       ? (void *)(uintptr_t)addr
                       : NULL;
        }
    }
    return NULL;
}

void *fake_local(const struct ha_rail *rail, uint64_t addr, uint64_t length, uint32_t lkey)
{
    void *at = memory(rail, addr, length, lkey, 0);

    fake.counts.bad_lkey += at == NULL;
    return at;
}

void *fake_remote(const struct ha_rail *rail, uint64_t addr, uint64_t length, uint32_t rkey, unsigned access)
{
    void *at = (rkey & 1) ? memory(rail, addr, length, rkey - 1, access) : NULL;

    fake.counts.bad_rkey += at == NULL;
    return at;
}
