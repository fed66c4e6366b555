/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_near_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* -1 and errno; 0 there: it is not sealed. */
static int open_file(uint64_t pid, uint64_t fd, struct stat *stat)
{
    char path[64];
    int  file, seals;

    snprintf(path, sizeof(path), "/proc/%llu/fd/%llu", (unsigned long long)pid, (unsigned long long)fd);
    file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        return -1;
    }
    seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, stat) != 0) {
        close(file);
        errno = 0;
        return -1;
    }
    return file;
}

struct hte_board_page *hte_near_map_board(const struct hte_desc_host *host)
{
    struct hte_board_page *page = MAP_FAILED;
    struct stat            stat;
    int                    file = open_file(host->pid, host->board, &stat);

    if (file < 0) {
        return NULL;
    }
    errno = 0;
    if (stat.st_size == (off_t)sizeof(*page)) {
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (page == MAP_FAILED) {
        return NULL;
    }
    if (page->version != HTE_BOARD_VERSION || page->secret != host->secret || !atomic_load(&page->is_open)) {
        hte_near_unmap_board(page);
        errno = 0;
        return NULL;
    }
    return page;
}

void hte_near_unmap_board(struct hte_board_page *page)
{
    munmap(page, sizeof(*page));
}

/* ---- memory ---- */

static bool map(struct hte_near_map *map, const struct hte_desc_host *host, const struct hte_desc_buffer *buffer)
{
    uint64_t    before = buffer->file_offset % (uint64_t)sysconf(_SC_PAGESIZE), size;
    struct stat stat;
    int         file = open_file(host->pid, buffer->file, &stat);

    if (file < 0) {
        return false;
    }
    size        = (uint64_t)stat.st_size;
    map->length = before + buffer->length;
    map->base   = MAP_FAILED;
    if (stat.st_ino == buffer->file_inode && buffer->file_offset <= size &&
        buffer->length <= size - buffer->file_offset) {
        map->base = mmap(NULL, map->length, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                         (off_t)(buffer->file_offset - before));
    }
    close(file);
    if (map->base == MAP_FAILED) {
        return false;
    }
    map->addr = map->base + before;
    return true;
}

static struct hte_near_map *make(struct hte_link_ring *maps, const struct hte_desc_host *host,
                                 const struct hte_desc_buffer *buffer)
{
    struct hte_near_map *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return NULL;
    }
    if (!map(made, host, buffer)) {
        *made = (struct hte_near_map){.base = NULL}; /* not tried again */
    }
    made->region = buffer->id;
    made->slot   = buffer->slot;
    hte_ring_append(maps, &made->link);
    return made;
}

char *hte_near_map_find(struct hte_link_ring *maps, const struct hte_desc_host *host,
                        const struct hte_desc_buffer *buffer)
{
    struct hte_link_ring *link;
    struct hte_near_map  *found = NULL;

    for (link = maps->next; link != maps && found == NULL; link = link->next) {
        found = HTE_OBJECT_OF(link, struct hte_near_map, link);
        found = found->region == buffer->id ? found : NULL;
    }
    found = found != NULL ? found : make(maps, host, buffer);
    if (found == NULL) {
        return NULL;
    }
    if (maps->next != &found->link) {
        hte_ring_remove(&found->link);
        hte_ring_append(maps->next, &found->link); /* in front of the first */
    }
    return found->addr;
}

void hte_near_unmap(struct hte_near_map *map)
{
    hte_ring_remove(&map->link);
    if (map->base != NULL) {
        munmap(map->base, map->length);
    }
    free(map);
}
