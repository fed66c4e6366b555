/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_device.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hte_error.h"

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
    char path[320];

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
    size_t room       = sizeof(list->text) - list->length;

    if (exists(name) && strlen(comma) + strlen(name) < room) {
        list->length += (size_t)snprintf(list->text + list->length, room, "%s%s", comma, name);
    }
}

static void append_ports(struct list *list, const char *device)
{
    char path[320], name[280];
    struct dirent *entry;
    DIR *dir;

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
    DIR *dir = opendir(folder);
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

int hte_device_check(const char *names)
{
    struct list list = {.text = "", .length = 0};
    char name[256];
    size_t length;

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
