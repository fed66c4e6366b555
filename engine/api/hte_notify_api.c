/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_notify_*. */
#include <stdlib.h>

#include "base/hte_error.h"
#include "hte_engine.h"

static int drain(struct hte_engine *engine, struct hte_notification **notifications, size_t *count)
{
    if (notifications == NULL || count == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "notifications or count is NULL");
    }
    return hte_notify_take(&engine->notify, notifications, count);
}

int hte_notify_drain(struct hte_engine *engine, struct hte_notification **notifications, size_t *count)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = drain(engine, notifications, count);
        hte_leave(engine);
    }
    return error;
}

void hte_notify_free(struct hte_notification *notifications, size_t count)
{
    size_t i;

    for (i = 0; notifications != NULL && i < count; ++i) {
        free(notifications[i].from);
        free(notifications[i].name);
        free(notifications[i].text);
    }
    free(notifications);
}

static int send_now(struct hte_engine *engine, hte_segment_t target, const char *name, const char *text)
{
    struct hte_segment *segment;
    int                 error = hte_notify_check(name, text);

    if (error != HTE_OK) {
        return error;
    }
    if (target == HTE_SEGMENT_LOCAL) {
        return hte_notify_deliver(engine->meta, hte_meta_name(engine->meta), name, text);
    }
    segment = hte_segments_get(&engine->segments, target);
    if (segment == NULL) {
        return hte_fail(HTE_ERR_BAD_HANDLE, "segment %d is not open", target);
    }
    error = hte_notify_deliver(engine->meta, segment->name, name, text);
    hte_segment_put(segment);
    return error;
}

int hte_notify_send(struct hte_engine *engine, hte_segment_t target, const char *name, const char *text)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = send_now(engine, target, name, text);
        hte_leave(engine);
    }
    return error;
}
