/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TORTURE_H_
#define TORTURE_H_

/*
 * ha_torture: two processes exchange verified traffic of every kind through
 * UCP while somebody else breaks the rails. A process checks what it receives;
 * a TCP connection beside the rails carries set-up, totals and the verdict.
 */

#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

enum torture_kind { KIND_TAG, KIND_AM, KIND_PUT, KIND_GET, KIND_AMO, KIND_COUNT };

enum torture_exit {
    EXIT_RIGHT       = 0,
    EXIT_WRONG       = 1, /* lost, doubled, reordered or corrupt data */
    EXIT_USAGE       = 2,
    EXIT_EP_ERROR    = 3, /* the endpoint ended with an error */
    EXIT_NO_EP_ERROR = 4, /* peer gone or no progress, and no endpoint error */
    EXIT_STUCK       = 5  /* a UCX call did not return */
};

#define MAX_SIZE     (256u << 10) /* largest TAG and AM message, PUT slot, GET */
#define PATTERN_SIZE (1u << 20)   /* positions at which contents may start */
#define REGION_SIZE  (1u << 20)   /* remotely readable */
#define POISON       0xd7         /* in every buffer that nobody may write */
#define MAX_EPS      64           /* endpoints of one worker */

#define SLOT_SMALL_SIZE  1024u /* one ring of small slots, one of large ones */
#define SLOT_SMALL_COUNT 2048u
#define SLOT_LARGE_SIZE  (64u << 10)
#define SLOT_LARGE_COUNT 128u
#define SLOT_COUNT       (SLOT_SMALL_COUNT + SLOT_LARGE_COUNT)

/* What the client dictates to the server; sent over TCP as it is. */
struct torture_plan {
    uint64_t seed;
    uint32_t seconds;
    uint32_t window;        /* operations of one side outstanding, all kinds */
    uint32_t ops;           /* bit per torture_kind */
    uint32_t oneway;        /* only the client sends */
    uint32_t sizes;         /* 0 mixed, 1 small, 2 large, 3 bulk */
    uint32_t max_failovers; /* 0, or stop after so many */
    uint32_t peer_err;      /* error handling mode: both sides must agree */
    uint32_t eps;           /* endpoints, each with traffic of its own */
};

/* A fault made by the program itself, to show that it is noticed. */
enum torture_plant {
    PLANT_NOTHING,
    PLANT_LOST,
    PLANT_DUPLICATE,
    PLANT_REORDERED,
    PLANT_CORRUPT,
    PLANT_STALE,
    PLANT_ATOMIC,
    PLANT_ERROR,
    PLANT_FD,
    PLANT_MEMORY
};
#define PLANT_AT 100u /* operations of a kind before it */

struct torture_options {
    struct torture_plan plan;
    const char         *host; /* NULL: server */
    const char         *progress_file;
    unsigned            port;
    unsigned            busy_ms;     /* each second: compute so long, no progress */
    unsigned            linger;      /* server: stay so long after the client left */
    unsigned            stall_limit; /* seconds without progress that end the run */
    int                 leave;       /* client: exit without waiting for the server */
    int                 wakeup;
    int                 quiet;
    enum torture_plant  plant;
    unsigned            hold;   /* seconds between closing everything and the exit */
    unsigned            gap_ms; /* 0, or report silences longer than this */
    const char         *series_file;
};

/* A registered-or-not piece of memory of one size class, kept for reuse. */
struct buffer {
    struct buffer *next;
    uint32_t class;
    uint32_t size;
    char    *data;
};

struct torture;

struct op {
    struct op      *next;
    struct torture *torture;
    struct buffer  *buffer;
    uint64_t        seq;
    uint64_t        offset; /* GET: of the region */
    uint32_t        size;
    uint32_t        kind;
    struct batch   *batch;          /* PUT */
    uint64_t        operand, reply; /* atomics */
};

/* Sequence numbers seen, one bit each, and the one behind the largest. */
struct ledger {
    uint8_t *seen;
    uint64_t capacity;
    uint64_t next;
    uint64_t count;
};

struct totals {
    uint64_t sent[KIND_COUNT];     /* started here */
    uint64_t done[KIND_COUNT];     /* completed here */
    uint64_t acked[KIND_COUNT];    /* the peer said it verified them */
    uint64_t received[KIND_COUNT]; /* verified here */
    uint64_t lost, duplicate, reordered, corrupt, stale_write, errors;
};

#define MAX_CUTS 512

struct cut {
    double   when;        /* seconds since 1970 */
    uint64_t failovers;   /* counter afterwards */
    uint64_t outstanding; /* operations, when the counter moved */
    double   stall_ms;    /* longest silence from then until the next one */
};

/* What all endpoints of the process share. */
struct torture_run {
    ucp_context_h context;
    ucp_worker_h  worker;
    int           event_fd;
    int           running;   /* still starting new operations */
    int           stuck;     /* the end came without all of them complete */
    double        busy;      /* seconds that --busy took so far */
    ucs_status_t  ep_status; /* first error of any endpoint */
    double        ep_failed_at;
    char         *pattern[2]; /* by direction: sent by client, by server */
};

/* One endpoint and its traffic. The first one of the list is the process's
 * representative: whatever concerns all is called with it. */
struct torture {
    struct torture        *next;
    unsigned               index;
    struct torture_options opt;
    struct totals          total;
    ucp_ep_h               ep;
    int                    is_client;
    int                    sends; /* this side starts operations */
    struct torture_run    *run;
    struct torture_link   *link;
    struct torture_report *report;
    struct torture_msg    *msg;
    struct torture_rma    *rma;
    struct torture_amo    *amo;
};

#define for_each_ep(_t, _first) for (struct torture *_t = (_first); _t != NULL; _t = _t->next)

/* torture_options.c */
void options_parse(struct torture_options *opt, int argc, char **argv);

/* torture_pattern.c */
double   now_seconds(void); /* monotonic */
double   wall_seconds(void);
uint64_t mix(uint64_t x);
void     pattern_create(struct torture *t);
/* contents of operation seq of that kind; own: sent by this side */
const char *pattern_of(struct torture *t, int own, unsigned kind, uint64_t seq);
uint32_t    size_of(struct torture *t, int own, unsigned kind, uint64_t seq);
int         is_poison(const char *data, size_t size);
void        ledger_add(struct torture *t, struct ledger *ledger, uint64_t seq, int in_order, const char *what);
void complain(struct torture *t, uint64_t *counter, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* torture_buffer.c */
void           buffers_create(void);
struct buffer *buffer_get(uint32_t size, uint32_t limit_large);
void           buffer_put(struct buffer *buffer, uint32_t used); /* poisons it */
void           buffer_put_unpoisoned(struct buffer *buffer);
void          *must_alloc(size_t size);

/* torture_link.c: the TCP connection */
enum link_type { LINK_STOP = 1, LINK_DRAINED, LINK_VERDICT, LINK_LEAVE };
#define AMO_WORDS 9 /* see torture_amo.c */
struct link_packet {
    uint32_t type;
    uint32_t ok;
    struct {
        uint64_t sent[KIND_COUNT];
        uint64_t words[AMO_WORDS]; /* what the receiver's memory must hold at the end */
    } ep[MAX_EPS];
};
void link_create(struct torture *t);
void link_exchange(struct torture *t, const void *own, size_t own_size, void **peer, size_t *peer_size);
void link_send(struct torture *t, enum link_type type, int ok);
int  link_receive(struct torture *t, struct link_packet *packet); /* 1 got one, 0 none, -1 closed */
void link_destroy(struct torture *t);

/* torture_msg.c: TAG, AM, and the control messages among AM */
void msg_create(struct torture *t);
void msg_cancel(struct torture *t);
void msg_destroy(struct torture *t);
int  msg_start(struct torture *t, unsigned kind); /* 1 started, 0 not now */
void msg_progress(struct torture *t);
void msg_send_control(struct torture *t, unsigned id, const void *data, size_t size);
void msg_check_lost(struct torture *t, const uint64_t *peer_sent);

/* torture_rma.c: PUT and GET */
void     rma_create(struct torture *t);
size_t   rma_pack(struct torture *t, void *blob, size_t room);
size_t   rma_unpack(struct torture *t, const void *blob, size_t size);
void     rma_destroy(struct torture *t);
int      rma_start(struct torture *t, unsigned kind);
void     rma_get_finish(struct op *op);
void     rma_progress(struct torture *t); /* announces what was flushed */
void     rma_on_announce(struct torture *t, const void *data, size_t size);
void     rma_on_freed(struct torture *t, const uint32_t *slots, unsigned count);
unsigned rma_take_freed(struct torture *t, uint32_t *slots, unsigned room);
void     rma_check_final(struct torture *t, const uint64_t *peer_sent);

/* torture_amo.c: atomics */
void   amo_create(struct torture *t);
size_t amo_pack(struct torture *t, void *blob, size_t room);
size_t amo_unpack(struct torture *t, const void *blob, size_t size);
void   amo_destroy(struct torture *t);
int    amo_start(struct torture *t);
void   amo_finish(struct op *op);
void   amo_expected(const struct torture *t, uint64_t *words);
void   amo_check_final(struct torture *t, const uint64_t *words);

/* torture_remote.c: memory that the other side may reach */
struct remote {
    uint64_t   address;
    ucp_rkey_h rkey;
};
ucp_mem_h remote_map(struct torture *t, void *address, size_t size);
size_t    remote_pack(struct torture *t, char *at, size_t room, const void *address, ucp_mem_h memh);
size_t    remote_unpack(struct torture *t, const char *at, size_t size, struct remote *remote);

/* torture_connect.c: UCP objects, their beginning and end */
void must(ucs_status_t status, const char *what); /* or exit */
void worker_create(struct torture *t);
void peer_connect(struct torture *t);
void ep_close(struct torture *t, int force);
void ep_flush_start(struct torture *t, unsigned *pending);

/* torture_count.c: what the process holds */
struct held_counts {
    unsigned fds; /* but for: */
    unsigned connections;
    unsigned rss_kib;
    unsigned heap_kib; /* of it, allocated by malloc() and not freed */
    int      ahs;      /* address handles: created minus destroyed */
};
void held_count(struct held_counts *held);

/* torture_report.c */
void     report_create(struct torture *t);
void     report_poll(struct torture *t);     /* often: counters, status line, stall */
void     report_progress(struct torture *t); /* something moved */
double   report_stalled(struct torture *t);  /* seconds since something moved */
uint64_t report_failovers(struct torture *t);
void     totals_add(const struct torture *first, struct totals *sum); /* over all endpoints */
void     report_final(struct torture *t, int ok);
void     report_destroy(struct torture *t);

/* torture_series.c: messages received, over time; one per process */
void series_create(const struct torture *t);
void series_add(uint64_t bytes);
void series_poll(const struct torture *t, double now);
void series_destroy(void);

/* ha_torture.c */
uint64_t outstanding(const struct torture *t); /* of this endpoint */
int      planted(const struct torture *t, enum torture_plant plant);
void     ep_failed(struct torture *t, ucs_status_t status);
/* the result of an _nbx call; calls done(op) when complete at once */
void       op_started(struct torture *t, struct op *op, ucs_status_ptr_t request);
void       op_completed(void *request, ucs_status_t status, void *user_data);
void       op_finish(struct op *op, ucs_status_t status);
struct op *op_create(struct torture *t, unsigned kind, uint64_t seq, uint32_t size, struct buffer *buffer);

enum control_id { CONTROL_STREAM = 1, CONTROL_ACK, CONTROL_ANNOUNCE, CONTROL_COUNT };

#endif
