/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "core/hte_pick.h"

static int by_address(const void *a, const void *b)
{
    const struct hte_desc_buffer *left = a, *right = b;

    return (left->addr > right->addr) - (left->addr < right->addr);
}

/* FNV-1a over the workers' addresses. */
static uint64_t fingerprint(const struct hte_descriptor *descriptor)
{
    uint64_t             hash = 14695981039346656037ull;
    const unsigned char *bytes;
    uint32_t             i;
    size_t               k;

    for (i = 0; i < descriptor->num_workers; ++i) {
        bytes = descriptor->workers[i].address.bytes;
        for (k = 0; k < descriptor->workers[i].address.length; ++k) {
            hash = (hash ^ bytes[k]) * 1099511628211ull;
        }
    }
    return hash;
}

/* What UCX reads in any case, before the first length that is inside. */
#define ADDRESS_MIN 10 /* version, identity of the worker, first device */
#define KEY_MIN     9  /* map of domains, kind of memory */
/* The longest single step that UCX takes forward is 256 bytes, and what it reads there is shorter than as much again.
 * */
#define PADDING 1024

void *hte_blob_padded(const struct hte_blob *blob)
{
    char *copy = malloc(blob->length + PADDING);

    if (copy != NULL) {
        memcpy(copy, blob->bytes, blob->length);
        memset(copy + blob->length, 0, PADDING);
    }
    return copy;
}

static int check_keys(const struct hte_desc_buffer *buffer, const char *name, uint32_t index)
{
    uint32_t i;

    for (i = 0; i < buffer->num_keys; ++i) {
        if (buffer->keys[i].length < KEY_MIN) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': buffers[%u] has a key of %zu bytes", name,
                            index, buffer->keys[i].length);
        }
    }
    return HTE_OK;
}

/* What the rest of the engine relies on, beyond the bounds that the parser has checked. */
static int check(const struct hte_descriptor *descriptor, unsigned rails, const char *name)
{
    const struct hte_desc_buffer *buffer;
    uint32_t                      i;

    if (rails == 0 || rails > HTE_RAILS_MAX || descriptor->num_workers == 0 || descriptor->num_workers % rails != 0) {
        return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': %u workers on %u devices make no sense", name,
                        descriptor->num_workers, rails);
    }
    for (i = 0; i < descriptor->num_workers; ++i) {
        if (descriptor->workers[i].context != i % rails) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': workers[%u].context is %u instead of %u", name,
                            i, descriptor->workers[i].context, i % rails);
        }
        if (descriptor->workers[i].address.length < ADDRESS_MIN) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': workers[%u] has an address of %zu bytes", name,
                            i, descriptor->workers[i].address.length);
        }
    }
    for (i = 0; i < descriptor->num_buffers; ++i) {
        buffer = &descriptor->buffers[i];
        if (buffer->num_keys != rails) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': buffers[%u] has %u keys for %u devices", name,
                            i, buffer->num_keys, rails);
        }
        if (i > 0 && buffer[-1].addr + buffer[-1].length > buffer->addr) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "descriptor of '%s': buffers[%u] overlaps another", name, i);
        }
        if (check_keys(buffer, name, i) != HTE_OK) {
            return HTE_ERR_MALFORMED_JSON;
        }
    }
    return HTE_OK;
}

int hte_view_create(struct hte_descriptor *descriptor, const char *name, uint64_t serial, struct hte_view **view_p)
{
    struct hte_view *view;
    unsigned         rails = descriptor->num_devices;
    int              error;

    if (descriptor->num_buffers > 0) {
        qsort(descriptor->buffers, descriptor->num_buffers, sizeof(descriptor->buffers[0]), by_address);
    }
    error = check(descriptor, rails, name);
    view  = error == HTE_OK ? calloc(1, sizeof(*view)) : NULL;
    if (view == NULL) {
        hte_descriptor_destroy(descriptor);
        return error != HTE_OK ? error : hte_fail(HTE_ERR_MEMORY, "no memory for a descriptor");
    }
    atomic_init(&view->refs, 1);
    view->incarnation = fingerprint(descriptor);
    view->serial      = serial;
    view->rails       = rails;
    view->threads     = descriptor->num_workers / rails;
    view->descriptor  = descriptor;
    *view_p           = view;
    return HTE_OK;
}

void hte_view_put(struct hte_view *view)
{
    if (view != NULL) {
        hte_view_put_many(view, 1);
    }
}

void hte_view_put_many(struct hte_view *view, uint32_t count)
{
    if (atomic_fetch_sub(&view->refs, count) == count) {
        hte_descriptor_destroy(view->descriptor);
        free(view);
    }
}

long hte_view_find(const struct hte_view *view, uint64_t addr)
{
    const struct hte_desc_buffer *buffers = view->descriptor->buffers;
    long                          low = 0, high = (long)view->descriptor->num_buffers - 1, middle;

    while (low <= high) {
        middle = low + (high - low) / 2;
        if (addr < buffers[middle].addr) {
            high = middle - 1;
        } else if (addr - buffers[middle].addr >= buffers[middle].length) {
            low = middle + 1;
        } else {
            return middle;
        }
    }
    return -1;
}

static bool is_allowed(const struct hte_desc_buffer *buffer, bool is_write)
{
    return buffer->permission == HTE_PERM_GLOBAL_RW || (!is_write && buffer->permission == HTE_PERM_GLOBAL_RO);
}

int hte_view_check(const struct hte_view *view, uint64_t addr, uint64_t length, bool is_write)
{
    const struct hte_desc_buffer *buffer;
    uint64_t                      room;
    long                          index = hte_view_find(view, addr);

    for (; index >= 0 && index < (long)view->descriptor->num_buffers; ++index) {
        buffer = &view->descriptor->buffers[index];
        if (buffer->addr > addr) {
            return HTE_ERR_RANGE;
        }
        if (!is_allowed(buffer, is_write)) {
            return HTE_ERR_PERMISSION;
        }
        room = buffer->length - (addr - buffer->addr);
        if (length <= room) {
            return HTE_OK;
        }
        addr += room;
        length -= room;
    }
    return HTE_ERR_RANGE;
}

static bool has_same_keys(const struct hte_desc_buffer *a, const struct hte_desc_buffer *b)
{
    uint32_t i;

    if (a->id != b->id) {
        return false;
    }
    for (i = 0; i < a->num_keys; ++i) {
        if (a->keys[i].length != b->keys[i].length ||
            memcmp(a->keys[i].bytes, b->keys[i].bytes, a->keys[i].length) != 0) {
            return false;
        }
    }
    return true;
}

int hte_view_recheck(const struct hte_view *old, const struct hte_view *view, uint64_t addr, uint64_t length,
                     bool is_write)
{
    int  error = hte_view_check(view, addr, length, is_write);
    long was = hte_view_find(old, addr), is = hte_view_find(view, addr);

    if (error != HTE_OK) {
        return error;
    }
    if (was < 0 || is < 0 || old->rails != view->rails ||
        !has_same_keys(&old->descriptor->buffers[was], &view->descriptor->buffers[is])) {
        return HTE_ERR_RANGE;
    }
    return HTE_OK;
}
