/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_json.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int hte_json_complain(const struct hte_json_at *at, const char *field, struct hte_why *why, const char *format, ...)
{
    char    problem[200];
    va_list args;

    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    if (at->list == NULL) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "%s: %s", field, problem);
    }
    return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "%s[%zu].%s: %s", at->list, at->index, field, problem);
}

int hte_json_parse(const char *text, size_t length, json_t **object, struct hte_why *why)
{
    json_error_t error;
    json_t      *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL) {
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "malformed JSON at byte %d: %s", error.position, error.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "malformed JSON: an object is expected");
    }
    *object = root;
    return 0;
}

int hte_json_uint(const struct hte_json_at *at, const char *field, uint64_t max, uint64_t *value, struct hte_why *why)
{
    json_t    *number = json_object_get(at->object, field);
    json_int_t found;

    if (!json_is_integer(number)) {
        return hte_json_complain(at, field, why, number == NULL ? "missing" : "not an integer");
    }
    found = json_integer_value(number);
    if (found < 0 || (uint64_t)found > max) {
        return hte_json_complain(at, field, why, "%lld is not in 0..%llu", (long long)found, (unsigned long long)max);
    }
    *value = (uint64_t)found;
    return 0;
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

int hte_json_payload(const struct hte_json_at *at, const char *field, size_t max, const char **text,
                     struct hte_why *why)
{
    json_t *string = json_object_get(at->object, field);
    size_t  length;

    if (!json_is_string(string)) {
        return hte_json_complain(at, field, why, string == NULL ? "missing" : "not a string");
    }
    length = json_string_length(string);
    if (length > max) {
        return hte_json_complain(at, field, why, "%zu bytes, at most %zu are allowed", length, max);
    }
    *text = json_string_value(string);
    return 0;
}

int hte_json_text_or_empty(const struct hte_json_at *at, const char *field, size_t max, const char **text,
                           struct hte_why *why)
{
    const char *found = "";
    int         ret;

    if (json_object_get(at->object, field) != NULL) {
        ret = hte_json_payload(at, field, max, &found, why);
        if (ret != 0) {
            return ret;
        }
    }
    if (!is_printable(found)) {
        return hte_json_complain(at, field, why, "control characters are not allowed");
    }
    *text = found;
    return 0;
}

int hte_json_text(const struct hte_json_at *at, const char *field, size_t max, const char **text, struct hte_why *why)
{
    const char *found;
    int         ret = hte_json_text_or_empty(at, field, max, &found, why);

    if (ret != 0) {
        return ret;
    }
    if (found[0] == '\0') {
        return hte_json_complain(at, field, why, "missing or empty");
    }
    *text = found;
    return 0;
}

int hte_json_list(const struct hte_json_at *at, const char *field, size_t max, json_t **list, struct hte_why *why)
{
    json_t *array = json_object_get(at->object, field);

    if (array != NULL && !json_is_array(array)) {
        return hte_json_complain(at, field, why, "not a list");
    }
    if (json_array_size(array) > max) {
        return hte_json_complain(at, field, why, "%zu entries, at most %zu are allowed", json_array_size(array), max);
    }
    *list = array;
    return 0;
}
