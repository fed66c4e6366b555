/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSFER_ENGINE_C
#define TRANSFER_ENGINE_C

/*
 * The C interface of the Mooncake Transfer Engine, as libtransfer_engine.so of this project has it: over libhte.
 * Names, types and values are Mooncake's (of August 2026), so that a program compiled with either header runs with
 * either library. What its functions mean here, and which are refused, is said below; docs/mooncake.md has the rest.
 *
 * - Both ends must be libhte: it does not speak Mooncake's protocol.
 * - Every function may be called from any thread. A handle that was freed or never given out is refused; so is a NULL
 *   engine.
 * - What is refused says why in hteMooncakeError(), and with HTE_MOONCAKE_LOG=stderr, or a file's name, in a line
 *   there.
 * - Functions that return int give 0, or a negative MOONCAKE error; submitTransfer(), submitTransferWithNotify(),
 *   getTransferStatus(), freeBatchID() and getNicLoadStats() the same number without its sign, as there.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define segment_handle_t int32_t
#define segment_id_t     int32_t
#define batch_id_t       uint64_t

#define LOCAL_SEGMENT (0)
#define INVALID_BATCH UINT64_MAX

#define OPCODE_READ  (0)
#define OPCODE_WRITE (1)

#define STATUS_WAITING   (0)
#define STATUS_PENDING   (1)
#define STATUS_INVALID   (2)
#define STATUS_CANCELED  (3)
#define STATUS_COMPLETED (4)
#define STATUS_TIMEOUT   (5)
#define STATUS_FAILED    (6)

typedef void *transfer_engine_t;
typedef void *transport_t;

struct transfer_request {
    int          opcode;
    void        *source; /* local address, read from or written to */
    segment_id_t target_id;
    uint64_t     target_offset; /* address in the target's process */
    uint64_t     length;
};
typedef struct transfer_request transfer_request_t;

struct transfer_status {
    int      status;
    uint64_t transferred_bytes;
};
typedef struct transfer_status transfer_status_t;

struct notify_msg {
    char *name;
    char *msg;
};
typedef struct notify_msg notify_msg_t;

struct buffer_entry {
    void  *addr;
    size_t length;
};
typedef struct buffer_entry buffer_entry_t;

struct nic_load_stat {
    char     device_name[64];
    uint64_t inflight_bytes;
    double   ewma_bandwidth_bps; /* bytes per second */
};
typedef struct nic_load_stat nic_load_stat_t;

/* No function uses it, there or here: for programs that name it. */
struct segment_desc {
    int type;
    union {
        struct {
            void       *addr;
            uint64_t    size;
            const char *location;
        } rdma;
        struct {
            const char *file_path;
            const char *subsystem_name;
            const char *proto;
            const char *ip;
            uint64_t    port;
        } nvmeof;
    } desc_;
};
typedef struct segment_desc segment_desc_t;

/* ---- engine ---- */

/* metadata_conn_string: "P2PHANDSHAKE", or a store, http, redis or etcd ("host:port" alone is etcd's). Peer to peer
 * the name's port is not used: one is chosen, see getLocalIpAndPort(). ip_or_host_name: what the handshake server
 * binds to; "" or NULL: what the name resolves to. rpc_port counts with a store when MC_LEGACY_RPC_PORT_BINDING is
 * set. Devices are always discovered. NULL on error. */
transfer_engine_t createTransferEngine(const char *metadata_conn_string, const char *local_server_name,
                                       const char *ip_or_host_name, uint64_t rpc_port, int auto_discover);
/* Ends what is under way, in bounded time. No other thread may be using the engine afterwards. */
void destroyTransferEngine(transfer_engine_t engine);
int  discoverTopology(transfer_engine_t engine); /* was done */
/* The name that peers open. "" on error, also when it does not fit. */
int getLocalIpAndPort(transfer_engine_t engine, char *buf_out, size_t buf_len);

/* "tcp", and "rdma" where there is an RDMA device: not NULL, and nothing changes, for UCX chooses (UCX_TLS). All
 * others: NULL. args, Mooncake's priority matrix, is refused: topology_file is an option of the engine,
 * HTE_TOPOLOGY_FILE. */
transport_t installTransport(transfer_engine_t engine, const char *proto, void **args);
int         uninstallTransport(transfer_engine_t engine, const char *proto); /* nothing, as there */

/* ---- segments ---- */

/* Fetches the peer's descriptor; -1 on error. Opened twice it is closed twice. */
segment_id_t openSegment(transfer_engine_t engine, const char *segment_name);
segment_id_t openSegmentNoCache(transfer_engine_t engine, const char *segment_name); /* anew, also when it is open */
int          closeSegment(transfer_engine_t engine, segment_id_t segment_id);        /* really */
/* Connects to the segment, whatever the transport, for 30 s at most; it stays open until the engine ends. */
int warmupEfaSegment(transfer_engine_t engine, const char *segment_name);
int syncSegmentCache(transfer_engine_t engine);
int removeLocalSegment(transfer_engine_t engine, const char *segment_name); /* refused: destroyTransferEngine() */

/* ---- memory ---- */

/* remote_accessible 0: only source or destination of own requests. */
int registerLocalMemory(transfer_engine_t engine, void *addr, size_t length, const char *location,
                        int remote_accessible);
int unregisterLocalMemory(transfer_engine_t engine, void *addr);
/* All or none. */
int registerLocalMemoryBatch(transfer_engine_t engine, buffer_entry_t *buffer_list, size_t buffer_len,
                             const char *location);
int unregisterLocalMemoryBatch(transfer_engine_t engine, void **addr_list, size_t addr_len);

/* ---- batches ---- */

batch_id_t allocateBatchID(transfer_engine_t engine, size_t batch_size); /* INVALID_BATCH on error */
int        freeBatchID(transfer_engine_t engine, batch_id_t batch_id);   /* refused until all requests have ended */
/* All of the requests or none. */
int submitTransfer(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request *entries, size_t count);
/* When these have completed their targets are told, in the background. One such call per batch. */
int submitTransferWithNotify(transfer_engine_t engine, batch_id_t batch_id, struct transfer_request *entries,
                             size_t count, notify_msg_t notify_msg);
/* WAITING, PENDING, COMPLETED, or FAILED for every other end: hteMooncakeError() says which, and why. */
int getTransferStatus(transfer_engine_t engine, batch_id_t batch_id, size_t task_id, struct transfer_status *status);

/* ---- notifications ---- */

notify_msg_t *getNotifsFromEngine(transfer_engine_t engine, int *size); /* takes all that came; NULL when none did */
int           freeNotifsMsgBuf(notify_msg_t *msg, int size);
int           genNotifyInEngine(transfer_engine_t engine, uint64_t target_id, notify_msg_t notify_msg);

/* ---- what goes on ---- */

int getNicLoadStats(transfer_engine_t engine, nic_load_stat_t *stats, size_t *count);
/* Devices, topology and connections, as text or JSON. -1 when it does not fit: buf_out has the beginning then. */
int showLinks(transfer_engine_t engine, char *buf_out, size_t buf_len, int json);
/* Refused: libhte has no signal handlers. Call destroyTransferEngine() in yours, or die: peers notice. */
void enableGracefulShutdown(transfer_engine_t engine);

/* ---- not Mooncake's ---- */

/* Which function of this header was refused last in the calling thread, and why. "" when none was. */
const char *hteMooncakeError(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
