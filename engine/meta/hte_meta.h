/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_H_
#define HTE_META_H_

/*
 * The engine's only door to metadata and to other processes' control plane:
 * publish the own segment's descriptor, fetch another's by name, exchange
 * small messages. Behind it stand a store (hte_store.h) or, with the URL
 * P2PHANDSHAKE, nothing but the peers; and always one handshake server.
 *
 *   with a store   descriptor at  mooncake/[cluster/]ram/<segment>,
 *                  address of its handshake server at  mooncake/[cluster/]rpc_meta/<segment>
 *   P2PHANDSHAKE   the segment's name is "host:port" of its handshake server, which answers itself
 *
 * Threads: every function may be called from any thread, close last and once.
 * fetch, publish, withdraw, call and close block for at most the timeouts below (name
 * resolution by the system comes on top). Handlers run in the thread of the handshake server:
 * they must not block and must not call hte_meta_close().
 * They may run before hte_meta_open() returned.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hte_why.h"
#include "hte_descriptor.h"
#include "hte_store.h"

#define HTE_META_P2P        "P2PHANDSHAKE"
#define HTE_META_PORT_FIRST 15000 /* of the ports that are tried when none is asked for */
#define HTE_META_PORT_LAST  17000

struct hte_meta;

/* What a peer may ask of this process beside its descriptor. */
enum hte_call {
    HTE_CALL_CONNECTION, /* "I am going to connect": payload up to the engine */
    HTE_CALL_NOTIFY,     /* a notification for the application */
    HTE_CALL_PROBE,      /* are you there; answered without the handler, with the segment's name */
    HTE_CALL_METRICS     /* how are you: counters, as text */
};

/* Answers a call. `from` is the caller's segment name as it claims (proven to be of the same cluster only when a
 * secret is set, never more); `payload` and `from` are valid during the call only. The reply is copied into
 * `reply` (room for `reply_size`, zero-terminated text, starts as ""). Returns 0, or an enum hte_error: the peer's
 * call ends in the same, with the sentence in `why`. */
typedef int (*hte_call_handler)(void *arg, enum hte_call call, const char *from, const char *payload, char *reply,
                                size_t reply_size, struct hte_why *why);

struct hte_meta_options {
    const char *url;          /* NULL = P2PHANDSHAKE, else see hte_store.h */
    const char *cluster;      /* in the keys; NULL or "" = none */
    const char *name;         /* of the own segment: with a store free text, with P2PHANDSHAKE "host" or "host:port";
                               * NULL = the management address (P2PHANDSHAKE adds the port) */
    const char *bind_address; /* numeric address or name of this host, "0.0.0.0" or "::" for all; NULL = the
                               * management address: what the host part of `name` resolves to, where that is an
                               * address of this machine, else the source address of the default route, else loopback */
    uint16_t    port;         /* 0 = the one in `name`, else one of HTE_META_PORT_FIRST..LAST that is free */
    const char *secret;       /* shared by the cluster, at least 16 characters; NULL = none asked and none shown */
    unsigned    connect_ms;   /* 0 = 5000 */
    unsigned    call_ms;      /* for a peer or the store, connecting included; 0 = 60000 */
    unsigned    read_ms;      /* what the server grants a peer for one frame; 0 = 5000 */
    size_t      max_frame;    /* bytes of JSON in a frame; 0 = 1 MiB; at most 64 MiB */
    unsigned    max_peers;    /* connections that the server serves at once; 0 = 128 */
    unsigned    refresh_ms;   /* with a store: how often it is checked that it still knows us; 0 = 10000 */

    hte_call_handler handler; /* NULL = CONNECTION, NOTIFY and METRICS are refused */
    void            *arg;
};

/* Starts the handshake server. Nothing that is passed is kept but `handler` and `arg`. */
int hte_meta_open(const struct hte_meta_options *options, struct hte_meta **meta, struct hte_why *why);

enum hte_presence {
    HTE_PRESENCE_UNKNOWN,
    HTE_PRESENCE_THERE, /* somebody listens at the segment's address */
    HTE_PRESENCE_NOBODY /* its host says that nobody does: the process has ended, or a firewall speaks for it */
};

/* Of the process that publishes a segment. BLOCKS as fetch. */
enum hte_presence hte_meta_presence(struct hte_meta *meta, const char *segment);
/* Whether opening a segment has spoken with its process, and not with a store only. */
bool hte_meta_is_p2p(const struct hte_meta *meta);

/* Calls to other processes that are under way in other threads, and later ones, end in HTE_ERR_CANCELED soon; those
 * to a store in their own time. What others ask is answered until close. */
void hte_meta_stop(struct hte_meta *meta);
/* Withdraws nothing (see hte_meta_withdraw()). No handler runs any more when it returns. */
void hte_meta_close(struct hte_meta *meta);

/* What others call the own segment, what they connect to ("host:port"), and the port. Valid until close. */
const char *hte_meta_name(const struct hte_meta *meta);
const char *hte_meta_address(const struct hte_meta *meta);
uint16_t    hte_meta_port(const struct hte_meta *meta);

/* Makes `descriptor` what others fetch from now on; its name is replaced by the own segment's (and may be NULL). With
 * a store, one that is found empty later (restarted without its data) is filled again.
 * HTE_ERR_EXISTS when, at the first time, another live process publishes under this name. */
int hte_meta_publish(struct hte_meta *meta, const struct hte_descriptor *descriptor, struct hte_why *why);
int hte_meta_withdraw(struct hte_meta *meta, struct hte_why *why);

/* The descriptor of `segment`, always asked anew. On success the caller's (hte_descriptor_destroy()). With
 * P2PHANDSHAKE its name is what the process calls itself, "host:port", where `segment` may be another way to reach it.
 * HTE_ERR_UNKNOWN_SEGMENT when there is no such segment, HTE_ERR_HANDSHAKE_REJECTED when the secret does not fit. */
int hte_meta_fetch(struct hte_meta *meta, const char *segment, struct hte_descriptor **descriptor, struct hte_why *why);

/* Calls the process that owns `segment`. `payload` is text of at most max_frame / 8 bytes, NULL = "". *reply (NULL =
 * not wanted) is the caller's, to be given to free(). */
int hte_meta_call(struct hte_meta *meta, const char *segment, enum hte_call call, const char *payload, char **reply,
                  struct hte_why *why);

#endif
