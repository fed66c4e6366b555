/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_descriptor.h"

#include <stdlib.h>

static void destroy_buffer(struct hte_desc_buffer *buffer)
{
    uint32_t i;

    for (i = 0; i < buffer->num_keys; i++) {
        free(buffer->keys[i].bytes);
    }
    free(buffer->keys);
    free(buffer->location);
}

/* Also of one that is half built: lists are zeroed when they are allocated. */
void hte_descriptor_destroy(struct hte_descriptor *descriptor)
{
    uint32_t i;

    if (descriptor == NULL) {
        return;
    }
    for (i = 0; i < descriptor->num_workers; i++) {
        free(descriptor->workers[i].address.bytes);
    }
    for (i = 0; i < descriptor->num_devices; i++) {
        free(descriptor->devices[i].name);
        free(descriptor->devices[i].gid);
    }
    for (i = 0; i < descriptor->num_priorities; i++) {
        free(descriptor->priorities[i].location);
        free(descriptor->priorities[i].preferred);
        free(descriptor->priorities[i].available);
    }
    for (i = 0; i < descriptor->num_buffers; i++) {
        destroy_buffer(&descriptor->buffers[i]);
    }
    free(descriptor->workers);
    free(descriptor->devices);
    free(descriptor->priorities);
    free(descriptor->buffers);
    free(descriptor->host.identity);
    free(descriptor->name);
    free(descriptor->protocol);
    free(descriptor);
}
