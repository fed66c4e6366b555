/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

ucp_mem_h remote_map(struct torture *t, void *address, size_t size)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = address,
        .length     = size,
    };
    ucp_mem_h memh;

    if (ucp_mem_map(t->run->context, &params, &memh) != UCS_OK) {
        fprintf(stderr, "ha_torture: cannot register %zu bytes\n", size);
        exit(EXIT_USAGE);
    }
    return memh;
}

/* Address, size of the packed key, packed key. Returns the bytes used. */
size_t remote_pack(struct torture *t, char *at, size_t room, const void *address, ucp_mem_h memh)
{
    uint64_t words[2] = {(uint64_t)(uintptr_t)address, 0};
    void    *key;
    size_t   size;

    if (ucp_rkey_pack(t->run->context, memh, &key, &size) != UCS_OK || size + sizeof(words) > room) {
        fprintf(stderr, "ha_torture: cannot pack a remote key\n");
        exit(EXIT_USAGE);
    }
    words[1] = size;
    memcpy(at, words, sizeof(words));
    memcpy(at + sizeof(words), key, size);
    ucp_rkey_buffer_release(key);
    return sizeof(words) + size;
}

size_t remote_unpack(struct torture *t, const char *at, size_t size, struct remote *remote)
{
    uint64_t words[2];

    memcpy(words, at, sizeof(words));
    remote->address = words[0];
    if (sizeof(words) + words[1] > size || ucp_ep_rkey_unpack(t->ep, at + sizeof(words), &remote->rkey) != UCS_OK) {
        fprintf(stderr, "ha_torture: cannot unpack the peer's remote key\n");
        exit(EXIT_USAGE);
    }
    return sizeof(words) + words[1];
}
