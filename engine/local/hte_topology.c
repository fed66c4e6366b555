/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <jansson.h>

#include "base/hte_error.h"
#include "base/hte_location.h"

/* ---- sysfs ---- */

static int read_number(const char *path, int otherwise)
{
    FILE *file = fopen(path, "re");
    int   number;

    if (file == NULL) {
        return otherwise;
    }
    if (fscanf(file, "%d", &number) != 1) {
        number = otherwise;
    }
    fclose(file);
    return number;
}

/* NUMA node of the first device of a rail, -1: not known. */
static int node_of(const char *rail)
{
    size_t length = strcspn(rail, ":+");
    char   path[256];
    int    node;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/device/numa_node", (int)length, rail);
    node = read_number(path, -1);
    if (node < 0) {
        snprintf(path, sizeof(path), "/sys/class/net/%.*s/device/numa_node", (int)length, rail);
        node = read_number(path, -1);
    }
    return node;
}

static bool has_node(int node)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
    return access(path, F_OK) == 0 || node == 0;
}

/* Rails of the node are preferred, others available; with none of its own all are preferred. */
static void discover(struct hte_topology *topology, const struct hte_devices *devices)
{
    struct hte_location *location;
    unsigned             i;
    int                  node;

    for (node = 0; node < HTE_LOCATIONS_MAX; ++node) {
        if (!has_node(node)) {
            continue;
        }
        location = &topology->location[topology->count++];
        snprintf(location->name, sizeof(location->name), "cpu:%d", node);
        for (i = 0; i < devices->count; ++i) {
            location->preferred |= (uint32_t)(node_of(devices->name[i]) == node) << i;
        }
        if (location->preferred == 0) {
            location->preferred = topology->all;
        }
        location->available = topology->all & ~location->preferred;
    }
}

/* ---- JSON ---- */

static int rail_of(const struct hte_devices *devices, const char *name)
{
    unsigned i;

    for (i = 0; i < devices->count; ++i) {
        if (strcmp(devices->name[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int parse_list(const struct hte_devices *devices, const char *location, json_t *list, uint32_t *mask)
{
    const char *name;
    size_t      i;
    int         rail;

    if (!json_is_array(list)) {
        return hte_fail(HTE_ERR_MALFORMED_JSON, "topology: '%s' is not [[preferred...],[available...]]", location);
    }
    for (i = 0; i < json_array_size(list); ++i) {
        name = json_string_value(json_array_get(list, i));
        if (name == NULL) {
            return hte_fail(HTE_ERR_MALFORMED_JSON, "topology: device %zu of '%s' is not a text", i, location);
        }
        rail = rail_of(devices, name);
        if (rail < 0) {
            return hte_fail(HTE_ERR_DEVICE_NOT_FOUND, "topology: '%s' names %s, which option devices does not list",
                            location, name);
        }
        *mask |= 1u << rail;
    }
    return HTE_OK;
}

static int parse_location(struct hte_topology *topology, const struct hte_devices *devices, const char *name,
                          json_t *value)
{
    struct hte_location *location = &topology->location[topology->count];
    int                  error;

    if (topology->count == HTE_LOCATIONS_MAX || strlen(name) >= sizeof(location->name)) {
        return hte_fail(HTE_ERR_MALFORMED_JSON, "topology: more than %d locations, or '%.70s' is too long",
                        HTE_LOCATIONS_MAX, name);
    }
    *location = (struct hte_location){.preferred = 0};
    strcpy(location->name, name);
    error = parse_list(devices, name, json_array_get(value, 0), &location->preferred);
    if (error == HTE_OK) {
        error = parse_list(devices, name, json_array_get(value, 1), &location->available);
    }
    if (error == HTE_OK && (location->preferred | location->available) == 0) {
        error = hte_fail(HTE_ERR_MALFORMED_JSON, "topology: '%s' has no device at all", name);
    }
    location->available &= ~location->preferred;
    topology->count += error == HTE_OK;
    return error;
}

static int load_json(const char *path, json_t **root)
{
    const char  *text;
    json_error_t error;
    int          line;
    FILE        *file = fopen(path, "re"); /* Jansson would not tell why it cannot be opened */

    if (file == NULL) {
        return hte_fail(HTE_ERR_MALFORMED_JSON, "topology file %s cannot be read: %s", path, strerror(errno));
    }
    *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (json_is_object(*root)) {
        return HTE_OK;
    }
    line = *root == NULL ? error.line : 1;
    text = *root == NULL ? error.text : "not an object";
    json_decref(*root);
    return hte_fail(HTE_ERR_MALFORMED_JSON, "topology file %s, line %d: %s", path, line, text);
}

static int load(struct hte_topology *topology, const struct hte_devices *devices, const char *path)
{
    json_t     *root = NULL, *value;
    const char *name;
    int         error = load_json(path, &root);

    if (error != HTE_OK) {
        return error;
    }
    json_object_foreach(root, name, value)
    {
        if (error == HTE_OK) {
            error = parse_location(topology, devices, name, value);
        }
    }
    json_decref(root);
    return error;
}

int hte_topology_init(struct hte_topology *topology, const struct hte_devices *devices,
                      const struct hte_settings *settings)
{
    topology->count = 0;
    topology->all   = (1u << devices->count) - 1;
    if (settings->topology_file[0] != '\0') {
        return load(topology, devices, settings->topology_file);
    }
    discover(topology, devices);
    return HTE_OK;
}

void hte_topology_masks(const struct hte_topology *topology, const char *location, uint32_t *preferred,
                        uint32_t *available)
{
    unsigned i;

    *preferred = topology->all;
    *available = 0;
    for (i = 0; i < topology->count; ++i) {
        if (strcmp(topology->location[i].name, location) == 0) {
            *preferred = topology->location[i].preferred;
            *available = topology->location[i].available;
        }
    }
}

/* move_pages(2) with no nodes to move to only looks. */
void hte_location_find(const void *addr, char *location, size_t size)
{
    void *page = (void *)((uintptr_t)addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
    int   node = -1;

    if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) == 0 && node >= 0) {
        snprintf(location, size, "cpu:%d", node);
    } else {
        snprintf(location, size, "*");
    }
}

int hte_location_check(const char *location)
{
    bool        is_gpu = hte_location_is_gpu(location);
    const char *number = location + (is_gpu ? 5 : 4);
    size_t      digits;

    if (strcmp(location, "*") == 0) {
        return HTE_OK;
    }
    digits = is_gpu || strncmp(location, "cpu:", 4) == 0 ? strspn(number, "0123456789") : 0;
    if (digits == 0 || number[digits] != '\0' || (is_gpu && digits > 5)) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "location '%.70s' is none of cpu:N, cuda:N and *", location);
    }
    if (number[0] == '0' && digits > 1) { /* as text it is another location than the one of the topology */
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "location '%.70s': write N without leading zeros", location);
    }
    if (!is_gpu && (digits > 5 || !has_node(atoi(number)))) {
        return hte_fail(HTE_ERR_NUMA, "location '%.70s': this machine has no such NUMA node", location);
    }
    return HTE_OK;
}

static json_t *list_of(const struct hte_devices *devices, uint32_t mask)
{
    json_t *list = json_array();

    for (; mask != 0; mask &= mask - 1) {
        json_array_append_new(list, json_string(devices->name[__builtin_ctz(mask)]));
    }
    return list;
}

char *hte_topology_text(const struct hte_topology *topology, const struct hte_devices *devices)
{
    const struct hte_location *location;
    json_t                    *root = json_object(), *lists;
    unsigned                   i;
    char                      *text;

    for (i = 0; i < topology->count; ++i) {
        location = &topology->location[i];
        lists    = json_array();
        json_array_append_new(lists, list_of(devices, location->preferred));
        json_array_append_new(lists, list_of(devices, location->available));
        json_object_set_new(root, location->name, lists);
    }
    text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}
