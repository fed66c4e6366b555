/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_meta_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- being asked ------------------------------------------------------------------ */

static void answer_metadata(struct hte_meta *meta, const char *segment, struct hte_reply *reply)
{
    pthread_mutex_lock(&meta->lock);
    if (meta->published == NULL || (meta->store != NULL && strcmp(segment, meta->name) != 0)) {
        reply->error = hte_why_set(&reply->why, HTE_ERR_UNKNOWN_SEGMENT, "%s publishes no segment %s", meta->name,
                                   segment);
    } else {
        reply->payload = strdup(meta->published);
    }
    pthread_mutex_unlock(&meta->lock);
    if (reply->error == 0 && reply->payload == NULL) {
        reply->error = hte_why_set(&reply->why, HTE_ERR_MEMORY, "no memory for an answer");
    }
}

static void answer_probe(struct hte_meta *meta, struct hte_reply *reply)
{
    pthread_mutex_lock(&meta->lock);
    reply->payload = strdup(meta->name);
    pthread_mutex_unlock(&meta->lock);
}

static void answer_call(struct hte_meta *meta, enum hte_call call, const struct hte_ask *request,
                        struct hte_reply *reply)
{
    if (meta->handler == NULL) {
        reply->error = hte_why_set(&reply->why, HTE_ERR_NOT_IMPLEMENTED, "calls are not taken here");
        return;
    }
    meta->reply[0] = '\0';
    reply->error   = meta->handler(meta->arg, call, request->from, request->payload, meta->reply, meta->reply_size,
                                   &reply->why);
    if (reply->error == 0) {
        reply->payload = strdup(meta->reply);
    }
}

void hte_meta_answer(void *arg, const struct hte_ask *request, struct hte_reply *reply)
{
    switch (request->type) {
    case HTE_ASK_METADATA:
        answer_metadata(arg, request->payload, reply);
        break;
    case HTE_ASK_CONNECTION:
        answer_call(arg, HTE_CALL_CONNECTION, request, reply);
        break;
    case HTE_ASK_NOTIFY:
        answer_call(arg, HTE_CALL_NOTIFY, request, reply);
        break;
    case HTE_ASK_PROBE:
        answer_probe(arg, reply);
        break;
    }
}

/* ---- asking -------------------------------------------------------------------------- */

int hte_meta_ask(const struct hte_client_options *options, const char *address,
                 enum hte_ask_type type, const char *request, char **payload, struct hte_why *why)
{
    char host[HTE_HOST_MAX + 1];
    struct hte_reply reply;
    uint16_t port;
    int ret = hte_net_split(address, host, &port, why);

    if (ret != 0) {
        return ret;
    }
    if (port == 0) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "segment '%s': host:port is expected", address);
    }
    ret = hte_client_call(options, host, port, type, request, &reply, why);
    if (ret != 0) {
        return ret;
    }
    if (reply.error != 0) {
        hte_why_set(why, reply.error, "peer %s: %.200s", address,
                    reply.why.text[0] != '\0' ? reply.why.text : "it refused");
        hte_reply_cleanup(&reply);
        return reply.error;
    }
    *payload = reply.payload;
    return 0;
}

bool hte_meta_is_p2p(const struct hte_meta *meta)
{
    return meta->store == NULL;
}

enum hte_presence hte_meta_presence(struct hte_meta *meta, const char *segment)
{
    const struct hte_client_options *limits = &meta->client;
    char address[HTE_ADDRESS_TEXT_MAX], host[HTE_HOST_MAX + 1];
    uint16_t port;
    int fd, ret;

    if (hte_meta_locate(meta, segment, address, NULL) != 0 || hte_net_split(address, host, &port, NULL) != 0) {
        return HTE_PRESENCE_UNKNOWN;
    }
    fd  = 0;
    ret = hte_net_connect(host, port, hte_net_now() + (limits->connect_ms < limits->call_ms ? limits->connect_ms :
                                                       limits->call_ms), limits->stop, &fd, NULL);
    if (ret == 0) {
        close(fd);
        return HTE_PRESENCE_THERE;
    }
    return ret == HTE_ERR_SOCKET && fd == -ECONNREFUSED ? HTE_PRESENCE_NOBODY : HTE_PRESENCE_UNKNOWN;
}

int hte_meta_call(struct hte_meta *meta, const char *segment, enum hte_call call, const char *payload, char **reply,
                  struct hte_why *why)
{
    static const enum hte_ask_type types[] = {
        [HTE_CALL_CONNECTION] = HTE_ASK_CONNECTION, [HTE_CALL_NOTIFY] = HTE_ASK_NOTIFY, [HTE_CALL_PROBE] = HTE_ASK_PROBE
    };
    char address[HTE_ADDRESS_TEXT_MAX], *answer;
    int ret = hte_meta_locate(meta, segment, address, why);

    if (ret == 0) {
        ret = hte_meta_ask(&meta->client, address, types[call], payload != NULL ? payload : "", &answer, why);
    }
    if (ret != 0) {
        return ret;
    }
    if (reply != NULL) {
        *reply = answer;
    } else {
        free(answer);
    }
    return 0;
}
