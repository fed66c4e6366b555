/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool add(struct hte_maps *maps, const struct hte_map *map)
{
    struct hte_map *last = maps->count == 0 ? NULL : &maps->list[maps->count - 1], *list;

    if (last != NULL && map->begin <= last->end && map->is_readable == last->is_readable &&
        map->is_writable == last->is_writable) {
        last->end = map->end > last->end ? map->end : last->end;
        return true;
    }
    if (maps->count == maps->room) {
        maps->room = maps->room == 0 ? 256 : 2 * maps->room;
        list       = realloc(maps->list, maps->room * sizeof(*list));
        if (list == NULL) {
            return false;
        }
        maps->list = list;
    }
    maps->list[maps->count++] = *map;
    return true;
}

/* "7f0c4a000000-7f0c4a021000 rw-p ..." */
static bool parse(const char *line, struct hte_map *map)
{
    char *end;

    map->begin = strtoull(line, &end, 16);
    if (*end != '-') {
        return false;
    }
    map->end = strtoull(end + 1, &end, 16);
    if (end[0] != ' ' || strlen(end) < 5) {
        return false;
    }
    map->is_readable = end[1] == 'r';
    map->is_writable = end[2] == 'w';
    return true;
}

static bool read_lines(struct hte_maps *maps, FILE *file)
{
    char          *line = NULL;
    size_t         room = 0;
    struct hte_map map;
    bool           is_known = true;

    while (is_known && getline(&line, &room, file) > 0) {
        is_known = parse(line, &map) && add(maps, &map);
    }
    free(line);
    return is_known && !ferror(file);
}

bool hte_maps_read(struct hte_maps *maps)
{
    FILE *file = fopen("/proc/self/maps", "re");
    bool  is_known;

    *maps = (struct hte_maps){0};
    if (file == NULL) {
        return false;
    }
    is_known = read_lines(maps, file) && maps->count > 0;
    fclose(file);
    if (!is_known) {
        hte_maps_free(maps);
    }
    return is_known;
}

void hte_maps_free(struct hte_maps *maps)
{
    free(maps->list);
    *maps = (struct hte_maps){0};
}

/* The first that ends behind the address. */
static size_t find(const struct hte_maps *maps, uint64_t addr)
{
    size_t low = 0, high = maps->count, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (maps->list[middle].end <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t hte_maps_missing(const struct hte_maps *maps, uint64_t addr, uint64_t length, bool is_written,
                          const char **why)
{
    const struct hte_map *map;
    uint64_t              at = addr;
    size_t                i;

    for (i = find(maps, addr); at < addr + length; at = maps->list[i++].end) {
        map = i < maps->count ? &maps->list[i] : NULL;
        if (map == NULL || map->begin > at) {
            *why = "is not mapped: register what is";
            return at;
        }
        if (!map->is_readable) {
            *why = "may not be read (PROT_READ)";
            return at;
        }
        if (is_written && !map->is_writable) {
            *why = "may not be written (PROT_WRITE): HTE_PERM_GLOBAL_RO and HTE_PERM_LOCAL do not ask for it";
            return at;
        }
    }
    return 0;
}
