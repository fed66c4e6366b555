/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_INTERNAL_H_
#define HTE_META_INTERNAL_H_

/* What the files of hte_meta share: life (hte_meta.c), segments (hte_meta_segment.c), calls (hte_meta_call.c). */

#include <pthread.h>
#include <stdbool.h>

#include "hte_client.h"
#include "hte_meta.h"
#include "hte_net.h"
#include "hte_server.h"

struct hte_meta {
    hte_call_handler          handler;
    void                     *arg;
    char                     *secret;  /* NULL = none */
    char                     *cluster; /* "" = none */
    struct hte_client_options client;
    _Atomic bool              is_stopped; /* no call of ours waits any longer */
    struct hte_store         *store;   /* NULL: peer to peer */
    struct hte_server        *server;
    char                     *reply;   /* room for the handler's, of the server's thread */
    size_t                    reply_size;
    unsigned                  refresh_ms;
    char                      address[HTE_ADDRESS_TEXT_MAX];

    pthread_mutex_t lock;              /* guards the fields below; held for moments */
    char            name[HTE_NAME_MAX + 1];
    char           *published;         /* JSON of the own descriptor, NULL = none */
    bool            stopping;

    pthread_mutex_t store_turn;        /* around each publication, withdrawal and refreshment; taken before `lock` */
    bool            claimed;           /* under store_turn: the name is ours in the store */
    bool            refreshing;        /* the thread below exists */
    pthread_t       refresher;
    pthread_cond_t  wake;              /* `stopping` was set */
};

/* Of hte_meta_call.c: the server's door, arg = struct hte_meta. */
void hte_meta_answer(void *arg, const struct hte_ask *request, struct hte_reply *reply);
/* One exchange with the process at `address`; the peer's error is this function's. *payload is the caller's. */
int hte_meta_ask(const struct hte_client_options *options, const char *address,
                 enum hte_ask_type type, const char *request, char **payload, struct hte_why *why);

/* Of hte_meta_segment.c. */
int hte_meta_locate(struct hte_meta *meta, const char *segment, char address[HTE_ADDRESS_TEXT_MAX],
                    struct hte_why *why);
/* The thread that keeps the store filled. */
int hte_meta_start_refresher(struct hte_meta *meta, struct hte_why *why);

#endif
