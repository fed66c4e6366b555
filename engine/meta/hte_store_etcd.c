/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_store_driver.h"

#ifdef HAVE_LIBCURL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte_base64.h"
#include "hte_http.h"
#include "hte_json.h"
#include "hte_net.h"

/*
 * etcd's v3 API through its JSON gateway: POST /v3/kv/put, range, deleterange,
 * keys and values in base64. Several endpoints may be given: the next one is
 * asked when one does not answer, and kept while it does.
 */

#define ENDPOINTS_MAX 16

struct state {
    struct hte_http *http;
    size_t           max_value;
    int              num_endpoints, current;
    char             endpoints[ENDPOINTS_MAX][HTE_ADDRESS_TEXT_MAX];
};

static int add_endpoint(struct state *state, const char *text, struct hte_why *why)
{
    char     host[HTE_HOST_MAX + 1];
    uint16_t port;
    int      ret = hte_net_split(text, host, &port, why);

    if (ret != 0) {
        return ret;
    }
    if (state->num_endpoints == ENDPOINTS_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "metadata URL: more than %d etcd endpoints", ENDPOINTS_MAX);
    }
    hte_net_join(host, port != 0 ? port : 2379, state->endpoints[state->num_endpoints++]);
    return 0;
}

static int parse_endpoints(struct state *state, const struct hte_url *url, struct hte_why *why)
{
    char places[HTE_URL_MAX], *place, *rest;
    int  ret = 0;

    if (url->user[0] != '\0' || url->password[0] != '\0' || (url->path[0] != '\0' && strcmp(url->path, "/") != 0)) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                           "metadata URL: etcd://host:port[,host:port...] is expected, without user and path");
    }
    strcpy(places, url->place);
    for (place = strtok_r(places, ",;", &rest); ret == 0 && place != NULL; place = strtok_r(NULL, ",;", &rest)) {
        ret = add_endpoint(state, place, why);
    }
    return ret;
}

static int open_etcd(const struct hte_url *url, const struct hte_store_options *options, void **state,
                     struct hte_why *why)
{
    struct state *made = calloc(1, sizeof(*made));
    int           ret;

    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a metadata store");
    }
    made->max_value = options->max_value;
    ret             = parse_endpoints(made, url, why);
    if (ret == 0) { /* base64 and etcd's own fields come on top */
        ret = hte_http_open(options->connect_ms, options->answer_ms, 2 * options->max_value + 65536, &made->http, why);
    }
    if (ret != 0) {
        free(made);
        return ret;
    }
    *state = made;
    return 0;
}

static void close_etcd(void *arg)
{
    struct state *state = arg;

    hte_http_close(state->http);
    free(state);
}

/* One endpoint. The answer is an object, to be released. */
static int exchange_once(struct state *state, const char *call, const char *body, json_t **answer, struct hte_why *why)
{
    const char    *endpoint = state->endpoints[state->current];
    struct hte_why cause;
    char           url[HTE_ADDRESS_TEXT_MAX + 64], *text;
    long           status;
    int            ret;

    snprintf(url, sizeof(url), "http://%s/v3/kv/%s", endpoint, call);
    ret = hte_http_exchange(state->http, "POST", url, body, &status, &text, &cause);
    if (ret != 0) {
        return hte_why_set(why, ret, "etcd %s: %s", endpoint, cause.text);
    }
    if (status != 200) {
        ret = hte_why_set(why, HTE_ERR_METADATA, "etcd %s: status %ld: %.200s", endpoint, status, text);
    } else if (hte_json_parse(text, strlen(text), answer, &cause) != 0) {
        ret = hte_why_set(why, HTE_ERR_METADATA, "etcd %s: %s", endpoint, cause.text);
    }
    free(text);
    return ret;
}

static int exchange(struct state *state, const char *call, json_t *request, json_t **answer, struct hte_why *why)
{
    char *body = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
    int   ret  = HTE_ERR_METADATA, tries;

    json_decref(request);
    if (body == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a request");
    }
    for (tries = 0; tries < state->num_endpoints && ret != 0; tries++) {
        ret = exchange_once(state, call, body, answer, why);
        if (ret != 0) {
            state->current = (state->current + 1) % state->num_endpoints;
        }
    }
    free(body);
    return ret;
}

static json_t *base64_json(const char *text)
{
    char   *encoded = malloc(hte_base64_length(strlen(text)) + 1);
    json_t *json;

    if (encoded == NULL) {
        return NULL;
    }
    hte_base64_encode(text, strlen(text), encoded);
    json = json_string(encoded);
    free(encoded);
    return json;
}

static int put_etcd(void *arg, const char *key, const char *text, struct hte_why *why)
{
    json_t *answer;
    int     ret = exchange(arg, "put", json_pack("{s:o, s:o}", "key", base64_json(key), "value", base64_json(text)),
                           &answer, why);

    if (ret == 0) {
        json_decref(answer);
    }
    return ret;
}

static int decode_value(const struct state *state, const char *key, json_t *kv, char **text, struct hte_why *why)
{
    json_t *value  = json_object_get(kv, "value");
    size_t  length = json_string_length(value), decoded;
    char   *made   = malloc(length / 4 * 3 + 1);

    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a value");
    }
    /* etcd leaves out an empty value */
    if (!hte_base64_decode(length != 0 ? json_string_value(value) : "", length, made, &decoded) ||
        decoded > state->max_value || memchr(made, '\0', decoded) != NULL) {
        free(made);
        return hte_why_set(why, HTE_ERR_METADATA, "etcd: the value of %.200s is too long or no text", key);
    }
    made[decoded] = '\0';
    *text         = made;
    return 0;
}

static int get_etcd(void *arg, const char *key, char **text, struct hte_why *why)
{
    json_t *answer, *kvs;
    int     ret = exchange(arg, "range", json_pack("{s:o}", "key", base64_json(key)), &answer, why);

    if (ret != 0) {
        return ret;
    }
    kvs = json_object_get(answer, "kvs");
    ret = json_array_size(kvs) != 0 ? decode_value(arg, key, json_array_get(kvs, 0), text, why)
                                    : hte_why_set(why, HTE_ERR_UNKNOWN_SEGMENT, "etcd has no key %.200s", key);
    json_decref(answer);
    return ret;
}

static int remove_etcd(void *arg, const char *key, struct hte_why *why)
{
    json_t *answer;
    int     ret = exchange(arg, "deleterange", json_pack("{s:o}", "key", base64_json(key)), &answer, why);

    if (ret == 0) {
        json_decref(answer);
    }
    return ret;
}

const struct hte_store_driver hte_store_etcd = {
    .open = open_etcd, .close = close_etcd, .put = put_etcd, .get = get_etcd, .remove = remove_etcd};
#else
const struct hte_store_driver hte_store_etcd = {.open = NULL};
#endif
