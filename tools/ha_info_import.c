/* SPDX-License-Identifier: BSD-3-Clause */

/* A matrix of near rails, as --matrix and the batch engine write it and people edit it:
 * {"cpu:0":[["preferred",...],["available",...]],...}. Does it fit this host? */

#include "ha_info_import.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct import {
    const struct info *info;
    FILE              *out;
    int                wrong;
    int                named[HA_RAILS_MAX]; /* by any location */
    int                seen[HA_RAILS_MAX];  /* by the present one */
};

static void complain(struct import *import, const char *location, const char *what, const char *text)
{
    fprintf(import->out, "WRONG   %s: %s%s\n", location, what, text);
    import->wrong = 1;
}

static int find_rail(const struct info *info, const char *name)
{
    for (int i = 0; i < info->num; i++) {
        if (strcmp(info->topo[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* The names in the list that fit; returns how many. */
static int take_list(struct import *import, const char *location, const char *title, json_t *list)
{
    const char *name;
    size_t      i;
    json_t     *item;
    int         rail, count = 0;

    if (!json_is_array(list)) {
        complain(import, location, "is not [[preferred...],[available...]]", "");
        return 0;
    }
    fprintf(import->out, "%-7s %-9s", location, title);
    json_array_foreach(list, i, item)
    {
        name = json_string_value(item);
        fprintf(import->out, " %s", name == NULL ? "?" : name);
    }
    fputc('\n', import->out);
    json_array_foreach(list, i, item)
    {
        name = json_string_value(item);
        rail = name == NULL ? -1 : find_rail(import->info, name);
        if (name == NULL) {
            complain(import, location, "has a device that is not a text", "");
        } else if (rail < 0) {
            complain(import, location, "no rail of this host is called ", name);
        } else if (import->seen[rail]++) {
            complain(import, location, "names twice ", name);
        } else {
            import->named[rail] = 1;
            count++;
        }
    }
    return count;
}

static void take_location(struct import *import, const char *location, json_t *value)
{
    int count;

    memset(import->seen, 0, sizeof(import->seen));
    if (!json_is_array(value) || json_array_size(value) != 2) {
        complain(import, location, "is not [[preferred...],[available...]]", "");
        return;
    }
    count = take_list(import, location, "preferred", json_array_get(value, 0));
    count += take_list(import, location, "available", json_array_get(value, 1));
    if (count == 0) {
        complain(import, location, "has no rail of this host at all", "");
    }
}

static json_t *load(const char *path)
{
    FILE        *file = fopen(path, "re"); /* jansson would not tell why it cannot be opened */
    json_error_t error;
    json_t      *root;

    if (file == NULL) {
        fprintf(stderr, "ha_info: %s: %s\n", path, strerror(errno));
        return NULL;
    }
    root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (root != NULL && json_is_object(root)) {
        return root;
    }
    fprintf(stderr, "ha_info: %s, line %d: %s\n", path, root == NULL ? error.line : 1,
            root == NULL ? error.text : "not an object");
    json_decref(root);
    return NULL;
}

int info_import_matrix(const struct info *info, const char *path, FILE *out)
{
    struct import import = {.info = info, .out = out};
    json_t       *root   = load(path), *value;
    const char   *location;

    if (root == NULL) {
        return -1;
    }
    json_object_foreach(root, location, value)
    {
        take_location(&import, location, value);
    }
    json_decref(root);
    for (int i = 0; i < info->num; i++) {
        if (!import.named[i]) {
            complain(&import, info->topo[i].name, "is near nothing: no location names it", "");
        }
    }
    return import.wrong;
}
