/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_mapping.h"

#include "base/hte_error.h"

/* What peers need not do is not asked for. UCX 1.13 takes no notice and asks for everything; that nobody gets a
 * key of LOCAL memory holds there, too. */
static unsigned protection(int permission)
{
    static const unsigned local = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;

    switch (permission) {
    case HTE_PERM_LOCAL:
        return local;
    case HTE_PERM_GLOBAL_RO:
        return local | UCP_MEM_MAP_PROT_REMOTE_READ;
    default:
        return local | UCP_MEM_MAP_PROT_REMOTE_READ | UCP_MEM_MAP_PROT_REMOTE_WRITE;
    }
}

static int map_on(struct hte_rail *rail, const struct hte_region *region, struct hte_mapping *mapping)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_PROT |
                      (region->is_gpu ? UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE : 0),
        .address     = (void *)region->addr,
        .length      = region->length,
        .prot        = protection(region->permission),
        .memory_type = UCS_MEMORY_TYPE_CUDA,
    };
    ucp_mem_h    memh;
    ucs_status_t status = ucp_mem_map(rail->context, &params, &memh);

    if (status == UCS_OK) {
        mapping->memh = memh;
    }
    if (status == UCS_OK && region->permission != HTE_PERM_LOCAL) {
        status = ucp_rkey_pack(rail->context, memh, &mapping->rkey, &mapping->rkey_length);
    }
    if (status == UCS_OK) {
        return HTE_OK;
    }
    return hte_fail(HTE_ERR_MEMORY,
                    "UCX cannot register %p + %llu on %s: %s "
                    "(mapped by the process? locked memory limit, `ulimit -l`?)",
                    (void *)region->addr, (unsigned long long)region->length, rail->name, ucs_status_string(status));
}

int hte_region_map(struct hte_rails *rails, struct hte_region *region)
{
    unsigned i;
    int      error = HTE_OK;

    for (i = 0; i < rails->count && error == HTE_OK; ++i) {
        error = map_on(&rails->rail[i], region, &region->mapping[i]);
    }
    if (error != HTE_OK) {
        hte_region_unmap(rails, region);
    }
    return error;
}

void hte_region_unmap(struct hte_rails *rails, struct hte_region *region)
{
    unsigned i;

    for (i = 0; i < rails->count; ++i) {
        if (region->mapping[i].rkey != NULL) {
            ucp_rkey_buffer_release(region->mapping[i].rkey);
        }
        if (region->mapping[i].memh != NULL) {
            ucp_mem_unmap(rails->rail[i].context, region->mapping[i].memh);
        }
        region->mapping[i] = (struct hte_mapping){.memh = NULL};
    }
}
