/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#ifdef HAVE_LIBCURL
#include "hte_http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

struct hte_http {
    CURL              *curl;
    struct curl_slist *headers;
    unsigned           connect_ms, answer_ms;
    size_t             max_body;
};

struct body {
    char  *text;
    size_t length, max;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int hte_http_open(unsigned connect_ms, unsigned answer_ms, size_t max_body, struct hte_http **http, struct hte_why *why)
{
    struct hte_http *made = calloc(1, sizeof(*made));

    pthread_once(&curl_once, init_curl);
    if (made == NULL || (made->curl = curl_easy_init()) == NULL) {
        free(made);
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for an HTTP client");
    }
    made->headers    = curl_slist_append(NULL, "Content-Type: application/json");
    made->connect_ms = connect_ms;
    made->answer_ms  = answer_ms;
    made->max_body   = max_body;
    *http            = made;
    return 0;
}

void hte_http_close(struct hte_http *http)
{
    curl_easy_cleanup(http->curl);
    curl_slist_free_all(http->headers);
    free(http);
}

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct body *body   = arg;
    size_t       length = size * count;
    char        *text;

    if (length > body->max - body->length) {
        return 0; /* ends the transfer with CURLE_WRITE_ERROR */
    }
    text = realloc(body->text, body->length + length + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text + body->length, bytes, length);
    body->text = text;
    body->length += length;
    text[body->length] = '\0';
    return length;
}

/* The metadata server is of the cluster: no proxy of the environment, no redirection elsewhere. */
static void set_options(struct hte_http *http, const char *method, const char *url, const char *body,
                        struct body *answer, char *error)
{
    CURL *curl = http->curl;

    curl_easy_reset(curl); /* keeps the connection */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)http->connect_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)http->answer_ms);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    if (body != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    }
}

int hte_http_exchange(struct hte_http *http, const char *method, const char *url, const char *body, long *status,
                      char **text, struct hte_why *why)
{
    char        error[CURL_ERROR_SIZE] = "";
    struct body answer                 = {.max = http->max_body};
    CURLcode    code;

    set_options(http, method, url, body, &answer, error);
    code = curl_easy_perform(http->curl);
    if (code == CURLE_OK && answer.text == NULL) {
        answer.text = calloc(1, 1);
    }
    if (code != CURLE_OK || answer.text == NULL) {
        free(answer.text);
        return hte_why_set(why, HTE_ERR_METADATA, "%.200s",
                           code == CURLE_WRITE_ERROR ? "the answer is too long"
                           : error[0] != '\0'        ? error
                                                     : curl_easy_strerror(code));
    }
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, status);
    *text = answer.text;
    return 0;
}

char *hte_http_escape(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char             *escaped = malloc(3 * strlen(text) + 1), *out = escaped;
    unsigned char     c;

    for (; out != NULL && *text != '\0'; text++) {
        c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) != NULL) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = digits[c >> 4];
            *out++ = digits[c & 15];
        }
    }
    if (out != NULL) {
        *out = '\0';
    }
    return escaped;
}
#else
typedef int hte_http_is_not_built; /* ISO C wants something in a file */
#endif
