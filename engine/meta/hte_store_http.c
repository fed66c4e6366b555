/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_store_driver.h"

#ifdef HAVE_LIBCURL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte_http.h"

struct state {
    struct hte_http *http;
    char             base[3 * HTE_URL_MAX]; /* to which the key is appended */
};

static int open_http(const struct hte_url *url, const struct hte_store_options *options, void **state,
                     struct hte_why *why)
{
    struct state *made;
    int           ret;

    if (url->user[0] != '\0' || url->password[0] != '\0' || strchr(url->path, '?') != NULL ||
        strchr(url->path, '#') != NULL) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                           "metadata URL: %s://host[:port][/path] is expected, without user, query and fragment",
                           url->scheme);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a metadata store");
    }
    snprintf(made->base, sizeof(made->base), "%s://%s%s?key=", url->scheme, url->place,
             url->path[0] != '\0' ? url->path : "/metadata");
    ret = hte_http_open(options->connect_ms, options->answer_ms, options->max_value, &made->http, why);
    if (ret != 0) {
        free(made);
        return ret;
    }
    *state = made;
    return 0;
}

static void close_http(void *arg)
{
    struct state *state = arg;

    hte_http_close(state->http);
    free(state);
}

/* 404 becomes HTE_ERR_UNKNOWN_SEGMENT; *text may be NULL = not wanted. */
static int exchange(struct state *state, const char *method, const char *key, const char *body, char **text,
                    struct hte_why *why)
{
    char           url[3 * HTE_URL_MAX + 3 * HTE_STORE_KEY_MAX + 1], *escaped = hte_http_escape(key), *answer;
    struct hte_why cause;
    long           status;
    int            ret;

    if (escaped == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a URL");
    }
    snprintf(url, sizeof(url), "%s%s", state->base, escaped);
    free(escaped);
    ret = hte_http_exchange(state->http, method, url, body, &status, &answer, &cause);
    if (ret != 0) {
        return hte_why_set(why, ret, "%s %.*s: %s", method, (int)strcspn(url, "?"), url, cause.text);
    }
    if (status / 100 == 2 && text != NULL) {
        *text = answer;
        return 0;
    }
    if (status / 100 != 2) {
        ret = hte_why_set(why, status == 404 ? HTE_ERR_UNKNOWN_SEGMENT : HTE_ERR_METADATA,
                          "%s %.*s: status %ld for key %.128s", method, (int)strcspn(url, "?"), url, status, key);
    }
    free(answer);
    return ret;
}

static int put_http(void *state, const char *key, const char *text, struct hte_why *why)
{
    int ret = exchange(state, "PUT", key, text, NULL, why);

    return ret == HTE_ERR_UNKNOWN_SEGMENT ? HTE_ERR_METADATA : ret; /* there is no such path */
}

static int get_http(void *state, const char *key, char **text, struct hte_why *why)
{
    return exchange(state, "GET", key, NULL, text, why);
}

static int remove_http(void *state, const char *key, struct hte_why *why)
{
    int ret = exchange(state, "DELETE", key, NULL, NULL, why);

    return ret == HTE_ERR_UNKNOWN_SEGMENT ? 0 : ret;
}

const struct hte_store_driver hte_store_http = {
    .open = open_http, .close = close_http, .put = put_http, .get = get_http, .remove = remove_http};
#else
const struct hte_store_driver hte_store_http = {.open = NULL};
#endif
