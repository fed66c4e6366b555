/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_device.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hte_error.h"

#define RDMA "/sys/class/infiniband"
#define NET  "/sys/class/net"

/* What UCX takes besides devices. */
static bool is_word(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "memory") == 0;
}

/* UCX looks for devices at the same places: "mlx5_0:1" is a port, "eth0" an interface. */
static bool exists(const char *name)
{
    const char *colon = strchr(name, ':');
    char        path[320];

    if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0') {
        return false;
    }
    if (colon != NULL) {
        snprintf(path, sizeof(path), RDMA "/%.*s/ports/%.64s/state", (int)(colon - name), name, colon + 1);
    } else {
        snprintf(path, sizeof(path), NET "/%.200s/ifindex", name);
    }
    return access(path, F_OK) == 0;
}

struct list {
    char   text[400];
    size_t length;
};

/* What does not fit is left out: it is for a message. */
static void append(struct list *list, const char *name)
{
    const char *comma = list->length > 0 ? ", " : "";
    size_t      room  = sizeof(list->text) - list->length;

    if (exists(name) && strlen(comma) + strlen(name) < room) {
        list->length += (size_t)snprintf(list->text + list->length, room, "%s%s", comma, name);
    }
}

static void append_ports(struct list *list, const char *device)
{
    char           path[320], name[280];
    struct dirent *entry;
    DIR           *dir;

    snprintf(path, sizeof(path), RDMA "/%.200s/ports", device);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(name, sizeof(name), "%.200s:%.64s", device, entry->d_name);
        append(list, name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void append_all(struct list *list, const char *folder, void (*append_one)(struct list *list, const char *name))
{
    DIR           *dir = opendir(folder);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            append_one(list, entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Checks "a:1" or "a:1+b:1". */
static int check(const char *names)
{
    struct list list = {.text = "", .length = 0};
    char        name[256];
    size_t      length;

    for (;; names += length + 1) {
        length = strcspn(names, "+");
        snprintf(name, sizeof(name), "%.*s", (int)length, names);
        if (!is_word(name) && !exists(name)) {
            break;
        }
        if (names[length] == '\0') {
            return HTE_OK;
        }
    }
    append_all(&list, RDMA, append_ports);
    append_all(&list, NET, append);
    return hte_fail(HTE_ERR_DEVICE_NOT_FOUND, "option devices: this machine has no '%s'; it has %s", name,
                    list.length > 0 ? list.text : "none at all");
}

static int add(struct hte_devices *devices, const char *name)
{
    if (devices->count == HTE_RAILS_MAX) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "option devices: at most %d choices; join devices with +",
                        HTE_RAILS_MAX);
    }
    if (strlen(name) >= sizeof(devices->name[0])) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "option devices: '%s' is longer than %zu characters", name,
                        sizeof(devices->name[0]) - 1);
    }
    strcpy(devices->name[devices->count++], name);
    return HTE_OK;
}

static int add_listed(struct hte_devices *devices, const char *list)
{
    char *copy = strdup(list), *rest = copy, *item;
    int   error = copy == NULL ? hte_fail(HTE_ERR_MEMORY, "no memory for the list of devices") : HTE_OK;

    while (error == HTE_OK && (item = strsep(&rest, ",")) != NULL) {
        if (item[0] == '\0') {
            error = hte_fail(HTE_ERR_INVALID_ARGUMENT, "option devices='%s' has an empty item", list);
        } else {
            error = check(item);
            error = error == HTE_OK ? add(devices, item) : error;
        }
    }
    free(copy);
    return error;
}

static int port_is_active(const char *device, const char *port)
{
    char  path[512];
    int   state = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/state", device, port);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &state) != 1) {
            state = 0;
        }
        fclose(file);
    }
    return state == 4;
}

static int add_active_ports(struct hte_devices *devices, const char *device)
{
    char           path[320], name[300];
    struct dirent *entry;
    DIR           *dir;
    int            error = HTE_OK;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", device);
    dir = opendir(path);
    while (dir != NULL && error == HTE_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' && port_is_active(device, entry->d_name)) {
            snprintf(name, sizeof(name), "%.200s:%.64s", device, entry->d_name);
            error = add(devices, name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return error;
}

static int add_rdma(struct hte_devices *devices)
{
    DIR           *dir = opendir("/sys/class/infiniband");
    struct dirent *entry;
    int            error = HTE_OK;

    while (dir != NULL && error == HTE_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            error = add_active_ports(devices, entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (error == HTE_OK && devices->count == 0) {
        error = hte_fail(HTE_ERR_DEVICE_NOT_FOUND,
                         "option devices=rdma: no RDMA port is active (`ibv_devinfo` lists them)");
    }
    return error;
}

int hte_devices_choose(const struct hte_settings *settings, struct hte_devices *devices)
{
    devices->count  = 0;
    devices->is_any = settings->devices[0] == '\0';
    if (devices->is_any) {
        return add(devices, "ucx");
    }
    return strcmp(settings->devices, "rdma") == 0 ? add_rdma(devices) : add_listed(devices, settings->devices);
}
