/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hte_http_store: a small metadata server. GET, PUT and DELETE of PATH?key=KEY; the body is the text.
 * Main thread: options, signals, saving. One more thread of libmicrohttpd: requests.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "hte_net.h"
#include "store_table.h"

#define KEY_MAX         512
#define CONNECTIONS_MAX 4096
#define IDLE_SECONDS    60
#define TOO_LARGE       413 /* its name has changed between versions of libmicrohttpd */

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result mhd_result;
#else
typedef int mhd_result;
#endif

struct settings {
    const char *listen, *path, *file;
    uint16_t    port;
    bool        has_port;
    size_t      max_value, max_keys;
};

struct service {
    const struct settings *settings;
    struct store_table    *table;
};

/* A body on its way in. */
struct upload {
    char  *bytes;
    size_t length;
    int    refusal; /* HTTP status, 0 = none */
};

/* ---- requests ---------------------------------------------------------------------- */

/* Takes over `text`; NULL sends the reason that belongs to the status. */
static mhd_result respond(struct MHD_Connection *connection, unsigned status, char *text)
{
    const char          *reason = status == MHD_HTTP_OK ? "" : MHD_get_reason_phrase_for(status);
    struct MHD_Response *response;
    mhd_result           result;

    response = text != NULL ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE)
                            : MHD_create_response_from_buffer(strlen(reason), (void *)reason, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", text != NULL ? "application/json" : "text/plain");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static void take_bytes(struct upload *upload, const char *bytes, size_t length, size_t max)
{
    char *grown;

    if (upload->refusal != 0) {
        return;
    }
    if (length > max - upload->length) {
        upload->refusal = TOO_LARGE;
        return;
    }
    grown = realloc(upload->bytes, upload->length + length + 1);
    if (grown == NULL) {
        upload->refusal = MHD_HTTP_INSUFFICIENT_STORAGE;
        return;
    }
    memcpy(grown + upload->length, bytes, length);
    upload->bytes = grown;
    upload->length += length;
}

static unsigned status_of(enum store_result result)
{
    switch (result) {
    case STORE_DONE:
        return MHD_HTTP_OK;
    case STORE_UNKNOWN_KEY:
        return MHD_HTTP_NOT_FOUND;
    case STORE_FULL:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    case STORE_NOT_TEXT:
        break;
    }
    return MHD_HTTP_BAD_REQUEST;
}

static mhd_result answer(struct service *service, struct MHD_Connection *connection, const char *path,
                         const char *method, const struct upload *upload)
{
    const char *key = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "key");
    char       *text;

    if (upload->refusal != 0) {
        return respond(connection, (unsigned)upload->refusal, NULL);
    }
    if (strcmp(path, service->settings->path) != 0) {
        return respond(connection, MHD_HTTP_NOT_FOUND, NULL);
    }
    if (key == NULL || key[0] == '\0' || strlen(key) > KEY_MAX) {
        return respond(connection, MHD_HTTP_BAD_REQUEST,
                       strdup("{\"error\":\"?key= with 1..512 characters is expected\"}"));
    }
    if (strcmp(method, "GET") == 0) {
        text = store_table_get(service->table, key);
        return respond(connection, text != NULL ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, text);
    }
    if (strcmp(method, "PUT") == 0) {
        return respond(
            connection,
            status_of(store_table_put(service->table, key, upload->bytes != NULL ? upload->bytes : "", upload->length)),
            NULL);
    }
    if (strcmp(method, "DELETE") == 0) {
        return respond(connection, status_of(store_table_remove(service->table, key)), NULL);
    }
    return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, NULL);
}

/* Called once with the header, then with pieces of the body, then with none left. */
static mhd_result handle(void *arg, struct MHD_Connection *connection, const char *path, const char *method,
                         const char *version, const char *bytes, size_t *length, void **context)
{
    struct service *service = arg;

    (void)version;
    if (*context == NULL) {
        *context = calloc(1, sizeof(struct upload));
        return *context != NULL ? MHD_YES : MHD_NO;
    }
    if (*length != 0) {
        take_bytes(*context, bytes, *length, service->settings->max_value);
        *length = 0;
        return MHD_YES;
    }
    return answer(service, connection, path, method, *context);
}

static void end_request(void *arg, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode code)
{
    struct upload *upload = *context;

    (void)arg;
    (void)connection;
    (void)code;
    if (upload != NULL) {
        free(upload->bytes);
        free(upload);
    }
    *context = NULL;
}

/* ---- options -------------------------------------------------------------------------- */

static void usage(FILE *out)
{
    fputs("usage: hte_http_store [OPTION]...\n"
          "A metadata server for the batch transfer engine: keys to texts, by GET, PUT and DELETE of PATH?key=KEY.\n"
          "\n"
          "  -l, --listen ADDRESS  where to listen; 0.0.0.0 or :: for everywhere (default: the source address of\n"
          "                        the default route, else 127.0.0.1). Also ADDRESS:PORT, [V6]:PORT\n"
          "  -p, --port PORT       0 = any that is free (default: 8080)\n"
          "  -P, --path PATH       (default: /metadata)\n"
          "  -f, --file FILE       come back from it, and write it within a second after changes (default: none)\n"
          "      --max-value BYTES of one text (default: 1048576)\n"
          "      --max-keys N      (default: 65536)\n"
          "  -h, --help\n"
          "\n"
          "Prints the URL for the engine's `metadata` setting. Ends on SIGTERM and SIGINT with status 0.\n"
          "Whoever reaches it can read and change everything: see \"secret\" in hte(7).\n",
          out);
}

static bool parse_number(const char *name, const char *text, unsigned long long min, unsigned long long max,
                         unsigned long long *number)
{
    char *end;

    errno   = 0;
    *number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || *number < min || *number > max) {
        fprintf(stderr, "hte_http_store: --%s '%s' is not a number in %llu..%llu\n", name, text, min, max);
        return false;
    }
    return true;
}

/* The engine takes the URL as it is printed, and libmicrohttpd decodes what it is asked for. */
static bool is_good_path(const char *path)
{
    const char *c;

    for (c = path; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || strchr("?#%\x7f", *c) != NULL) {
            return false;
        }
    }
    return path[0] == '/';
}

/* 0 = go on, else the exit status plus 1 */
static int parse_options(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"path", required_argument, NULL, 'P'},
                                            {"file", required_argument, NULL, 'f'},
                                            {"max-value", required_argument, NULL, 'v'},
                                            {"max-keys", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    unsigned long long         number;
    int                        option;

    while ((option = getopt_long(argc, argv, "l:p:P:f:h", options, NULL)) != -1) {
        switch (option) {
        case 'l':
            settings->listen = optarg;
            break;
        case 'P':
            settings->path = optarg;
            break;
        case 'f':
            settings->file = optarg;
            break;
        case 'p':
            if (!parse_number("port", optarg, 0, UINT16_MAX, &number)) {
                return 3;
            }
            settings->port     = (uint16_t)number;
            settings->has_port = true;
            break;
        case 'v':
            if (!parse_number("max-value", optarg, 1, 1u << 30, &number)) {
                return 3;
            }
            settings->max_value = (size_t)number;
            break;
        case 'k':
            if (!parse_number("max-keys", optarg, 1, 1u << 30, &number)) {
                return 3;
            }
            settings->max_keys = (size_t)number;
            break;
        case 'h':
            usage(stdout);
            return 1;
        default:
            usage(stderr);
            return 3;
        }
    }
    if (optind != argc) {
        fprintf(stderr, "hte_http_store: arguments are not expected, see --help\n");
        return 3;
    }
    if (!is_good_path(settings->path)) {
        fprintf(stderr, "hte_http_store: --path must begin with a slash, and have no blanks, control characters, "
                        "?, # and %%\n");
        return 3;
    }
    return 0;
}

/* ---- running ----------------------------------------------------------------------------- */

static void announce(const struct settings *settings, const char *host, uint16_t port)
{
    char address[HTE_ADDRESS_TEXT_MAX];

    hte_net_join(host, port, address);
    printf("http://%s%s\n", address, settings->path);
    fflush(stdout);
}

/* Until SIGTERM or SIGINT, which are blocked everywhere. */
static void wait_and_save(struct store_table *table, const sigset_t *signals)
{
    const struct timespec second = {.tv_sec = 1};
    char                  error[512];
    bool                  was_good = true, good;

    do {
        good = store_table_save(table, error, sizeof(error));
        if (!good && was_good) {
            fprintf(stderr, "hte_http_store: %s\n", error);
        }
        was_good = good;
    } while (sigtimedwait(signals, NULL, &second) < 0);
}

static int serve(struct service *service, const char *host, const sigset_t *signals)
{
    struct MHD_Daemon *daemon;
    struct hte_why     why;
    uint16_t           port = service->settings->port, bound;
    int                fd;

    if (hte_net_listen(host, port != 0 ? port : 8080, port != 0 ? port : 65535, &fd, &bound, &why) != 0) {
        fprintf(stderr, "hte_http_store: %s\n", why.text);
        return 1;
    }
    daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, handle, service,
                              MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL,
                              MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                              (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "hte_http_store: the HTTP server does not start: %s\n", strerror(errno));
        close(fd);
        return 1;
    }
    announce(service->settings, host, bound);
    wait_and_save(service->table, signals);
    MHD_stop_daemon(daemon); /* closes fd */
    return 0;
}

/* The address, and the port when it is written behind it. */
static bool choose_address(struct settings *settings, char host[HTE_HOST_MAX + 1])
{
    struct hte_why why;
    uint16_t       port;

    if (settings->listen == NULL) {
        hte_net_management_address(NULL, host);
        return true;
    }
    if (hte_net_split(settings->listen, host, &port, &why) != 0) {
        fprintf(stderr, "hte_http_store: --listen %s\n", why.text);
        return false;
    }
    if (port != 0 && settings->has_port && port != settings->port) {
        fprintf(stderr, "hte_http_store: --listen '%s' and --port %u are two ports: give one of them\n",
                settings->listen, settings->port);
        return false;
    }
    settings->port = port != 0 ? port : settings->port;
    return true;
}

int main(int argc, char **argv)
{
    struct settings settings = {.path = "/metadata", .port = 8080, .max_value = 1 << 20, .max_keys = 65536};
    struct service  service  = {.settings = &settings};
    char            host[HTE_HOST_MAX + 1], error[512];
    sigset_t        signals;
    int             status = parse_options(argc, argv, &settings);

    if (status != 0) {
        return status - 1;
    }
    if (!choose_address(&settings, host)) {
        return 2;
    }
    service.table = store_table_open(settings.file, settings.max_keys, error, sizeof(error));
    if (service.table == NULL) {
        fprintf(stderr, "hte_http_store: %s\n", error);
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    status = serve(&service, host, &signals);
    store_table_close(service.table);
    return status;
}
