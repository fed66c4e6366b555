/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_message.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte_descriptor.h"
#include "hte_json.h"

static const char *const request_names[] = {"metadata", "connection", "notify", "probe", "metrics"};

#define NUM_REQUESTS ((int)(sizeof(request_names) / sizeof(request_names[0])))

static char *dump(json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

char *hte_ask_write(enum hte_ask_type type, const char *from, const char *payload)
{
    return dump(json_pack("{s:s, s:s, s:s}", "type", request_names[type], "from", from, "payload", payload));
}

char *hte_reply_write(const struct hte_reply *reply)
{
    return dump(json_pack("{s:s, s:I, s:s, s:s}", "type", "reply", "error", (json_int_t)reply->error, "why",
                          reply->why.text, "payload", reply->payload != NULL ? reply->payload : ""));
}

static int read_type(const struct hte_json_at *at, enum hte_ask_type *type, struct hte_why *why)
{
    const char *text;
    int         i, ret = hte_json_text(at, "type", 32, &text, why);

    for (i = 0; ret == 0 && i < NUM_REQUESTS; i++) {
        if (strcmp(text, request_names[i]) == 0) {
            *type = (enum hte_ask_type)i;
            return 0;
        }
    }
    return ret != 0 ? ret : hte_json_complain(at, "type", why, "'%s' is not known", text);
}

/* Other errors than ours make no sense of: they are refusals. */
static int read_error(const struct hte_json_at *at, int *error, struct hte_why *why)
{
    json_t *number = json_object_get(at->object, "error");

    if (!json_is_integer(number)) {
        return hte_json_complain(at, "error", why, "an integer is expected");
    }
    *error = HTE_ERR_HANDSHAKE_REJECTED;
    if (json_integer_value(number) <= 0 && json_integer_value(number) >= HTE_ERR_EXISTS) {
        *error = (int)json_integer_value(number);
    }
    return 0;
}

static int copy_payload(const struct hte_json_at *at, char **payload, struct hte_why *why)
{
    const char *text;
    int         ret = hte_json_payload(at, "payload", SIZE_MAX, &text, why);

    if (ret != 0) {
        return ret;
    }
    *payload = strdup(text);
    return *payload != NULL ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "no memory for a message");
}

static int read_request(const struct hte_json_at *at, struct hte_ask *request, struct hte_why *why)
{
    const char *from;
    int         ret = read_type(at, &request->type, why);

    if (ret == 0) {
        ret = hte_json_text_or_empty(at, "from", HTE_NAME_MAX, &from, why);
    }
    if (ret == 0) {
        ret = copy_payload(at, &request->payload, why);
    }
    if (ret != 0) {
        return ret;
    }
    request->from = strdup(from);
    if (request->from == NULL) {
        free(request->payload);
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a message");
    }
    return 0;
}

int hte_ask_read(const char *text, size_t length, struct hte_ask *request, struct hte_why *why)
{
    struct hte_json_at at  = {.list = NULL};
    int                ret = hte_json_parse(text, length, &at.object, why);

    if (ret == 0) {
        ret = read_request(&at, request, why);
        json_decref(at.object);
    }
    return ret;
}

static int read_reply(const struct hte_json_at *at, struct hte_reply *reply, struct hte_why *why)
{
    const char *cause;
    int         ret = read_error(at, &reply->error, why);

    if (ret == 0) {
        ret = hte_json_text_or_empty(at, "why", HTE_WHY_MAX, &cause, why);
    }
    if (ret == 0) {
        ret = copy_payload(at, &reply->payload, why);
    }
    if (ret != 0) {
        return ret;
    }
    snprintf(reply->why.text, sizeof(reply->why.text), "%s", cause);
    return 0;
}

int hte_reply_read(const char *text, size_t length, struct hte_reply *reply, struct hte_why *why)
{
    struct hte_json_at at  = {.list = NULL};
    int                ret = hte_json_parse(text, length, &at.object, why);

    if (ret == 0) {
        ret = read_reply(&at, reply, why);
        json_decref(at.object);
    }
    return ret;
}

void hte_ask_cleanup(struct hte_ask *request)
{
    free(request->from);
    free(request->payload);
}

void hte_reply_cleanup(struct hte_reply *reply)
{
    free(reply->payload);
}
