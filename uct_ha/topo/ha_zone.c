/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memrchr */
#endif

#include "ha_zone.h"

#include "ha_span.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(char *error, size_t size, struct ha_span entry, const char *why)
{
    snprintf(error, size, "'%.*s' %s", (int)entry.length, entry.start, why);
    return -EINVAL;
}

static int copy(struct ha_span span, char to[HA_ZONE_NAME_MAX])
{
    if (span.length == 0 || span.length >= HA_ZONE_NAME_MAX) {
        return 0;
    }
    memcpy(to, span.start, span.length);
    to[span.length] = '\0';
    return 1;
}

/* "10.1.0.0/16", "fd00::/8" */
static int parse_subnet(struct ha_span span, struct ha_zone_entry *entry)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char                 text[INET6_ADDRSTRLEN + 4], *slash, *end;
    unsigned long        bits;

    if (span.length >= sizeof(text)) {
        return 0;
    }
    memcpy(text, span.start, span.length);
    text[span.length] = '\0';
    slash             = strchr(text, '/');
    *slash            = '\0';
    bits              = strtoul(slash + 1, &end, 10);
    if (end == slash + 1 || *end != '\0' || slash[1] == '-' || slash[1] == '+') {
        return 0;
    }
    if (inet_pton(AF_INET, text, entry->subnet + 12) == 1 && bits <= 32) {
        memcpy(entry->subnet, mapped, sizeof(mapped));
        entry->prefix_len = 96 + (unsigned)bits;
        return 1;
    }
    entry->prefix_len = (unsigned)bits;
    return inet_pton(AF_INET6, text, entry->subnet) == 1 && bits <= 128;
}

/* The last colon divides: the key of a port or of IPv6 has some of its own. */
static int parse_entry(struct ha_span span, struct ha_zone_entry *entry, char *error, size_t size)
{
    const char    *colon = memrchr(span.start, ':', span.length);
    struct ha_span key, name;

    memset(entry, 0, sizeof(*entry));
    if (span.length == 0) {
        return refuse(error, size, span, "is an empty entry");
    }
    if (colon == NULL) {
        return refuse(error, size, span, "has no ':' before its zone");
    }
    key  = ha_span_trim(span.start, colon);
    name = ha_span_trim(colon + 1, span.start + span.length);
    if (!copy(name, entry->name)) {
        return refuse(error, size, span, "names no zone, or one of more than 31 characters");
    }
    if (memchr(key.start, '/', key.length) != NULL) {
        return parse_subnet(key, entry) ? 0 : refuse(error, size, span, "has no valid subnet");
    }
    return copy(key, entry->key) ? 0 : refuse(error, size, span, "names no device, or one of more than 31 characters");
}

int ha_zones_parse(const char *text, struct ha_zones *zones, char *error, size_t error_size)
{
    const char    *rest = text, *limit;
    struct ha_span span;
    int            ret;

    zones->num = 0;
    if (text == NULL) {
        return 0;
    }
    limit = text + strlen(text);
    if (ha_span_trim(text, limit).length == 0) {
        return 0;
    }
    while (rest != NULL) {
        span = ha_span_next(&rest, limit, ',');
        if (zones->num == HA_ZONE_ENTRIES_MAX) {
            return refuse(error, error_size, span, "is one entry too many, 32 are possible");
        }
        ret = parse_entry(span, &zones->entry[zones->num], error, error_size);
        if (ret != 0) {
            return ret;
        }
        zones->num++;
    }
    return 0;
}

static int in_subnet(const struct ha_zone_entry *entry, const uint8_t gid[16])
{
    static const uint8_t zero[16];
    unsigned             bytes = entry->prefix_len / 8, bits = entry->prefix_len % 8;

    if (memcmp(gid, zero, sizeof(zero)) == 0 || memcmp(gid, entry->subnet, bytes) != 0) {
        return 0;
    }
    return bits == 0 || ((gid[bytes] ^ entry->subnet[bytes]) >> (8 - bits)) == 0;
}

static int entry_fits(const struct ha_zone_entry *entry, const char *rail, const char *netdev, const uint8_t gid[16])
{
    size_t device = strcspn(rail, ":");

    if (entry->key[0] == '\0') {
        return in_subnet(entry, gid);
    }
    return strcmp(entry->key, rail) == 0 || strcmp(entry->key, netdev) == 0 ||
           (strlen(entry->key) == device && memcmp(entry->key, rail, device) == 0);
}

const char *ha_zone_name(const struct ha_zones *zones, const char *rail, const char *netdev, const uint8_t gid[16])
{
    for (unsigned i = 0; i < zones->num; i++) {
        if (entry_fits(&zones->entry[i], rail, netdev, gid)) {
            return zones->entry[i].name;
        }
    }
    return NULL;
}

ha_zone_t ha_zone_hash(const char *name)
{
    uint32_t hash = 2166136261u;

    if (name == NULL) {
        return 0;
    }
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    }
    hash = (hash >> 24) ^ (hash & 0xffffff);
    return hash == 0 ? 1 : hash;
}
