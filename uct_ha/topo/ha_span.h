/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_SPAN_H_
#define HA_SPAN_H_

/* A piece of a string of the user's, without copying it. Valid as long as the
 * string is. */

#include <ctype.h>
#include <stddef.h>
#include <string.h>

struct ha_span {
    const char *start;
    size_t      length;
};

static inline struct ha_span ha_span_trim(const char *start, const char *end)
{
    while (start < end && isspace((unsigned char)*start)) {
        start++;
    }
    while (end > start && isspace((unsigned char)end[-1])) {
        end--;
    }
    return (struct ha_span){start, (size_t)(end - start)};
}

/* Take the text up to `separator` (or `limit`) off *rest; NULL rest = no more. */
static inline struct ha_span ha_span_next(const char **rest, const char *limit, char separator)
{
    const char *start = *rest;
    const char *end   = (const char *)memchr(start, separator, (size_t)(limit - start));

    *rest = end == NULL ? NULL : end + 1;
    return ha_span_trim(start, end == NULL ? limit : end);
}

static inline int ha_span_is(struct ha_span span, const char *text)
{
    return strlen(text) == span.length && memcmp(text, span.start, span.length) == 0;
}

/* "mlx5_0" alone means port 1, as elsewhere in UCX. */
static inline int ha_span_is_rail(struct ha_span span, const char *name)
{
    size_t length = strlen(name);

    if (memchr(span.start, ':', span.length) == NULL) {
        return length == span.length + 2 && strcmp(name + span.length, ":1") == 0 &&
               memcmp(name, span.start, span.length) == 0;
    }
    return ha_span_is(span, name);
}

#endif
