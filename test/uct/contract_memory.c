/* SPDX-License-Identifier: BSD-3-Clause */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

int memory_usable(const struct side *side)
{
    return (side->md_attr.cap.flags & (UCT_MD_FLAG_REG | UCT_MD_FLAG_ALLOC)) != 0;
}

static void allocate(struct memory *memory, struct side *owner)
{
    uct_alloc_method_t     method = UCT_ALLOC_METHOD_MD;
    uct_mem_alloc_params_t params;

    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                        UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE | UCT_MEM_ALLOC_PARAM_FIELD_NAME |
                        UCT_MEM_ALLOC_PARAM_FIELD_ADDRESS;
    params.flags     = UCT_MD_MEM_ACCESS_ALL;
    params.mem_type  = UCS_MEMORY_TYPE_HOST;
    params.mds.mds   = &owner->md;
    params.mds.count = 1;
    params.name      = "contract";
    if (expect_status(uct_mem_alloc(memory->length, &method, 1, &params, &memory->allocated), UCS_OK,
                      "uct_mem_alloc")) {
        memory->bytes = memory->allocated.address;
        memory->memh  = memory->allocated.memh;
    }
}

struct memory memory_open(struct side *owner, struct side *user, size_t length)
{
    struct memory memory = {.length = length, .memh = UCT_MEM_HANDLE_NULL};
    uint8_t       packed[256];

    if (owner->md_attr.cap.flags & UCT_MD_FLAG_REG) {
        memory.bytes = malloc(length);
        (void)expect_status(uct_md_mem_reg(owner->md, memory.bytes, length, UCT_MD_MEM_ACCESS_ALL, &memory.memh),
                            UCS_OK, "uct_md_mem_reg");
    } else if (memory_usable(owner)) {
        allocate(&memory, owner);
    }
    if (memory.bytes == NULL) {
        abort();
    }
    memory.remote = user != NULL && owner->md_attr.rkey_packed_size <= sizeof(packed) &&
                    expect_status(uct_md_mkey_pack(owner->md, memory.memh, packed), UCS_OK, "uct_md_mkey_pack") &&
                    expect_status(uct_rkey_unpack(user->component, packed, &memory.rkey), UCS_OK, "uct_rkey_unpack");
    return memory;
}

void memory_close(struct memory *memory, struct side *owner, struct side *user)
{
    if (memory->remote) {
        (void)expect_status(uct_rkey_release(user->component, &memory->rkey), UCS_OK, "uct_rkey_release");
    }
    if (memory->allocated.address != NULL) {
        (void)expect_status(uct_mem_free(&memory->allocated), UCS_OK, "uct_mem_free");
    } else {
        (void)expect_status(uct_md_mem_dereg(owner->md, memory->memh), UCS_OK, "uct_md_mem_dereg");
        free(memory->bytes);
    }
    memset(memory, 0, sizeof(*memory));
}

/* ---- contents --------------------------------------------------------------------------------- */

uint8_t pattern(unsigned seed, size_t i)
{
    return (uint8_t)(1 + seed * 89 + i * 7 + (i >> 8) * 3 + (i >> 16));
}

void fill(uint8_t *bytes, unsigned seed, size_t from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = pattern(seed, from + i);
    }
}

int same(const uint8_t *bytes, unsigned seed, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != pattern(seed, i)) {
            return expect(0, "byte %zu of %zu is 0x%02x, not 0x%02x", i, length, bytes[i], pattern(seed, i));
        }
    }
    return 1;
}

int blank(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0) {
            return expect(0, "byte %zu behind the end was written", i);
        }
    }
    return 1;
}
