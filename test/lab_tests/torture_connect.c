/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

#define LEAVE_SECONDS 20
#define BLOB_SIZE     (16384 + MAX_EPS * 2048)

void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "ha_torture: %s: %s\n", what, ucs_status_string(status));
        exit(EXIT_USAGE);
    }
}

static void ep_error_handler(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    ep_failed(arg, status);
}

void worker_create(struct torture *t)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | (t->opt.wakeup ? UCP_FEATURE_WAKEUP : 0) |
                    (t->opt.plan.ops & (1u << KIND_AMO) ? UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 : 0),
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };

    must(ucp_init(&params, NULL, &t->run->context), "ucp_init");
    must(ucp_worker_create(t->run->context, &worker_params, &t->run->worker), "ucp_worker_create");
    if (t->opt.wakeup) {
        must(ucp_worker_get_efd(t->run->worker, &t->run->event_fd), "ucp_worker_get_efd");
    }
}

static void ep_create(struct torture *t, const void *address)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .address    = address,
        .err_mode   = UCP_ERR_HANDLING_MODE_NONE,
    };

    if (t->opt.plan.peer_err) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode    = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = (ucp_err_handler_t){.cb = ep_error_handler, .arg = t};
    }
    must(ucp_ep_create(t->run->worker, &params, &t->ep), "ucp_ep_create");
}

/* Blob: size of the worker's address, the address, the remote keys of each endpoint. */
void peer_connect(struct torture *t)
{
    static char    blob[BLOB_SIZE];
    ucp_address_t *address;
    size_t         length, used, peer_size;
    uint64_t       size;
    void          *peer;

    must(ucp_worker_get_address(t->run->worker, &address, &length), "ucp_worker_get_address");
    if (length > 8192) {
        fprintf(stderr, "ha_torture: worker address of %zu bytes\n", length);
        exit(EXIT_USAGE);
    }
    size = length;
    memcpy(blob, &size, sizeof(size));
    memcpy(blob + sizeof(size), address, length);
    used = sizeof(size) + length;
    for_each_ep(e, t)
    {
        used += rma_pack(e, blob + used, sizeof(blob) - used);
        used += amo_pack(e, blob + used, sizeof(blob) - used);
    }
    ucp_worker_release_address(t->run->worker, address);

    link_exchange(t, blob, used, &peer, &peer_size);
    memcpy(&size, peer, sizeof(size));
    used = sizeof(size) + size;
    for_each_ep(e, t)
    {
        ep_create(e, (char *)peer + sizeof(size));
        used += rma_unpack(e, (char *)peer + used, peer_size - used);
        used += amo_unpack(e, (char *)peer + used, peer_size - used);
    }
    free(peer);
}

void ep_close(struct torture *t, int force)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(t->ep, &param);
    double           until   = now_seconds() + LEAVE_SECONDS;

    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(t->run->worker);
        if (now_seconds() > until) {
            printf("%.3f closing the endpoint took longer than %d s\n", wall_seconds(), LEAVE_SECONDS);
            _exit(EXIT_STUCK);
        }
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void ep_flushed(void *request, ucs_status_t status, void *user_data)
{
    (void)status; /* an error of the endpoint is reported by its handler or by its operations */
    ucp_request_free(request);
    --*(unsigned *)user_data;
}

/* *pending goes down by one when everything posted so far is complete at the peer. */
void ep_flush_start(struct torture *t, unsigned *pending)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ep_flushed,
        .user_data    = pending,
    };
    ucs_status_ptr_t request = ucp_ep_flush_nbx(t->ep, &param);

    if (UCS_PTR_IS_ERR(request)) {
        ep_failed(t, UCS_PTR_STATUS(request));
    } else if (request != NULL) {
        ++*pending;
    }
}
