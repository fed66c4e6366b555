/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches and notifications. */
#include <stdlib.h>
#include <string.h>

#include "hte.h"
#include "shim_error.h"
#include "transfer_engine_c.h"

#define FEW 128 /* requests that are turned into libhte's on the stack */

batch_id_t allocateBatchID(transfer_engine_t engine, size_t batch_size)
{
    hte_batch_t batch;

    return shim_result(__func__, hte_batch_alloc(engine, batch_size, &batch)) == 0 ? batch : INVALID_BATCH;
}

int freeBatchID(transfer_engine_t engine, batch_id_t batch_id)
{
    return -shim_result(__func__, hte_batch_free(engine, batch_id));
}

static void copy_requests(struct hte_request *to, const struct transfer_request *from, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        to[i] = (struct hte_request){.opcode        = from[i].opcode,
                                     .target        = from[i].target_id,
                                     .local         = from[i].source,
                                     .target_offset = from[i].target_offset,
                                     .length        = from[i].length};
    }
}

static int submit_copy(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests, size_t count,
                       const notify_msg_t *notify)
{
    return notify == NULL ? hte_batch_submit(engine, batch, requests, count)
                          : hte_batch_submit_notify(engine, batch, requests, count, notify->name, notify->msg);
}

static int submit(const char *function, transfer_engine_t engine, batch_id_t batch_id,
                  const struct transfer_request *entries, size_t count, const notify_msg_t *notify)
{
    struct hte_request few[FEW], *requests = few;
    int                result;

    if (count > HTE_BATCH_MAX || (entries == NULL && count > 0)) {
        return -shim_refuse(function, count > HTE_BATCH_MAX ? HTE_ERR_TOO_MANY_REQUESTS : HTE_ERR_INVALID_ARGUMENT,
                            "there is no list of %zu requests", count);
    }
    if (count == 0 && notify == NULL) {
        /* nothing to do is fine there, if the batch is one */
        return -shim_result(function, hte_batch_status(engine, batch_id, &(struct hte_batch_status){0}));
    }
    if (count > FEW) {
        requests = malloc(count * sizeof(*requests));
        if (requests == NULL) {
            return -shim_refuse(function, HTE_ERR_MEMORY, "no memory for %zu requests", count);
        }
    }
    copy_requests(requests, entries, count);
    result = -shim_result(function, submit_copy(engine, batch_id, requests, count, notify));
    if (requests != few) {
        free(requests);
    }
    return result;
}

int submitTransfer(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request *entries, size_t count)
{
    return submit(__func__, engine, batch_id, entries, count, NULL);
}

int submitTransferWithNotify(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request *entries,
                             size_t count, notify_msg_t notify_msg)
{
    return submit(__func__, engine, batch_id, entries, count, &notify_msg);
}

/* Users of this interface, NIXL's plugin among them, know one bad end: FAILED. What else is neither that nor under
 * way they take for a success, so nothing else may come out here. */
static int status_of(int code)
{
    return code == HTE_WAITING || code == HTE_PENDING || code == HTE_COMPLETED ? code : STATUS_FAILED;
}

int getTransferStatus(transfer_engine_t engine, batch_id_t batch_id, size_t task_id, struct transfer_status *status)
{
    static const char *const ends[] = {[HTE_INVALID]  = "target took the memory back",
                                       [HTE_CANCELED] = "canceled",
                                       [HTE_TIMEOUT]  = "timed out",
                                       [HTE_FAILED]   = "failed"};
    struct hte_status        found;
    int                      error;

    if (status == NULL) {
        return -shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "status is NULL");
    }
    error = hte_request_status(engine, batch_id, task_id, &found);
    if (error != HTE_OK) {
        return -shim_result(__func__, error);
    }
    *status = (struct transfer_status){.status = status_of(found.code), .transferred_bytes = found.transferred};
    if (status->status == STATUS_FAILED) {
        shim_refuse(__func__, found.error, "request %zu of the batch %s after %llu bytes", task_id, ends[found.code],
                    (unsigned long long)found.transferred);
    }
    return 0;
}

/* ---- notifications ---- */

int freeNotifsMsgBuf(notify_msg_t *msg, int size)
{
    int i;

    for (i = 0; msg != NULL && i < size; ++i) {
        free(msg[i].name);
        free(msg[i].msg);
    }
    free(msg);
    return 0;
}

/* Each text by itself from malloc(): there are programs that free them so. NULL: no memory. */
static notify_msg_t *copy_notifications(const struct hte_notification *from, size_t count)
{
    notify_msg_t *to = calloc(count, sizeof(*to));
    size_t        i;

    for (i = 0; to != NULL && i < count; ++i) {
        to[i] = (notify_msg_t){.name = strdup(from[i].name), .msg = strdup(from[i].text)};
        if (to[i].name == NULL || to[i].msg == NULL) {
            freeNotifsMsgBuf(to, (int)(i + 1));
            return NULL;
        }
    }
    return to;
}

notify_msg_t *getNotifsFromEngine(transfer_engine_t engine, int *size)
{
    struct hte_notification *found;
    notify_msg_t            *copy = NULL;
    size_t                   count;

    if (size == NULL) {
        shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "size is NULL");
        return NULL;
    }
    *size = 0;
    if (shim_result(__func__, hte_notify_drain(engine, &found, &count)) != 0) {
        return NULL;
    }
    if (count > 0) {
        copy = copy_notifications(found, count);
        if (copy == NULL) {
            shim_refuse(__func__, HTE_ERR_MEMORY, "%zu notifications are lost", count);
        } else {
            *size = (int)count;
        }
    }
    hte_notify_free(found, count);
    return copy;
}

int genNotifyInEngine(transfer_engine_t engine, uint64_t target_id, notify_msg_t notify_msg)
{
    if (target_id > INT32_MAX) {
        return shim_refuse(__func__, HTE_ERR_BAD_HANDLE, "%llu is no segment", (unsigned long long)target_id);
    }
    return shim_result(__func__, hte_notify_send(engine, (hte_segment_t)target_id, notify_msg.name, notify_msg.msg));
}
