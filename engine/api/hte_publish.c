/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_publish.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_error.h"
#include "hte_engine.h"
#include "wire/hte_letter.h"

/* The arrays are ours; what they point to belongs to the engine. */
struct draft {
    struct hte_descriptor    descriptor;
    struct hte_blob         *keys;
    uint32_t                *indices;
    struct hte_desc_priority priorities[HTE_LOCATIONS_MAX];
    struct hte_desc_device   devices[HTE_RAILS_MAX];
};

static void fill_workers(struct draft *draft, struct hte_engine *engine)
{
    struct hte_desc_worker     *worker = draft->descriptor.workers;
    const struct hte_lane_rail *mine;
    unsigned                    i, rail;

    for (i = 0; i < engine->workers.count; ++i) {
        for (rail = 0; rail < engine->rails.count; ++rail, ++worker) {
            mine                   = &hte_workers_lane(&engine->workers, i)->rail[rail];
            worker->context        = rail;
            worker->address.bytes  = mine->address;
            worker->address.length = mine->address_length;
        }
    }
    draft->descriptor.num_workers = engine->workers.count * engine->rails.count;
}

static void fill_devices(struct draft *draft, struct hte_engine *engine)
{
    static char no_gid[] = "";
    unsigned    rail;

    for (rail = 0; rail < engine->rails.count; ++rail) {
        draft->devices[rail] = (struct hte_desc_device){.name = engine->rails.rail[rail].name, .gid = no_gid};
    }
    draft->descriptor.devices     = draft->devices;
    draft->descriptor.num_devices = engine->rails.count;
}

static uint32_t list_rails(uint32_t mask, uint32_t *indices)
{
    uint32_t count = 0;

    for (; mask != 0; mask &= mask - 1) {
        indices[count++] = (uint32_t)__builtin_ctz(mask);
    }
    return count;
}

static void fill_priorities(struct draft *draft, struct hte_engine *engine)
{
    struct hte_location      *location;
    struct hte_desc_priority *priority;
    uint32_t                 *indices = draft->indices;
    unsigned                  i;

    for (i = 0; i < engine->topology.count; ++i) {
        location                = &engine->topology.location[i];
        priority                = &draft->priorities[i];
        priority->location      = location->name;
        priority->preferred     = indices;
        priority->num_preferred = list_rails(location->preferred, indices);
        indices += priority->num_preferred;
        priority->available     = indices;
        priority->num_available = list_rails(location->available, indices);
        indices += priority->num_available;
    }
    draft->descriptor.priorities     = draft->priorities;
    draft->descriptor.num_priorities = engine->topology.count;
}

static void fill_buffer(struct hte_desc_buffer *buffer, struct hte_blob *keys, struct hte_region *region,
                        unsigned rails)
{
    unsigned rail;

    buffer->location   = region->location;
    buffer->addr       = region->addr;
    buffer->length     = region->length;
    buffer->id         = region->id;
    buffer->permission = (enum hte_permission)region->permission;
    buffer->num_keys   = rails;
    buffer->keys       = keys;
    buffer->slot       = region->slot;
    if (region->file_inode != 0) {
        buffer->file        = (uint64_t)region->file;
        buffer->file_inode  = region->file_inode;
        buffer->file_offset = region->file_offset;
    }
    for (rail = 0; rail < rails; ++rail) {
        keys[rail] = (struct hte_blob){.bytes  = region->mapping[rail].rkey,
                                       .length = region->mapping[rail].rkey_length};
    }
}

/* With the regions' lock held. */
static void fill_buffers(struct draft *draft, struct hte_engine *engine)
{
    struct hte_descriptor *descriptor = &draft->descriptor;
    unsigned               rails      = engine->rails.count;
    size_t                 i;

    for (i = 0; i < engine->regions.count; ++i) {
        if (engine->regions.list[i]->permission != HTE_PERM_LOCAL) {
            fill_buffer(&descriptor->buffers[descriptor->num_buffers], &draft->keys[descriptor->num_buffers * rails],
                        engine->regions.list[i], rails);
            ++descriptor->num_buffers;
        }
    }
}

static uint64_t microseconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void fill_host(struct hte_desc_host *host, struct hte_engine *engine)
{
    if (engine->board.page != NULL) {
        *host = (struct hte_desc_host){.identity = engine->rails.host,
                                       .pid      = (uint64_t)getpid(),
                                       .board    = (uint64_t)engine->board.fd,
                                       .guard    = (uint64_t)engine->board.guard,
                                       .secret   = engine->board.guard->secret};
    }
}

static int send_draft(struct draft *draft, struct hte_engine *engine)
{
    static char    protocol[] = "ucx";
    struct hte_why why        = {""};

    fill_workers(draft, engine);
    fill_devices(draft, engine);
    fill_priorities(draft, engine);
    fill_host(&draft->descriptor.host, engine);
    draft->descriptor.name      = (char *)hte_meta_name(engine->meta);
    draft->descriptor.protocol  = protocol;
    draft->descriptor.version   = ++engine->version;
    draft->descriptor.timestamp = microseconds();
    draft->descriptor.letters   = HTE_LETTERS_VERSION;
    return hte_fail_why(hte_meta_publish(engine->meta, &draft->descriptor, &why), &why);
}

/* With the publish lock held: regions are not destroyed meanwhile. */
static int publish(struct hte_engine *engine, struct draft *draft)
{
    size_t count;
    bool   ok;

    pthread_rwlock_rdlock(&engine->regions.lock);
    count                     = engine->regions.count;
    draft->descriptor.buffers = calloc(count + 1, sizeof(*draft->descriptor.buffers));
    draft->keys               = calloc(count * engine->rails.count + 1, sizeof(*draft->keys));
    draft->descriptor.workers = calloc(engine->workers.count * engine->rails.count, sizeof(*draft->descriptor.workers));
    draft->indices            = calloc(HTE_LOCATIONS_MAX * HTE_RAILS_MAX, sizeof(*draft->indices));
    ok = draft->descriptor.buffers != NULL && draft->keys != NULL && draft->descriptor.workers != NULL &&
         draft->indices != NULL;
    if (ok) {
        fill_buffers(draft, engine);
    }
    pthread_rwlock_unlock(&engine->regions.lock);
    return ok ? send_draft(draft, engine) : hte_fail(HTE_ERR_MEMORY, "no memory for a descriptor");
}

int hte_publish(struct hte_engine *engine)
{
    struct draft *draft = calloc(1, sizeof(*draft));
    int           error;

    if (draft == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for a descriptor");
    }
    error = publish(engine, draft);
    free(draft->descriptor.buffers);
    free(draft->descriptor.workers);
    free(draft->keys);
    free(draft->indices);
    free(draft);
    return error;
}
