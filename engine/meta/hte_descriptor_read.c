/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_descriptor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hte_location.h"
#include "hte_base64.h"
#include "hte_json.h"

static int no_memory(struct hte_why *why)
{
    return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a segment descriptor");
}

static int copy_text(const char *text, char **copy, struct hte_why *why)
{
    *copy = strdup(text);
    return *copy != NULL ? 0 : no_memory(why);
}

static int read_text(const struct hte_json_at *at, const char *field, size_t max, char **copy, struct hte_why *why)
{
    const char *text;
    int         ret = hte_json_text(at, field, max, &text, why);

    return ret != 0 ? ret : copy_text(text, copy, why);
}

static int read_blob(const struct hte_json_at *at, const char *field, json_t *string, size_t max, struct hte_blob *blob,
                     struct hte_why *why)
{
    size_t length = json_string_length(string);

    if (!json_is_string(string) || length == 0) {
        return hte_json_complain(at, field, why, "base64 text is expected");
    }
    if (length > hte_base64_length(max)) {
        return hte_json_complain(at, field, why, "%zu characters, at most %zu are allowed", length,
                                 hte_base64_length(max));
    }
    blob->bytes = malloc(length / 4 * 3 + 1);
    if (blob->bytes == NULL) {
        return no_memory(why);
    }
    if (!hte_base64_decode(json_string_value(string), length, blob->bytes, &blob->length)) {
        return hte_json_complain(at, field, why, "not base64");
    }
    return 0;
}

/* Lists grow the count entry by entry, so that a half-read one can be destroyed. */
static int start_list(const struct hte_json_at *top, const char *field, size_t max, size_t entry_size, json_t **list,
                      void *entries, struct hte_why *why)
{
    void *room;
    int   ret = hte_json_list(top, field, max, list, why);

    if (ret != 0 || json_array_size(*list) == 0) {
        return ret;
    }
    room = calloc(json_array_size(*list), entry_size);
    if (room == NULL) {
        return no_memory(why);
    }
    memcpy(entries, &room, sizeof(room));
    return 0;
}

static int start_entry(json_t *list, const char *name, size_t index, struct hte_json_at *at, struct hte_why *why)
{
    at->object = json_array_get(list, index);
    at->list   = name;
    at->index  = index;
    if (!json_is_object(at->object)) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "%s[%zu]: not an object", name, index);
    }
    return 0;
}

static int read_worker(const struct hte_json_at *at, struct hte_desc_worker *worker, struct hte_why *why)
{
    uint64_t context;
    int      ret = hte_json_uint(at, "context", HTE_KEYS_MAX - 1, &context, why);

    if (ret != 0) {
        return ret;
    }
    worker->context = (uint32_t)context;
    return read_blob(at, "address", json_object_get(at->object, "address"), HTE_ADDRESS_MAX, &worker->address, why);
}

static int read_workers(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    struct hte_json_at at;
    json_t            *list;
    size_t             i;
    int ret = start_list(top, "workers", HTE_WORKERS_MAX, sizeof(*descriptor->workers), &list, &descriptor->workers,
                         why);

    for (i = 0; ret == 0 && i < json_array_size(list); i++) {
        ret = start_entry(list, "workers", i, &at, why);
        if (ret == 0) {
            ret = read_worker(&at, &descriptor->workers[descriptor->num_workers++], why);
        }
    }
    return ret;
}

static int read_device(const struct hte_json_at *at, struct hte_desc_device *device, struct hte_why *why)
{
    const char *gid;
    uint64_t    lid = 0;
    int         ret = read_text(at, "name", HTE_NAME_MAX, &device->name, why);

    if (ret == 0 && json_object_get(at->object, "lid") != NULL) {
        ret = hte_json_uint(at, "lid", UINT16_MAX, &lid, why);
    }
    if (ret == 0) {
        ret = hte_json_text_or_empty(at, "gid", HTE_GID_MAX, &gid, why);
    }
    if (ret != 0) {
        return ret;
    }
    device->lid = (uint32_t)lid;
    return copy_text(gid, &device->gid, why);
}

static int read_devices(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    struct hte_json_at at;
    json_t            *list;
    size_t             i;
    int ret = start_list(top, "devices", HTE_DEVICES_MAX, sizeof(*descriptor->devices), &list, &descriptor->devices,
                         why);

    for (i = 0; ret == 0 && i < json_array_size(list); i++) {
        ret = start_entry(list, "devices", i, &at, why);
        if (ret == 0) {
            ret = read_device(&at, &descriptor->devices[descriptor->num_devices++], why);
        }
    }
    return ret;
}

/* A list of device names becomes one of indices. */
static int read_choices(const struct hte_descriptor *descriptor, const char *location, json_t *names,
                        uint32_t *num_choices, uint32_t **choices, struct hte_why *why)
{
    const char *name;
    uint32_t    device;
    size_t      i;

    if (!json_is_array(names) || json_array_size(names) > HTE_DEVICES_MAX) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON,
                           "priority_matrix.%.*s: a list of at most %d device names is expected", HTE_LOCATION_MAX,
                           location, HTE_DEVICES_MAX);
    }
    *choices = calloc(json_array_size(names) + 1, sizeof(**choices));
    if (*choices == NULL) {
        return no_memory(why);
    }
    for (i = 0; i < json_array_size(names); i++) {
        name = json_string_value(json_array_get(names, i));
        for (device = 0; device < descriptor->num_devices; device++) {
            if (name != NULL && strcmp(descriptor->devices[device].name, name) == 0) {
                break;
            }
        }
        if (device == descriptor->num_devices) {
            return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "priority_matrix.%.*s: '%.64s' is no name in devices",
                               HTE_LOCATION_MAX, location, name != NULL ? name : "(not a string)");
        }
        (*choices)[(*num_choices)++] = device;
    }
    return 0;
}

static bool is_location(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && length <= HTE_LOCATION_MAX;
}

static int read_priority(const char *location, json_t *lists, struct hte_descriptor *descriptor, struct hte_why *why)
{
    struct hte_desc_priority *priority = &descriptor->priorities[descriptor->num_priorities++];
    int                       ret;

    if (!is_location(location) || json_array_size(lists) != 2) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "priority_matrix.%.*s: [[preferred], [available]] is expected",
                           HTE_LOCATION_MAX, location);
    }
    ret = copy_text(location, &priority->location, why);
    if (ret == 0) {
        ret = read_choices(descriptor, location, json_array_get(lists, 0), &priority->num_preferred,
                           &priority->preferred, why);
    }
    if (ret == 0) {
        ret = read_choices(descriptor, location, json_array_get(lists, 1), &priority->num_available,
                           &priority->available, why);
    }
    return ret;
}

static int read_priorities(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    json_t     *matrix = json_object_get(top->object, "priority_matrix");
    json_t     *lists;
    const char *location;
    int         ret;

    if (matrix == NULL) {
        return 0;
    }
    if (!json_is_object(matrix) || json_object_size(matrix) > HTE_PRIORITY_MAX) {
        return hte_json_complain(top, "priority_matrix", why, "an object of at most %d locations is expected",
                                 HTE_PRIORITY_MAX);
    }
    descriptor->priorities = calloc(json_object_size(matrix) + 1, sizeof(*descriptor->priorities));
    if (descriptor->priorities == NULL) {
        return no_memory(why);
    }
    json_object_foreach(matrix, location, lists)
    {
        ret = read_priority(location, lists, descriptor, why);
        if (ret != 0) {
            return ret;
        }
    }
    return 0;
}

/* Addresses are text: JSON's numbers end at 2^53 in many readers. */
static int read_addr(const struct hte_json_at *at, uint64_t *addr, struct hte_why *why)
{
    const char *text;
    char       *end;
    int         ret = hte_json_text(at, "addr", 18, &text, why);

    if (ret != 0) {
        return ret;
    }
    errno = 0;
    *addr = strtoull(text, &end, 16);
    if (errno != 0 || *end != '\0' || strncmp(text, "0x", 2) != 0 || text[2] == '\0') {
        return hte_json_complain(at, "addr", why, "'%s' is not of the form 0x7f0012345678", text);
    }
    return 0;
}

static int read_permission(const struct hte_json_at *at, enum hte_permission *permission, struct hte_why *why)
{
    static const char *const names[] = {"rw", "ro", "local"}; /* by value */
    const char              *text;
    size_t                   i;
    int                      ret = hte_json_text(at, "permission", 16, &text, why);

    for (i = 0; ret == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *permission = (enum hte_permission)i;
            return 0;
        }
    }
    return ret != 0 ? ret : hte_json_complain(at, "permission", why, "'%s' is not rw, ro or local", text);
}

/* Descriptors of earlier engines have none. */
static int read_optional(const struct hte_json_at *at, const char *field, uint64_t *value, struct hte_why *why)
{
    return json_object_get(at->object, field) == NULL ? 0 : hte_json_uint(at, field, INT64_MAX, value, why);
}

static int read_keys(const struct hte_json_at *at, struct hte_desc_buffer *buffer, struct hte_why *why)
{
    json_t *list;
    size_t  i;
    int     ret = start_list(at, "keys", HTE_KEYS_MAX, sizeof(*buffer->keys), &list, &buffer->keys, why);

    for (i = 0; ret == 0 && i < json_array_size(list); i++) {
        ret = read_blob(at, "keys", json_array_get(list, i), HTE_KEY_BYTES_MAX, &buffer->keys[buffer->num_keys++], why);
    }
    return ret;
}

/* For processes of the same host. */
static int read_place(const struct hte_json_at *at, struct hte_desc_buffer *buffer, struct hte_why *why)
{
    int ret = read_optional(at, "slot", &buffer->slot, why);

    if (ret == 0) {
        ret = read_optional(at, "file", &buffer->file, why);
    }
    if (ret == 0) {
        ret = read_optional(at, "file_inode", &buffer->file_inode, why);
    }
    if (ret == 0) {
        ret = read_optional(at, "file_offset", &buffer->file_offset, why);
    }
    return ret;
}

static int read_buffer(const struct hte_json_at *at, struct hte_desc_buffer *buffer, struct hte_why *why)
{
    int ret = read_text(at, "location", HTE_LOCATION_MAX, &buffer->location, why);

    if (ret == 0) {
        buffer->is_gpu = hte_location_is_gpu(buffer->location);
        ret            = read_addr(at, &buffer->addr, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(at, "length", HTE_LENGTH_MAX, &buffer->length, why);
    }
    if (ret == 0) {
        ret = read_optional(at, "id", &buffer->id, why);
    }
    if (ret == 0) {
        ret = read_permission(at, &buffer->permission, why);
    }
    if (ret == 0) {
        ret = read_keys(at, buffer, why);
    }
    if (ret == 0) {
        ret = read_place(at, buffer, why);
    }
    if (ret != 0) {
        return ret;
    }
    if (buffer->length == 0 || buffer->addr > UINT64_MAX - buffer->length) {
        return hte_json_complain(at, "length", why, "%llu bytes at 0x%llx are no range",
                                 (unsigned long long)buffer->length, (unsigned long long)buffer->addr);
    }
    return 0;
}

static int read_buffers(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    struct hte_json_at at;
    json_t            *list;
    size_t             i;
    int ret = start_list(top, "buffers", HTE_BUFFERS_MAX, sizeof(*descriptor->buffers), &list, &descriptor->buffers,
                         why);

    for (i = 0; ret == 0 && i < json_array_size(list); i++) {
        ret = start_entry(list, "buffers", i, &at, why);
        if (ret == 0) {
            ret = read_buffer(&at, &descriptor->buffers[descriptor->num_buffers++], why);
        }
    }
    return ret;
}

static int read_host(const struct hte_json_at *top, struct hte_desc_host *host, struct hte_why *why)
{
    int ret;

    if (json_object_get(top->object, "host") == NULL) {
        return 0;
    }
    ret = read_text(top, "host", HTE_IDENTITY_MAX, &host->identity, why);
    if (ret == 0) {
        ret = hte_json_uint(top, "host_pid", INT32_MAX, &host->pid, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(top, "host_board", INT32_MAX, &host->board, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(top, "host_guard", INT64_MAX, &host->guard, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(top, "host_secret", INT64_MAX, &host->secret, why);
    }
    return ret;
}

static int read_head(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    uint64_t format;
    int      ret = hte_json_uint(top, "format", UINT32_MAX, &format, why);

    if (ret == 0 && format != HTE_DESCRIPTOR_VERSION) {
        return hte_json_complain(top, "format", why, "%llu is not understood here, only %d is",
                                 (unsigned long long)format, HTE_DESCRIPTOR_VERSION);
    }
    if (ret == 0) {
        ret = read_text(top, "name", HTE_NAME_MAX, &descriptor->name, why);
    }
    if (ret == 0) {
        ret = read_text(top, "protocol", HTE_NAME_MAX, &descriptor->protocol, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(top, "version", INT64_MAX, &descriptor->version, why);
    }
    if (ret == 0) {
        ret = hte_json_uint(top, "timestamp", INT64_MAX, &descriptor->timestamp, why);
    }
    if (ret == 0) {
        ret = read_optional(top, "messages", &descriptor->letters, why);
    }
    if (ret == 0) {
        ret = read_host(top, &descriptor->host, why);
    }
    return ret;
}

static int read_all(const struct hte_json_at *top, struct hte_descriptor *descriptor, struct hte_why *why)
{
    int ret = read_head(top, descriptor, why);

    if (ret == 0) {
        ret = read_workers(top, descriptor, why);
    }
    if (ret == 0) {
        ret = read_devices(top, descriptor, why);
    }
    if (ret == 0) {
        ret = read_priorities(top, descriptor, why);
    }
    if (ret == 0) {
        ret = read_buffers(top, descriptor, why);
    }
    return ret;
}

int hte_descriptor_from_json(const char *text, size_t length, struct hte_descriptor **descriptor, struct hte_why *why)
{
    struct hte_json_at     top = {.list = NULL};
    struct hte_descriptor *found;
    int                    ret = hte_json_parse(text, length, &top.object, why);

    if (ret != 0) {
        return ret;
    }
    found = calloc(1, sizeof(*found));
    ret   = found != NULL ? read_all(&top, found, why) : no_memory(why);
    json_decref(top.object);
    if (ret != 0) {
        hte_descriptor_destroy(found);
        return ret;
    }
    *descriptor = found;
    return 0;
}
