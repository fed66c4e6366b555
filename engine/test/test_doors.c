/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine asks of UCX, and what it does when UCX says no: functions of UCP are replaced by those below, which count,
 * look at arguments, fail on request, and otherwise call the real ones.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#include "engine/meta/hte_meta.h"
#include "fixture.h"

#define EPS_MAX     64
#define WORKERS_MAX 32
#define RAILS       2

static struct {
    _Atomic int  eps_created, eps_closed, keys_packed;
    _Atomic int  flushes_to_fail;
    _Atomic int  bad_rail;       /* puts on it are refused; -1: none */
    _Atomic int  puts[RAILS];    /* tried */
    _Atomic long least_room;     /* allocated for an address or key that UCX was given */
    unsigned     prot;           /* of the latest registration */
    pthread_mutex_t lock;        /* guards the rest */
    struct { ucp_worker_h worker; int rail; } workers[WORKERS_MAX];
    struct { ucp_ep_h ep; int rail; } eps[EPS_MAX];
    ucp_context_h contexts[RAILS];
    int           n_workers, n_eps, n_contexts;
} door;

#define EXPORT    __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static void reset(void)
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
    int rail;

    pthread_mutex_lock(&door.lock);
    for (rail = 0; rail < door.n_contexts && door.contexts[rail] != context; ++rail) {
    }
    if (rail == door.n_contexts && rail < RAILS) {
        door.contexts[door.n_contexts++] = context;
    }
    if (status == UCS_OK && door.n_workers < WORKERS_MAX) {
        door.workers[door.n_workers].worker = *worker;
        door.workers[door.n_workers++].rail = rail;
    }
    pthread_mutex_unlock(&door.lock);
    return status;
}

EXPORT ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    ucs_status_t status;
    int i;

    note_room(params->address);
    status = REAL(ucp_ep_create)(worker, params, ep);
    if (status != UCS_OK) {
        return status;
    }
    ++door.eps_created;
    pthread_mutex_lock(&door.lock);
    for (i = 0; i < door.n_workers && door.workers[i].worker != worker; ++i) {
    }
    if (door.n_eps < EPS_MAX && i < door.n_workers) {
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
    if (door.flushes_to_fail > 0) {
        --door.flushes_to_fail;
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return REAL(ucp_ep_flush_nbx)(ep, param);
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
    if (rail == door.bad_rail) {
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return REAL(ucp_put_nbx)(ep, buffer, count, remote, rkey, param);
}

/* ---- memory ---- */

/* Nobody gets a key of LOCAL memory, and no more is asked for than is needed. */
static void test_permissions(void **state)
{
    static const unsigned local = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
    static const unsigned remote = UCP_MEM_MAP_PROT_REMOTE_READ | UCP_MEM_MAP_PROT_REMOTE_WRITE;
    struct hte_memory memory = {.addr = aligned_alloc(4096, M), .length = M, .permission = HTE_PERM_LOCAL};
    struct hte_engine *engine;

    (void)state;
    reset();
    create(&engine, NULL, 0);
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.keys_packed, 0);
    assert_int_equal(door.prot, local);
    OK(hte_memory_unregister(engine, memory.addr));
    memory.permission = HTE_PERM_GLOBAL_RO;
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.keys_packed, 1);
    assert_int_equal(door.prot, local | UCP_MEM_MAP_PROT_REMOTE_READ);
    OK(hte_memory_unregister(engine, memory.addr));
    memory.permission = HTE_PERM_GLOBAL_RW;
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(door.prot, local | remote);
    hte_destroy(engine);
    free(memory.addr);
}

/* LOCAL memory is good for requests all the same. */
static void test_local_memory_works(void **state)
{
    struct hte_memory memory = {.addr = aligned_alloc(4096, M), .length = M, .permission = HTE_PERM_LOCAL};
    struct hte_request r;
    struct fixture f;

    (void)state;
    reset();
    open_fixture(&f);
    OK(hte_memory_register(f.engine, &memory));
    pattern_fill(memory.addr, 0, M, 3);
    r       = request(&f, HTE_WRITE, 0, 0, M);
    r.local = memory.addr;
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 3));
    memset(memory.addr, 0, M);
    r.opcode = HTE_READ;
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(memory.addr, 0, M, 3));
    target_stop(&f.target);
    close_fixture(&f);
    free(memory.addr);
}

/* ---- endpoints ---- */

/* Every endpoint is closed in a way that UCX accepts, also over shared memory, which it does not close by force. */
static void breakdowns(const char *tls)
{
    const struct hte_option options[] = {{"UCX_TLS", tls}, {"threads", "1"}};
    struct hte_request r;
    struct fixture f;
    unsigned i;

    reset();
    open_with(&f, options, 2, &(const struct target_buffer){.length = SIZE}, 1);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    for (i = 0; i < 3; ++i) {
        door.flushes_to_fail = 1;
        transfer_ok(&f, &r, 1);
    }
    assert_true(door.eps_created >= 4);
    assert_true(door.least_room >= 1024); /* zeros behind what the peer gave */
    hte_destroy(f.engine);
    assert_int_equal(door.eps_closed, door.eps_created);
    target_stop(&f.target);
    free(f.memory);
}

static void test_breakdowns(void **state)
{
    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    breakdowns("sm,self");
    breakdowns("tcp,self");
}

/* ---- descriptors of strangers ---- */

/* Opens the target's segment as one would describe it who cut off its first address and its first key. */
static int open_cut(struct fixture *f, size_t address, size_t key)
{
    struct hte_meta_options options = {.name = "127.0.0.1"};
    struct hte_descriptor *descriptor;
    struct hte_request r = request(f, HTE_WRITE, 0, 0, 100);
    struct hte_batch_status status;
    struct hte_blob *blobs[2];
    struct hte_meta *meta;
    struct hte_why why = {""};
    size_t full[2];
    int error;

    assert_int_equal(hte_meta_open(&options, &meta, &why), 0);
    assert_int_equal(hte_meta_fetch(meta, f->target.name, &descriptor, &why), 0);
    blobs[0] = &descriptor->workers[0].address;
    blobs[1] = &descriptor->buffers[0].keys[0];
    full[0]  = blobs[0]->length;
    full[1]  = blobs[1]->length;
    blobs[0]->length = address < full[0] ? address : full[0];
    blobs[1]->length = key < full[1] ? key : full[1];
    assert_int_equal(hte_meta_publish(meta, descriptor, &why), 0);
    error = hte_segment_open(f->engine, hte_meta_name(meta), &r.target);
    if (error == HTE_OK) {
        status = transfer(f, &r, 1);
        error  = status.error;
        OK(hte_segment_close(f->engine, r.target));
    }
    blobs[0]->length = full[0];
    blobs[1]->length = full[1];
    hte_descriptor_destroy(descriptor);
    hte_meta_close(meta);
    return error;
}

static void test_cut_descriptors(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"retry_count", "0"}};
    struct fixture f;
    size_t length;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    reset();
    open_with(&f, options, 3, &(const struct target_buffer){.length = SIZE}, 1);
    OK(open_cut(&f, SIZE, SIZE));
    for (length = 1; length < 10; ++length) {
        assert_int_equal(open_cut(&f, length, SIZE), HTE_ERR_MALFORMED_JSON);
    }
    for (length = 1; length < 9; ++length) {
        assert_int_equal(open_cut(&f, SIZE, length), HTE_ERR_MALFORMED_JSON);
    }
    for (length = 10; length < 60; length += 7) {
        assert_int_not_equal(open_cut(&f, length, SIZE), HTE_ERR_MALFORMED_JSON); /* ends, one way or the other */
    }
    for (length = 9; length < 40; length += 3) {
        assert_int_not_equal(open_cut(&f, SIZE, length), HTE_ERR_MALFORMED_JSON);
    }
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_local_memory_works),
        cmocka_unit_test(test_breakdowns),
        cmocka_unit_test(test_cut_descriptors),
    };

    reset();
    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
