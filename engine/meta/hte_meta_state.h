/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_STATE_H_
#define HTE_META_STATE_H_

/* What is behind hte_meta.h: shared by the files hte_meta_*.c. */

#include <pthread.h>
#include <stdatomic.h>
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
    struct hte_store         *store;      /* NULL: peer to peer */
    struct hte_server        *server;
    char                     *reply; /* room for the handler's, of the server's thread */
    size_t                    reply_size;
    unsigned                  refresh_ms;
    char                      address[HTE_ADDRESS_TEXT_MAX];

    pthread_mutex_t lock; /* guards the fields below; held for moments */
    char            name[HTE_NAME_MAX + 1];
    char           *published; /* JSON of the own descriptor, NULL = none */
    bool            stopping;

    pthread_mutex_t store_turn; /* around each publication, withdrawal and refreshment; taken before `lock` */
    bool            claimed;    /* under store_turn: the name is ours in the store */
    bool            refreshing; /* the thread below exists */
    pthread_t       refresher;
    pthread_cond_t  wake; /* `stopping` was set */
};

#endif
