/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_JSON_H_
#define HTE_JSON_H_

/*
 * Fields of untrusted JSON: each reader checks presence, type and bound, and
 * names the field in its complaint. Outputs are set only on success.
 */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/hte_why.h"

/* Where we are, for messages: the object at `object`, or entry `index` of the list `list`. */
struct hte_json_at {
    json_t     *object;
    const char *list; /* NULL = the outermost object */
    size_t      index;
};

/* An object from text; json_decref() it. Duplicate names are refused. */
int hte_json_parse(const char *text, size_t length, json_t **object, struct hte_why *why);

int hte_json_uint(const struct hte_json_at *at, const char *field, uint64_t max, uint64_t *value, struct hte_why *why);
/* Valid as long as the object. 1..max bytes (0 too with hte_json_text_or_empty(), which also takes a
 * missing field for ""), no control characters. */
int hte_json_text(const struct hte_json_at *at, const char *field, size_t max, const char **text, struct hte_why *why);
int hte_json_text_or_empty(const struct hte_json_at *at, const char *field, size_t max, const char **text,
                           struct hte_why *why);
/* As hte_json_text(), but of any bytes that JSON can carry, line breaks too. */
int hte_json_payload(const struct hte_json_at *at, const char *field, size_t max, const char **text,
                     struct hte_why *why);
/* At most `max` entries; a missing list is an empty one: *list = NULL. */
int hte_json_list(const struct hte_json_at *at, const char *field, size_t max, json_t **list, struct hte_why *why);

/* HTE_ERR_MALFORMED_JSON with "path.field: problem". */
int hte_json_complain(const struct hte_json_at *at, const char *field, struct hte_why *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
