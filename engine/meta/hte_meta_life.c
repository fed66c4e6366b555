/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hte_hmac.h"
#include "hte_meta_answer.h"
#include "hte_meta_segment.h"
#include "hte_meta_state.h"
#include "hte_session.h"

#define CONNECT_MS  5000
#define CALL_MS     60000
#define READ_MS     5000
#define REFRESH_MS  10000
#define FRAME_MAX   (1u << 20)
#define FRAME_LIMIT (64u << 20)
#define PEERS_MAX   128
#define PEERS_LIMIT 65536
#define REPLY_MAX   (128u << 10)

static int check_options(const struct hte_meta_options *options, struct hte_why *why)
{
    if (options->max_frame > FRAME_LIMIT || (options->max_frame != 0 && options->max_frame < HTE_SESSION_FRAME_MAX)) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a largest frame of %zu bytes: %d..%u are allowed",
                           options->max_frame, HTE_SESSION_FRAME_MAX, FRAME_LIMIT);
    }
    if (options->max_peers > PEERS_LIMIT) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "%u connections at once: at most %u are allowed",
                           options->max_peers, PEERS_LIMIT);
    }
    if (options->name != NULL && (options->name[0] == '\0' || strlen(options->name) > HTE_NAME_MAX)) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a segment name of %zu characters: 1..%d are allowed",
                           strlen(options->name), HTE_NAME_MAX);
    }
    if (options->cluster != NULL && strlen(options->cluster) > 128) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "a cluster name of %zu characters: at most 128 are allowed",
                           strlen(options->cluster));
    }
    return hte_session_check_secret(options->secret, why);
}

static bool is_p2p(const char *url)
{
    return url == NULL || strcmp(url, HTE_META_P2P) == 0;
}

static struct hte_meta *create(const struct hte_meta_options *options)
{
    struct hte_meta   *meta = calloc(1, sizeof(*meta));
    pthread_condattr_t attr;

    if (meta == NULL) {
        return NULL;
    }
    pthread_mutex_init(&meta->lock, NULL);
    pthread_mutex_init(&meta->store_turn, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&meta->wake, &attr);
    pthread_condattr_destroy(&attr);
    meta->handler           = options->handler;
    meta->arg               = options->arg;
    meta->secret            = options->secret != NULL ? strdup(options->secret) : NULL;
    meta->cluster           = strdup(options->cluster != NULL ? options->cluster : "");
    meta->refresh_ms        = options->refresh_ms != 0 ? options->refresh_ms : REFRESH_MS;
    meta->client.secret     = meta->secret;
    meta->client.from       = meta->name;
    meta->client.stop       = &meta->is_stopped;
    meta->client.connect_ms = options->connect_ms != 0 ? options->connect_ms : CONNECT_MS;
    meta->client.call_ms    = options->call_ms != 0 ? options->call_ms : CALL_MS;
    meta->client.max_frame  = options->max_frame != 0 ? options->max_frame : FRAME_MAX;
    meta->reply_size        = meta->client.max_frame / 8 < REPLY_MAX ? meta->client.max_frame / 8 : REPLY_MAX;
    meta->reply             = malloc(meta->reply_size);
    return meta;
}

static void destroy(struct hte_meta *meta)
{
    if (meta->server != NULL) {
        hte_server_stop(meta->server);
    }
    hte_store_close(meta->store);
    if (meta->secret != NULL) {
        hte_wipe(meta->secret, strlen(meta->secret));
    }
    free(meta->secret);
    free(meta->cluster);
    free(meta->reply);
    free(meta->published);
    pthread_cond_destroy(&meta->wake);
    pthread_mutex_destroy(&meta->store_turn);
    pthread_mutex_destroy(&meta->lock);
    free(meta);
}

/* Where to listen, and what others connect to. */
struct place {
    char     bind[HTE_HOST_MAX + 1];
    char     shown[HTE_HOST_MAX + 1];
    uint16_t port; /* 0 = choose */
};

static bool is_any(const char *address)
{
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

static int find_place(const struct hte_meta_options *options, struct place *place, struct hte_why *why)
{
    char host[HTE_HOST_MAX + 1] = "";
    int  ret                    = 0;

    place->port = 0;
    if (is_p2p(options->url) && options->name != NULL) {
        ret = hte_net_split(options->name, host, &place->port, why);
        if (ret != 0) {
            return ret;
        }
    }
    if (options->bind_address != NULL && strlen(options->bind_address) > HTE_HOST_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the bind address has more than %d characters", HTE_HOST_MAX);
    }
    if (options->bind_address != NULL) {
        strcpy(place->bind, options->bind_address);
    } else {
        hte_net_management_address(host[0] != '\0' ? host : NULL, place->bind);
    }
    if (options->port != 0) {
        place->port = options->port;
    }
    if (host[0] != '\0') {
        strcpy(place->shown, host); /* the name that the owner chose, maybe of a router in front of him */
    } else if (is_any(place->bind)) {
        hte_net_management_address(NULL, place->shown);
    } else {
        strcpy(place->shown, place->bind);
    }
    return 0;
}

static int start_server(struct hte_meta *meta, const struct hte_meta_options *options, const struct place *place,
                        struct hte_why *why)
{
    struct hte_server_options server = {.host       = place->bind,
                                        .first_port = place->port != 0 ? place->port : HTE_META_PORT_FIRST,
                                        .last_port  = place->port != 0 ? place->port : HTE_META_PORT_LAST,
                                        .secret     = meta->secret,
                                        .read_ms    = options->read_ms != 0 ? options->read_ms : READ_MS,
                                        .max_frame  = meta->client.max_frame,
                                        .max_peers  = options->max_peers != 0 ? options->max_peers : PEERS_MAX,
                                        .answer     = hte_meta_answer,
                                        .arg        = meta};

    return hte_server_start(&server, &meta->server, why);
}

static int set_names(struct hte_meta *meta, const struct hte_meta_options *options, const struct place *place,
                     struct hte_why *why)
{
    const char *name = meta->address;

    hte_net_join(place->shown, hte_server_port(meta->server), meta->address);
    if (!is_p2p(options->url) && options->name != NULL) {
        name = options->name;
    }
    if (strlen(name) > HTE_NAME_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the segment name %.64s... has more than %d characters", name,
                           HTE_NAME_MAX);
    }
    pthread_mutex_lock(&meta->lock);
    strcpy(meta->name, name);
    pthread_mutex_unlock(&meta->lock);
    return 0;
}

static int open_store(struct hte_meta *meta, const struct hte_meta_options *options, struct hte_why *why)
{
    struct hte_store_options store = {
        .connect_ms = meta->client.connect_ms, .answer_ms = meta->client.call_ms, .max_value = meta->client.max_frame};
    int ret;

    if (is_p2p(options->url)) {
        return 0;
    }
    ret = hte_store_open(options->url, &store, &meta->store, why);
    return ret != 0 ? ret : hte_meta_start_refresher(meta, why);
}

static int start(struct hte_meta *meta, const struct hte_meta_options *options, struct hte_why *why)
{
    struct place place;
    int          ret = find_place(options, &place, why);

    if (ret == 0) {
        ret = start_server(meta, options, &place, why);
    }
    if (ret == 0) {
        ret = set_names(meta, options, &place, why);
    }
    if (ret == 0) {
        ret = open_store(meta, options, why);
    }
    return ret;
}

int hte_meta_open(const struct hte_meta_options *options, struct hte_meta **meta, struct hte_why *why)
{
    struct hte_meta *made;
    int              ret = check_options(options, why);

    if (ret != 0) {
        return ret;
    }
    made = create(options);
    if (made == NULL || made->cluster == NULL || made->reply == NULL ||
        (made->secret == NULL && options->secret != NULL)) {
        ret = hte_why_set(why, HTE_ERR_MEMORY, "no memory for the metadata part");
    } else {
        ret = start(made, options, why);
    }
    if (ret != 0) {
        if (made != NULL) {
            destroy(made);
        }
        return ret;
    }
    *meta = made;
    return 0;
}

void hte_meta_stop(struct hte_meta *meta)
{
    atomic_store(&meta->is_stopped, true);
}

void hte_meta_close(struct hte_meta *meta)
{
    if (meta == NULL) {
        return;
    }
    pthread_mutex_lock(&meta->lock);
    meta->stopping = true;
    pthread_cond_signal(&meta->wake);
    pthread_mutex_unlock(&meta->lock);
    if (meta->refreshing) {
        pthread_join(meta->refresher, NULL);
    }
    destroy(meta);
}

const char *hte_meta_name(const struct hte_meta *meta)
{
    return meta->name;
}

const char *hte_meta_address(const struct hte_meta *meta)
{
    return meta->address;
}

uint16_t hte_meta_port(const struct hte_meta *meta)
{
    return hte_server_port(meta->server);
}
