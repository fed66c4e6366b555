/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_descriptor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "hte_base64.h"

/*
 * Writing is checked by reading: what this file makes goes through
 * hte_descriptor_from_json() before it leaves, so that there is one place
 * that knows the bounds. Here only memory is watched.
 *
 * Jansson's *_new functions take over the reference that they are given, also
 * when they fail and also when it is NULL: errors need to be looked at only once, at the end.
 */

static json_t *blob_to_json(const struct hte_blob *blob)
{
    char   *text = malloc(hte_base64_length(blob->length) + 1);
    json_t *json;

    if (text == NULL) {
        return NULL;
    }
    hte_base64_encode(blob->bytes, blob->length, text);
    json = json_string(text);
    free(text);
    return json;
}

static json_t *workers_to_json(const struct hte_descriptor *descriptor)
{
    json_t  *list = json_array();
    uint32_t i;

    for (i = 0; i < descriptor->num_workers; i++) {
        json_array_append_new(list, json_pack("{s:I, s:o}", "context", (json_int_t)descriptor->workers[i].context,
                                              "address", blob_to_json(&descriptor->workers[i].address)));
    }
    return list;
}

static json_t *devices_to_json(const struct hte_descriptor *descriptor)
{
    json_t                       *list = json_array();
    const struct hte_desc_device *device;
    uint32_t                      i;

    for (i = 0; i < descriptor->num_devices; i++) {
        device = &descriptor->devices[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "name", device->name, "lid", (json_int_t)device->lid,
                                              "gid", device->gid != NULL ? device->gid : ""));
    }
    return list;
}

static json_t *choices_to_json(const struct hte_descriptor *descriptor, uint32_t num_choices, const uint32_t *choices)
{
    json_t  *list = json_array();
    uint32_t i;

    for (i = 0; i < num_choices; i++) {
        json_array_append_new(list, choices[i] < descriptor->num_devices
                                        ? json_string(descriptor->devices[choices[i]].name)
                                        : json_null());
    }
    return list;
}

static json_t *priorities_to_json(const struct hte_descriptor *descriptor)
{
    json_t                         *matrix = json_object();
    const struct hte_desc_priority *row;
    uint32_t                        i;

    for (i = 0; i < descriptor->num_priorities; i++) {
        row = &descriptor->priorities[i];
        json_object_set_new(matrix, row->location,
                            json_pack("[o, o]", choices_to_json(descriptor, row->num_preferred, row->preferred),
                                      choices_to_json(descriptor, row->num_available, row->available)));
    }
    return matrix;
}

static json_t *buffer_to_json(const struct hte_desc_buffer *buffer)
{
    static const char *const permissions[] = {"rw", "ro", "local"};
    json_t                  *keys          = json_array();
    json_t                  *json;
    char                     addr[32];
    uint32_t                 i;

    for (i = 0; i < buffer->num_keys; i++) {
        json_array_append_new(keys, blob_to_json(&buffer->keys[i]));
    }
    snprintf(addr, sizeof(addr), "0x%" PRIx64, buffer->addr);
    json = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "location", buffer->location, "addr", addr, "length",
                     (json_int_t)buffer->length, "id", (json_int_t)buffer->id, "permission",
                     (unsigned)buffer->permission < 3 ? permissions[buffer->permission] : "?", "keys", keys);
    if (buffer->slot != 0) {
        json_object_set_new(json, "slot", json_integer((json_int_t)buffer->slot));
    }
    if (buffer->file_inode != 0) {
        json_object_set_new(json, "file", json_integer((json_int_t)buffer->file));
        json_object_set_new(json, "file_inode", json_integer((json_int_t)buffer->file_inode));
        json_object_set_new(json, "file_offset", json_integer((json_int_t)buffer->file_offset));
    }
    return json;
}

/* Where it is missing, engines of before it are understood as well. */
static json_t *with_host(json_t *json, const struct hte_desc_host *host)
{
    if (host->identity != NULL) {
        json_object_set_new(json, "host", json_string(host->identity));
        json_object_set_new(json, "host_pid", json_integer((json_int_t)host->pid));
        json_object_set_new(json, "host_board", json_integer((json_int_t)host->board));
        json_object_set_new(json, "host_guard", json_integer((json_int_t)host->guard));
        json_object_set_new(json, "host_secret", json_integer((json_int_t)host->secret));
    }
    return json;
}

static json_t *buffers_to_json(const struct hte_descriptor *descriptor)
{
    json_t  *list = json_array();
    uint32_t i;

    for (i = 0; i < descriptor->num_buffers; i++) {
        json_array_append_new(list, buffer_to_json(&descriptor->buffers[i]));
    }
    return list;
}

static json_t *descriptor_to_json(const struct hte_descriptor *descriptor)
{
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "format", HTE_DESCRIPTOR_VERSION, "name",
                     descriptor->name, "protocol", descriptor->protocol, "version", (json_int_t)descriptor->version,
                     "timestamp", (json_int_t)descriptor->timestamp, "messages", (json_int_t)descriptor->letters,
                     "workers", workers_to_json(descriptor), "devices", devices_to_json(descriptor), "priority_matrix",
                     priorities_to_json(descriptor), "buffers", buffers_to_json(descriptor));
}

/* An entry that could not be made is missing in its list: counts tell. */
static int check_written(const struct hte_descriptor *wanted, const char *text, struct hte_why *why)
{
    struct hte_descriptor *again   = NULL;
    struct hte_why         problem = {.text = ""};
    int                    ret     = hte_descriptor_from_json(text, strlen(text), &again, &problem);

    if (ret == 0 && (again->num_workers != wanted->num_workers || again->num_devices != wanted->num_devices ||
                     again->num_priorities != wanted->num_priorities || again->num_buffers != wanted->num_buffers)) {
        ret = hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                          "descriptor of %s: an entry is not UTF-8, stands twice or found no memory", wanted->name);
    } else if (ret == HTE_ERR_MALFORMED_JSON) {
        ret = hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "descriptor: %s", problem.text);
    } else if (ret != 0) {
        hte_why_set(why, ret, "%s", problem.text);
    }
    hte_descriptor_destroy(again);
    return ret;
}

int hte_descriptor_to_json(const struct hte_descriptor *descriptor, char **text, struct hte_why *why)
{
    json_t *json;
    char   *written;
    int     ret;

    if (descriptor->name == NULL || descriptor->protocol == NULL) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "descriptor: name and protocol must be set");
    }
    json = with_host(descriptor_to_json(descriptor), &descriptor->host);
    if (json == NULL) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "descriptor of %.64s: a text is not UTF-8, or no memory",
                           descriptor->name);
    }
    written = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (written == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for the JSON of a segment descriptor");
    }
    ret = check_written(descriptor, written, why);
    if (ret != 0) {
        free(written);
        return ret;
    }
    *text = written;
    return 0;
}
