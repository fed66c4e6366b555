/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "doors.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>

struct door door;

#define EXPORT     __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

void door_reset(void)
{
    memset(&door, 0, sizeof(door));
    pthread_mutex_init(&door.lock, NULL);
    door.bad_rail   = -1;
    door.least_room = 1 << 30;
}

static void note_room(const void *pointer)
{
    long room = (long)malloc_usable_size((void *)(uintptr_t)pointer);

    if (room < door.least_room) {
        door.least_room = room;
    }
}

/* Contexts come in the order of option devices. */
EXPORT ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker)
{
    ucs_status_t status = REAL(ucp_worker_create)(context, params, worker);
    int          rail;

    pthread_mutex_lock(&door.lock);
    for (rail = 0; rail < door.n_contexts && door.contexts[rail] != context; ++rail) {
    }
    if (rail == door.n_contexts && rail < DOOR_RAILS) {
        door.contexts[door.n_contexts++] = context;
    }
    if (status == UCS_OK && door.n_workers < DOOR_WORKERS_MAX) {
        door.workers[door.n_workers].worker = *worker;
        door.workers[door.n_workers++].rail = rail;
    }
    pthread_mutex_unlock(&door.lock);
    return status;
}

EXPORT ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    ucs_status_t status;
    int          i;

    note_room(params->address);
    status = REAL(ucp_ep_create)(worker, params, ep);
    if (status != UCS_OK) {
        return status;
    }
    ++door.eps_created;
    pthread_mutex_lock(&door.lock);
    for (i = 0; i < door.n_workers && door.workers[i].worker != worker; ++i) {
    }
    if (door.n_eps < DOOR_EPS_MAX && i < door.n_workers) {
        door.eps[door.n_eps].ep     = *ep;
        door.eps[door.n_eps++].rail = door.workers[i].rail;
    }
    pthread_mutex_unlock(&door.lock);
    return status;
}

EXPORT ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    ucs_status_ptr_t request = REAL(ucp_ep_close_nbx)(ep, param);

    door.eps_closed += !UCS_PTR_IS_ERR(request);
    return request;
}

EXPORT ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *buffer, ucp_rkey_h *rkey)
{
    note_room(buffer);
    ++door.keys_unpacked;
    return REAL(ucp_ep_rkey_unpack)(ep, buffer, rkey);
}

EXPORT ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh)
{
    door.prot = params->field_mask & UCP_MEM_MAP_PARAM_FIELD_PROT ? params->prot : 0;
    return REAL(ucp_mem_map)(context, params, memh);
}

EXPORT ucs_status_t ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **buffer, size_t *size)
{
    ++door.keys_packed;
    return REAL(ucp_rkey_pack)(context, memh, buffer, size);
}

EXPORT ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    int i = door.n_held;

    if (door.holds_flushes && i < DOOR_HELD_MAX) {
        door.held[i].done = param->cb.send;
        door.held[i].arg  = param->user_data;
        ++door.n_held;
        return &door.held[i]; /* a request that nobody looks into */
    }
    if (door.is_fake) {
        return NULL;
    }
    if (door.flushes_to_fail > 0) {
        --door.flushes_to_fail;
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return REAL(ucp_ep_flush_nbx)(ep, param);
}

EXPORT unsigned ucp_worker_progress(ucp_worker_h worker)
{
    static __typeof__(&ucp_worker_progress) _Atomic real;
    int                                             i;

    if (real == NULL) {
        real = REAL(ucp_worker_progress);
    }
    while (door.n_let_go < door.let_go && door.n_let_go < door.n_held) {
        i = door.n_let_go++;
        door.held[i].done(NULL, UCS_OK, door.held[i].arg);
    }
    return real(worker);
}

EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                        const void *buffer, size_t count, const ucp_request_param_t *param)
{
    ++door.letters;
    if (*(const uint32_t *)header % 8 == 0) { /* DATA */
        door.sender = pthread_self();
    }
    ++door.letters_of[*(const uint32_t *)header % 8];
    if (door.spoil != NULL) {
        door.spoil((void *)(uintptr_t)header, (void *)(uintptr_t)buffer);
    }
    if (door.letters_to_fail > 0) {
        --door.letters_to_fail;
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return REAL(ucp_am_send_nbx)(ep, id, header, header_length, buffer, count, param);
}

/* The newest: addresses of endpoints are used again. */
static int rail_of(ucp_ep_h ep)
{
    int i, rail = 0;

    pthread_mutex_lock(&door.lock);
    for (i = 0; i < door.n_eps; ++i) {
        if (door.eps[i].ep == ep) {
            rail = door.eps[i].rail;
        }
    }
    pthread_mutex_unlock(&door.lock);
    return rail;
}

EXPORT ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote, ucp_rkey_h rkey,
                                    const ucp_request_param_t *param)
{
    int rail = rail_of(ep);

    ++door.puts[rail];
    if (door.is_fake) {
        return NULL;
    }
    if (rail == door.bad_rail) {
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return REAL(ucp_put_nbx)(ep, buffer, count, remote, rkey, param);
}
