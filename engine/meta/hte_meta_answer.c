/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_meta_answer.h"

#include <string.h>

#include "hte_meta_state.h"

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
    case HTE_ASK_METRICS:
        answer_call(arg, HTE_CALL_METRICS, request, reply);
        break;
    case HTE_ASK_PROBE:
        answer_probe(arg, reply);
        break;
    }
}
