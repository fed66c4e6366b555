/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool copy_part(const char *start, size_t length, char *part, size_t size)
{
    if (length >= size) {
        return false;
    }
    memcpy(part, start, length);
    part[length] = '\0';
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; a %00 would end the text early. */
static bool decode_percents(char *text)
{
    char *out = text;
    int   high, low;

    for (; *text != '\0'; text++) {
        if (*text != '%') {
            *out++ = *text;
            continue;
        }
        high = hex_value(text[1]);
        low  = high < 0 ? -1 : hex_value(text[2]);
        if (low < 0 || (high == 0 && low == 0)) {
            return false;
        }
        *out++ = (char)(high << 4 | low);
        text += 2;
    }
    *out = '\0';
    return true;
}

static bool parse_user(const char *start, const char *end, struct hte_url *url)
{
    const char *colon    = memchr(start, ':', (size_t)(end - start));
    const char *name_end = colon != NULL ? colon : end;

    return copy_part(start, (size_t)(name_end - start), url->user, sizeof(url->user)) &&
           (colon == NULL || copy_part(colon + 1, (size_t)(end - colon - 1), url->password, sizeof(url->password))) &&
           decode_percents(url->user) && decode_percents(url->password);
}

static bool has_odd_bytes(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

/* No message quotes the text: there may be a password in it. */
int hte_url_parse(const char *text, struct hte_url *url, struct hte_why *why)
{
    const char *place, *place_end, *at, *scheme_end = strstr(text, "://");

    memset(url, 0, sizeof(*url));
    if (strlen(text) >= HTE_URL_MAX || has_odd_bytes(text)) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                           "the metadata URL has blanks or control characters, or more than %d characters",
                           HTE_URL_MAX - 1);
    }
    if (scheme_end == NULL || !copy_part(text, (size_t)(scheme_end - text), url->scheme, sizeof(url->scheme))) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                           "the metadata URL must be P2PHANDSHAKE or begin with http://, https://, redis:// or "
                           "etcd://");
    }
    place     = scheme_end + 3;
    place_end = place + strcspn(place, "/?#");
    at        = memrchr(place, '@', (size_t)(place_end - place));
    if (at != NULL) {
        if (!parse_user(place, at, url)) {
            return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the metadata URL's user or password is malformed");
        }
        place = at + 1;
    }
    copy_part(place, (size_t)(place_end - place), url->place, sizeof(url->place));
    copy_part(place_end, strlen(place_end), url->path, sizeof(url->path));
    if (url->place[0] == '\0') {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the metadata URL names no host: %s://host:port is expected",
                           url->scheme);
    }
    return 0;
}
