/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_H_
#define HTE_H_

/*
 * libhte: batches of one-sided transfers between processes, over UCX.
 *
 * A process creates an ENGINE, registers MEMORY with it and is then, for others, one SEGMENT with the engine's name. A
 * peer opens the segment by that name, allocates a BATCH, submits REQUESTS to it (read or write, local address, remote
 * address, length) and waits.
 *
 *     hte_create -> hte_memory_register -> hte_segment_open -> hte_batch_alloc
 *       -> hte_batch_submit -> hte_batch_wait -> hte_batch_free -> ... -> hte_destroy
 *
 * Unless a function says otherwise:
 *
 * - It returns HTE_OK (0) or a negative enum hte_error; outputs are set only on HTE_OK. hte_error_detail() has a
 *   sentence about the last error of the calling thread.
 * - It may be called from any thread at any time between hte_create() and hte_destroy().
 * - It does not block on the network. What does is marked BLOCKS, with its bound.
 * - Strings and arrays passed in are copied: they are the caller's when the call returns.
 * - Addresses are virtual addresses of the process that owns the memory, lengths are bytes, times are milliseconds.
 * - It neither aborts, nor exits, nor prints, and installs no signal handlers. (UCX prints its own: UCX_LOG_LEVEL.)
 * - An engine belongs to the process that made it. In a child of fork(2) its calls are refused at once (CANCELED),
 *   hte_shutdown() and hte_destroy() do nothing, and the parent goes on. A child may make its own; but if its parent
 *   had one when it forked, UCX lacks in the child the thread that accepts connections: the child's reaches others, and
 *   is reached only by processes of its host (option same_host), unless it called exec(3) (Python: "spawn"). While a
 *   child without exec(3) lives it holds its parent's sockets open: a parent that dies is silent then for its peers,
 *   not gone.
 *
 * Handles are numbers with a generation in them: one that was closed or freed is refused (HTE_ERR_BAD_HANDLE), it
 * never means what was opened later.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define HTE_VERSION_MAJOR 0
#define HTE_VERSION_MINOR 1
#define HTE_VERSION_PATCH 0

struct hte_engine; /* opaque */

typedef int32_t  hte_segment_t;
typedef uint64_t hte_batch_t;
typedef uint64_t hte_list_t;

#define HTE_SEGMENT_LOCAL ((hte_segment_t)0) /* the engine's own memory */
#define HTE_SEGMENT_NONE  ((hte_segment_t)-1)
#define HTE_BATCH_NONE    (~(hte_batch_t)0)
#define HTE_LIST_NONE     (~(hte_list_t)0)

/* Upper bounds; beyond them HTE_ERR_INVALID_ARGUMENT. */
#define HTE_NAME_MAX   255        /* bytes of a name or location, without the end */
#define HTE_BATCH_MAX  (1u << 20) /* requests of one batch */
#define HTE_NOTIFY_MAX 65536      /* bytes of a notification's text */
#define HTE_LISTS_MAX  4096       /* prepared lists of an engine; beyond it HTE_ERR_LIMIT */

/* ---- errors ---- */

enum hte_error {
    HTE_OK                     = 0,
    HTE_ERR_INVALID_ARGUMENT   = -1,  /* null pointer, unknown option, value out of its range */
    HTE_ERR_TOO_MANY_REQUESTS  = -2,  /* more requests than the batch has room for */
    HTE_ERR_NOT_REGISTERED     = -3,  /* local address outside of registered memory */
    HTE_ERR_BATCH_BUSY         = -4,  /* free of a batch that still has unfinished requests */
    HTE_ERR_DEVICE_NOT_FOUND   = -5,  /* no such device, or none can be used */
    HTE_ERR_OVERLAP            = -6,  /* memory overlaps memory that is registered already */
    HTE_ERR_DNS                = -7,  /* a host name cannot be resolved */
    HTE_ERR_SOCKET             = -8,  /* cannot bind, connect, send or receive */
    HTE_ERR_MALFORMED_JSON     = -9,  /* a descriptor, topology or frame is not what it should be */
    HTE_ERR_HANDSHAKE_REJECTED = -10, /* the peer refused: secret missing or wrong, version, limit */
    HTE_ERR_METADATA           = -11, /* the metadata store failed or cannot be reached */
    HTE_ERR_ENDPOINT           = -12, /* UCX cannot connect, or the connection broke */
    HTE_ERR_CONTEXT            = -13, /* UCX cannot be initialized with this configuration */
    HTE_ERR_NUMA               = -14, /* a location names a NUMA node that does not exist */
    HTE_ERR_MEMORY             = -16, /* out of memory, or the memory cannot be registered */
    HTE_ERR_NOT_IMPLEMENTED    = -17, /* or built without it: the detail says which library */
    HTE_ERR_UNKNOWN_SEGMENT    = -18, /* nobody publishes a segment of this name */
    HTE_ERR_DEAD_PEER          = -19, /* the process that owned the segment is gone */
    HTE_ERR_RANGE              = -20, /* remote range is not inside registered buffers; memory is not mapped */
    HTE_ERR_ZERO_LENGTH        = -21,
    HTE_ERR_BAD_HANDLE         = -22, /* never given out, or closed or freed since */
    HTE_ERR_MEMORY_BUSY        = -23, /* unregister of memory that unfinished requests use */
    HTE_ERR_PERMISSION         = -24, /* the remote buffer does not allow this operation */
    HTE_ERR_TIMEOUT            = -25, /* the time given is over; nothing was changed */
    HTE_ERR_CANCELED           = -26, /* canceled; or the engine is being destroyed, or another process's: fork(2) */
    HTE_ERR_LIMIT              = -27, /* an engine-wide limit: segments, batches, notifications */
    HTE_ERR_EXISTS             = -28  /* another live engine publishes under this name */
};

/* Name of the error, for instance "address not registered". Static; never NULL; any value. */
const char *hte_error_string(int error);

/* What went wrong in the last call of this thread that returned an error: names the value and the way out. "" when
 * there is nothing to add. Valid until the thread's next call of libhte. */
const char *hte_error_detail(void);

/* "0.1.0" of the library that is loaded, against HTE_VERSION_* of the one compiled with. */
const char *hte_version(void);

/* ---- engine ---- */

struct hte_option {
    const char *key; /* see hte_option_help() */
    const char *value;
};

struct hte_config {
    size_t size; /* sizeof(struct hte_config): fields may be added at the end */
    /* Where segment descriptors are found. NULL or "P2PHANDSHAKE": each process answers for itself and its segment's
     * name is "host:port". "http://", "https://", "redis://", "etcd://" and host:port: a store that all share. */
    const char *metadata;
    /* Name of this process's segment. With a store: any that is unique in it; NULL is refused. Peer to peer: NULL, or
     * the "host" or "host:port" that others reach this process by. Without ":port" it is field `port`, or a chosen
     * one: see hte_local_name(). Port 0 is refused here. */
    const char *name;
    /* Address that the handshake server binds to; NULL: the one that the name resolves to, or that of the default
     * route. "0.0.0.0" only if it is written here. */
    const char              *bind_host;
    uint16_t                 port; /* of the handshake server; 0: as in the name, or chosen */
    uint16_t                 reserved[3];
    const struct hte_option *options; /* n_options of them */
    size_t                   n_options;
};

/*
 * Create an engine: configure UCX, start the worker threads and the handshake server, publish the segment (empty).
 * NULL config: all defaults, peer to peer. Each option has a default; environment variables HTE_<KEY IN CAPITALS> come
 * before the default and after `options`. Keys that begin with "UCX_" are handed to UCX for this engine's contexts only
 * and come before the environment's value; everything else about UCX is as its environment says. What a transport reads
 * once per process holds for all engines of the process: the options of ha_rc (UCX_HA_RC_...) are those of the first
 * that opens it. BLOCKS: for UCX to open devices; with a store for up to three exchanges with it, each at most option
 * handshake_timeout_ms (5000), of etcd so long per endpoint that does not answer. (Resolving a name is the system's and
 * comes on top, here and below.) INVALID_ARGUMENT (names option and value), CONTEXT, DEVICE_NOT_FOUND, MALFORMED_JSON
 * (topology file), DNS, SOCKET, METADATA, EXISTS, MEMORY, NOT_IMPLEMENTED.
 */
int hte_create(const struct hte_config *config, struct hte_engine **engine);

/*
 * End everything: refuse new calls (CANCELED, should one begin meanwhile), send the notifications of batches that
 * completed, cancel what is queued, wait for what is under way, unpublish, unregister, stop the threads. Waiters return
 * HTE_ERR_CANCELED. BLOCKS: until operations under way have ended; after option shutdown_timeout_ms (5000) their
 * connections are broken off; and until the calls of other threads that are inside libhte have returned: soon, and
 * those that ask a metadata store within their bound. So it always returns. No other call on this engine may begin
 * after it has returned; not from a callback. NULL is nothing.
 */
void hte_destroy(struct hte_engine *engine);

/* hte_destroy() but for its last step, which makes the handle invalid: calls that begin after it are refused (CANCELED)
 * as those that begin during it are. For programs whose threads cannot know that another one ends the engine: shut it
 * down, see that every thread has heard of it, then hte_destroy(), which is short. From one thread, not from a
 * callback; a second time, and NULL, are nothing. BLOCKS: as hte_destroy(). */
void hte_shutdown(struct hte_engine *engine);

/* Each option: key, default, and help; static. index counts from 0; INVALID_ARGUMENT when there are no more. */
struct hte_option_help {
    const char *key;
    const char *value; /* default */
    const char *help;
};
int hte_option_help(unsigned index, struct hte_option_help *help);

/* Name that peers open this engine's segment by; peer to peer "host:port" with the port chosen. INVALID_ARGUMENT when
 * it does not fit; HTE_NAME_MAX + 1 bytes always do. */
int hte_local_name(struct hte_engine *engine, char *name, size_t size);

/* ---- memory ---- */

enum hte_permission {
    HTE_PERM_GLOBAL_RW = 0, /* peers may read and write */
    HTE_PERM_GLOBAL_RO = 1, /* peers may read */
    HTE_PERM_LOCAL     = 2  /* only source or destination of own requests: not published */
};

struct hte_memory {
    void       *addr;
    size_t      length;
    const char *location; /* "cpu:N", "cuda:N" (N in decimal, no leading zeros), or "*" (also NULL): the NUMA node of
                           * the first page, where the system tells (the page must have been touched, or be pinned by
                           * UCX), else no preference */
    int permission;       /* enum hte_permission */
};

/* Make [addr, addr + length) usable for requests, and publish it to peers (unless HTE_PERM_LOCAL). Peers that opened
 * the segment before see it by themselves when a request misses it, or after hte_segment_sync(). The memory stays the
 * caller's: it must be mapped, readable, writable if peers may write, and stay so until it is unregistered. Large
 * memory (option pretouch_size) is touched by several threads first; its contents do not change. The permission is a
 * rule that libhte's peers obey, not one that the hardware enforces: UCX 1.13 registers everything for remote access,
 * later ones may do as told. Of HTE_PERM_LOCAL memory no key is made. BLOCKS: to pin the memory; with a store, to
 * publish: three exchanges at most, as in hte_create(), one of them to wait for another one's. ZERO_LENGTH, OVERLAP,
 * INVALID_ARGUMENT, NUMA, RANGE (not mapped so), MEMORY, METADATA, NOT_IMPLEMENTED (UCX has no CUDA); then nothing is
 * registered. Memory of a GPU ("cuda:N") UCX alone moves, in hardware, for peers that know it; where it would emulate
 * put and get (tcp; unless moves=rma), and with HTE_SEGMENT_LOCAL, requests of it end with NOT_IMPLEMENTED. */
int hte_memory_register(struct hte_engine *engine, const struct hte_memory *memory);

/* All or none, with one publication. */
int hte_memory_register_batch(struct hte_engine *engine, const struct hte_memory *memories, size_t count);

/* The reverse; addr is the start of what was registered. After it the memory may be freed: no operation of this
 * engine uses it any more. Peers' operations that are under way may still arrive, or fail at the peer: agree
 * with them first. BLOCKS: to unpin, and to publish as above. NOT_REGISTERED; MEMORY_BUSY while unfinished requests of
 * this engine use it: wait for them or cancel; or a list (hte_list_prepare()): release it. When it cannot be published
 * (METADATA) it is unregistered all the same. */
int hte_memory_unregister(struct hte_engine *engine, void *addr);

/* All or none. */
int hte_memory_unregister_batch(struct hte_engine *engine, void *const *addrs, size_t count);

/* Memory that processes of the same host reach best: it is mapped by them, too, so that a request is a copy and nothing
 * else. Of whole pages, and zero; all of it is there when the call returns. Registered and unregistered as other
 * memory, as a whole or in parts; a child of fork(2) shares it with its parent. MEMORY, ZERO_LENGTH. */
int hte_memory_alloc(struct hte_engine *engine, size_t length, void **addr);

/* The reverse; hte_destroy() does it for what is left. What requests used may not be in use any more. MEMORY_BUSY while
 * any of it is registered; INVALID_ARGUMENT: not the start of such memory. */
int hte_memory_free(struct hte_engine *engine, void *addr);

/* ---- segments ---- */

/* Open the segment that a peer publishes. Opening one that is open gives the same handle and counts.
 * The engine's own name gives HTE_SEGMENT_LOCAL. Connections are made by the first request, or hte_segment_warm().
 * BLOCKS: to fetch the descriptor, at most option handshake_timeout_ms (5000), unless it is open already.
 * INVALID_ARGUMENT (peer to peer: a name without port), UNKNOWN_SEGMENT, DNS, SOCKET, TIMEOUT (the peer or store is
 * silent), METADATA, MALFORMED_JSON, HANDSHAKE_REJECTED, DEAD_PEER, LIMIT, CANCELED. */
int hte_segment_open(struct hte_engine *engine, const char *name, hte_segment_t *segment);

/* Close what was opened; the last close ends the handle at once and the connections when the requests under
 * way on them are done: those go on to their end. HTE_SEGMENT_LOCAL: nothing happens. BAD_HANDLE. */
int hte_segment_close(struct hte_engine *engine, hte_segment_t segment);

/* Fetch the descriptor anew; HTE_SEGMENT_NONE: of every open segment. Errors and BLOCKS as hte_segment_open().
 * When the peer was restarted, new requests go to the new process. (The engine does it by itself, in the background,
 * whenever a connection to the segment breaks or cannot be made; what was under way to the old process then ends with
 * DEAD_PEER.) */
int hte_segment_sync(struct hte_engine *engine, hte_segment_t segment);

/* Connect every worker thread now instead of with the first request. BLOCKS: until connected, at most timeout_ms; -1:
 * for ever. Where connections to it broke before, it is synchronized first (hte_segment_sync(): as long, and its
 * errors). BAD_HANDLE (also: closed meanwhile), ENDPOINT, DEAD_PEER, TIMEOUT, CANCELED, MEMORY. */
int hte_segment_warm(struct hte_engine *engine, hte_segment_t segment, int timeout_ms);

enum hte_way {
    HTE_WAY_NONE      = 0, /* there is no connection yet */
    HTE_WAY_SAME_HOST = 1, /* a process of this host: this one moves the bytes, without UCX (option same_host) */
    HTE_WAY_RDMA      = 2, /* UCX's put and get, in hardware */
    HTE_WAY_MESSAGES  = 3, /* messages of the engine's own over UCX (option moves) */
    HTE_WAY_EMULATED  = 4  /* UCX's put and get, which it emulates by messages: option moves=rma */
};

/* How requests to the segment go: of its connections that were made the one with the highest number, and in words, with
 * the transports, and the reason when it is a process of this host that is reached otherwise. Cut off to `size`. Option
 * `require` makes requests that would go another way fail. BAD_HANDLE, INVALID_ARGUMENT (LOCAL). */
int hte_segment_way(struct hte_engine *engine, hte_segment_t segment, int *way, char *text, size_t size);

struct hte_buffer {
    uint64_t addr; /* in the peer's address space */
    uint64_t length;
    int      permission;
    char     location[64];
};

/* Buffers of a segment as of the last fetch, in order of address: at most *count of them are written to `buffers`
 * (NULL: none), and *count is set to how many there are. HTE_SEGMENT_LOCAL: what is registered now, HTE_PERM_LOCAL too.
 * BAD_HANDLE. */
int hte_segment_buffers(struct hte_engine *engine, hte_segment_t segment, struct hte_buffer *buffers, size_t *count);

/* ---- requests and batches ---- */

enum hte_opcode {
    HTE_READ  = 0, /* remote to local */
    HTE_WRITE = 1  /* local to remote */
};

struct hte_request {
    int32_t       opcode; /* enum hte_opcode */
    hte_segment_t target;
    void         *local;         /* inside memory registered with this engine */
    uint64_t      target_offset; /* virtual address in the target's process */
    uint64_t      length;
};

enum hte_status_code {
    HTE_WAITING = 0, /* accepted, nothing of it has started */
    HTE_PENDING = 1, /* under way */
    HTE_INVALID = 2, /* the target unregistered the range, or forbids the operation, since: RANGE or PERMISSION. By
                      * messages (option moves), and on one host, it is noticed at once, also when the memory is not
                      * mapped any more; over RDMA UCX failed, and the descriptor says so now: not noticed with
                      * retry_count 0 */
    HTE_CANCELED  = 3,
    HTE_COMPLETED = 4,
    HTE_TIMEOUT   = 5, /* a slice took longer than option slice_timeout_ms */
    HTE_FAILED    = 6  /* all retries failed */
};

/* COMPLETED means, for a READ, that the bytes are in local memory; for a WRITE, that they are in the TARGET's
 * memory: a READ of them by anybody, or a look by the target's CPU after it was told, sees them. With every status from
 * INVALID on the local memory is no longer in use. With a status other than COMPLETED any part of the destination may
 * have been written; bytes that are still on their way arrive later at most until the same engine writes to that target
 * again (by messages). Requests are not ordered among each other, not even in one batch.
 * Small ones of one submission that follow each other there, to one target, in one direction, and of one registered
 * memory on each side, may go as one operation. Each has its own status: what is refused, or cannot be carried out,
 * ends alone, as the others are tried again without it; so their bytes may be moved twice, before they complete. A
 * timeout (option slice_timeout_ms) is the operation's: it ends all of them.
 * With target HTE_SEGMENT_LOCAL the two ranges of a request may overlap, as with memmove(3). */
struct hte_status {
    int32_t  code;        /* enum hte_status_code; those from HTE_INVALID on are final */
    int32_t  error;       /* HTE_OK, or why it did not complete: a negative enum hte_error */
    uint64_t transferred; /* bytes of slices that completed */
};

struct hte_batch_status {
    int32_t code;         /* COMPLETED when all are; WAITING, PENDING when one is not final; else the worst:
                           * FAILED, TIMEOUT, INVALID, CANCELED in this order. An empty batch is COMPLETED. */
    int32_t  error;       /* of the request that failed first, or HTE_OK */
    uint64_t transferred; /* bytes, all requests */
    uint32_t submitted;   /* requests */
    uint32_t finished;    /* requests with a final status */
};

enum hte_priority {
    HTE_PRIORITY_HIGH   = 0,
    HTE_PRIORITY_MEDIUM = 1, /* of a new batch */
    HTE_PRIORITY_LOW    = 2  /* served when no higher one waits */
};

/* A batch with room for `capacity` requests over its life (1 to HTE_BATCH_MAX). INVALID_ARGUMENT, LIMIT, MEMORY. */
int hte_batch_alloc(struct hte_engine *engine, size_t capacity, hte_batch_t *batch);

/* Add `count` requests; their indices in the batch go on from the last one's. All are checked first: when one is
 * wrong none is taken, and the detail names its index. May be called again until the capacity is used.
 * Little (16 KiB) for a process of this host the call may move by itself, unless the batch has a callback.
 * BLOCKS only when a target range is not in a descriptor at hand: fetches it once as hte_segment_sync() does.
 * BAD_HANDLE (batch or target), TOO_MANY_REQUESTS, INVALID_ARGUMENT (opcode), ZERO_LENGTH, NOT_REGISTERED, RANGE,
 * PERMISSION, DEAD_PEER. */
int hte_batch_submit(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests, size_t count);

/* The same, and when all of these requests have COMPLETED their targets get one notification each with this text; when
 * one does not, none is sent. They are sent in the background, in order per target; a target that does not take one is
 * tried 5 times in all, then it is dropped: hte_counters() tells. One whose answer was lost may arrive twice. One such
 * submission per batch; INVALID_ARGUMENT for a second. */
int hte_batch_submit_notify(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests,
                            size_t count, const char *notify_name, const char *notify_text);

/* Status of one request. BAD_HANDLE, INVALID_ARGUMENT (index not submitted). */
int hte_request_status(struct hte_engine *engine, hte_batch_t batch, size_t index, struct hte_status *status);

/* Status of the whole batch: what a program polls. BAD_HANDLE. */
int hte_batch_status(struct hte_engine *engine, hte_batch_t batch, struct hte_batch_status *status);

/* Sleep until all submitted requests have a final status. timeout_ms: -1 for ever, 0 only looks.
 * HTE_OK when all are final (look at status->code) and their callback has returned; TIMEOUT when not yet; CANCELED by
 * hte_destroy(). status may be NULL; it is set with HTE_OK and TIMEOUT. BLOCKS. Not from a callback. */
int hte_batch_wait(struct hte_engine *engine, hte_batch_t batch, int timeout_ms, struct hte_batch_status *status);

/* Take back what has not been posted; slices that have been go on to their end, which is near, and are given up when it
 * does not come within half a second, whatever the peer does (stopped, a debugger): their connection is then broken off
 * where UCX has to be made to give the memory back. Only with option moves=rma over plain shared memory a peer that
 * stands still holds them. Requests become CANCELED unless they were final, or their slices came to their end.
 * BAD_HANDLE. */
int hte_batch_cancel(struct hte_engine *engine, hte_batch_t batch);

/* End of the handle. BATCH_BUSY until all submitted requests are final; every request becomes final in the
 * end, after hte_batch_cancel() soon. BLOCKS: while its callback is running in another thread, so that what the
 * callback uses may be freed afterwards; except from inside a callback, which would wait for itself. BAD_HANDLE. */
int hte_batch_free(struct hte_engine *engine, hte_batch_t batch);

/* INVALID_ARGUMENT when requests were submitted already. */
int hte_batch_set_priority(struct hte_engine *engine, hte_batch_t batch, int priority);

/* Completion without waiting. The callback runs in a worker thread each time the last unfinished request of the batch
 * becomes final (once per submission, unless submissions overlap). It must be short and may call every function that
 * neither blocks nor destroys, hte_batch_free() included. It comes before the eventfd, and before hte_batch_wait()
 * returns; who polls the status may see the batch complete before the callback has run. Set before the first submit, or
 * INVALID_ARGUMENT. NULL removes it. */
typedef void (*hte_batch_callback_t)(struct hte_engine *engine, hte_batch_t batch, void *arg);
int hte_batch_set_callback(struct hte_engine *engine, hte_batch_t batch, hte_batch_callback_t callback, void *arg);

/* The same as an addition of 1 to an eventfd(2) of the caller's. The batch keeps a duplicate of the descriptor until
 * its end, so the caller may close his at any time. -1 removes it. Several batches may share one. LIMIT: no descriptor
 * is left. */
int hte_batch_set_eventfd(struct hte_engine *engine, hte_batch_t batch, int eventfd);

/* ---- lists: requests that are checked once, and submitted often ---- */

/* Check requests as hte_batch_submit() does, look up and pin what they use, and keep a copy of them: to submit them
 * again and again costs less. Until the list is released, and the requests made of it are final, its local memory
 * cannot be unregistered (MEMORY_BUSY). BLOCKS, and errors, as hte_batch_submit(); INVALID_ARGUMENT (count is not from
 * 1 to HTE_BATCH_MAX), LIMIT (HTE_LISTS_MAX), MEMORY. */
int hte_list_prepare(struct hte_engine *engine, const struct hte_request *requests, size_t count, hte_list_t *list);

/* Add all requests of the list to the batch, as any others: as often as there is room, to several batches, by several
 * threads at once. When a target's descriptor was fetched anew since (a restart, memory that changed,
 * hte_segment_sync()), all of it is checked anew first: what is wrong now is an error of this call, and the list stays.
 * What the target took back and this process has not heard of makes requests INVALID, as always. All or none. BLOCKS,
 * and errors, as hte_batch_submit(): BAD_HANDLE also for the list, and for a target that was closed since; MEMORY. */
int hte_list_submit(struct hte_engine *engine, hte_batch_t batch, hte_list_t list);

/* End of the handle; hte_destroy() does it for what is left. Requests made of it go on; what they use is given back
 * with the last one's end. BAD_HANDLE. */
int hte_list_release(struct hte_engine *engine, hte_list_t list);

/* ---- notifications: short texts from engine to engine, beside the data ---- */

struct hte_notification {
    char *from; /* segment name of the sender */
    char *name;
    char *text;
};

/* Deliver to the engine that owns the segment. HTE_OK: it is in that engine's list. BLOCKS: at most option
 * handshake_timeout_ms. BAD_HANDLE, INVALID_ARGUMENT (longer than HTE_NOTIFY_MAX), SOCKET, DEAD_PEER,
 * HANDSHAKE_REJECTED, LIMIT (the receiver's list is full). */
int hte_notify_send(struct hte_engine *engine, hte_segment_t target, const char *name, const char *text);

/* Take all that have arrived, oldest first. The array is the caller's: hte_notify_free(). Nothing arrived: HTE_OK,
 * *count 0. At most option notify_max (65536) are kept. MEMORY. */
int  hte_notify_drain(struct hte_engine *engine, struct hte_notification **notifications, size_t *count);
void hte_notify_free(struct hte_notification *notifications, size_t count);

/* ---- what goes on ---- */

enum hte_device_state {
    HTE_DEVICE_UP     = 0,
    HTE_DEVICE_PAUSED = 1 /* too many errors: not used until the pause is over, while another one is up */
};

struct hte_nic_load {
    char     device[64];  /* as in option devices; "ucx": whatever UCX chose */
    uint64_t inflight;    /* bytes posted and not completed */
    uint64_t bandwidth;   /* bytes per second: moving average, weight 1/8 per completed window; 0: not known */
    uint64_t transferred; /* bytes completed since creation */
    uint64_t errors;      /* slices that failed on it, since creation */
    uint64_t pauses;      /* times it was paused */
    int32_t  state;       /* enum hte_device_state */
    int32_t  pause_left_ms;
};

/* As hte_segment_buffers(): at most *count are written, *count is how many there are. */
int hte_nic_load(struct hte_engine *engine, struct hte_nic_load *loads, size_t *count);

struct hte_link {
    hte_segment_t segment;
    char          local_device[64];
    char          remote_device[64];
    char          peer[HTE_NAME_MAX + 1];
    uint32_t      worker;      /* thread that owns the connection */
    int32_t       connected;   /* 1: endpoint exists; 0: broken, waiting for its next use */
    uint64_t      transferred; /* bytes completed on it */
    uint64_t      reconnects;
};

/* Connections that exist; counts as above. */
int hte_links(struct hte_engine *engine, struct hte_link *links, size_t *count);

/* Which devices are near which memory, as JSON: {"cpu:0":[["preferred",...],["available",...]],...}; option
 * topology_file reads the same. The text is the caller's: free(3). MEMORY. */
int hte_topology_export(struct hte_engine *engine, char **json);

struct hte_counters {
    size_t   size;           /* sizeof(struct hte_counters), set by the caller */
    uint64_t requests;       /* submitted */
    uint64_t requests_ended; /* became final */
    uint64_t slices_posted;  /* retries included */
    uint64_t slices_retried;
    uint64_t flushes;         /* that made WRITEs final */
    uint64_t ep_errors;       /* connections that broke */
    uint64_t batches_open;    /* now */
    uint64_t memory_regions;  /* registered now */
    uint64_t notices_sent;    /* notifications of hte_batch_submit_notify() that arrived, per target */
    uint64_t notices_dropped; /* given up, or left when the engine ended */
    /* operations posted for slices_posted: one may be several slices (with one device), and several small requests */
    uint64_t posts;
    uint64_t posts_messages;  /* of these, by messages of the engine's own: see option moves */
    uint64_t posts_same_host; /* of these, by this process itself: see option same_host */
};
int hte_counters(struct hte_engine *engine, struct hte_counters *counters);

/* All of that as a text in Prometheus' format, each metric with HELP and TYPE: the counters (hte_requests_total, ...),
 * every device (hte_device_...), and every open segment (hte_peer_...: its connections added up, those that are no more
 * included, and how it is reached). Of 1024 segments at most: hte_peers_left_out says of how many it is not. Option
 * metrics_file writes it to a file. The text is the caller's: free(3). MEMORY. */
int hte_metrics(struct hte_engine *engine, char **text);

/* The same of the process that owns the segment: its handshake server answers (behind the secret, when there is one)
 * with as many peers as fit into 128 KiB. HTE_SEGMENT_LOCAL: hte_metrics(). BLOCKS: at most option
 * handshake_timeout_ms. BAD_HANDLE, SOCKET, TIMEOUT, HANDSHAKE_REJECTED, MALFORMED_JSON (its libhte is older and has
 * none), MEMORY. */
int hte_segment_metrics(struct hte_engine *engine, hte_segment_t segment, char **text);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
