/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTRACT_H_
#define CONTRACT_H_

/*
 * The contract of a UCT transport: what an interface announces, it does. Two interfaces in one
 * process, through UCT's public API alone; `tx` asks, `rx` is asked (the same one for a transport
 * that reaches only itself). Every byte is looked at.
 */

#include <stddef.h>
#include <stdint.h>

#include <uct/api/uct.h>

#define SETTINGS_MAX 32
#define PATIENCE_S   30 /* only a hang takes so long */

struct settings {
    const char *transport, *device[2]; /* of tx and rx; NULL: the first one */
    const char *setting[SETTINGS_MAX]; /* "NAME=value" */
    const char *cut, *repair;          /* commands; %d is the number of the rail */
    const char *plant;                 /* a fault to be noticed, see contract_main.c */
    const char *only;                  /* groups of checks */
    const char *excuse[SETTINGS_MAX];  /* checks of such a name may fail */
    unsigned    settings, excuses;
    size_t      max_bytes; /* longer ones are not tried, whatever the limit */
    int         table, verbose, calm;
};

extern struct settings settings;

int planted(const char *fault);

struct side {
    ucs_async_context_t *async;
    uct_worker_h         worker;
    uct_component_h      component;
    uct_md_h             md;
    uct_md_attr_t        md_attr;
    uct_iface_h          iface;
    uct_iface_attr_t     attr;
    uct_ep_h             ep; /* towards the other side */
    char                 md_name[UCT_MD_NAME_MAX], device[UCT_DEVICE_NAME_MAX];
    uint8_t              dev_addr[256], iface_addr[256];

    unsigned     errors; /* told to the error handler */
    ucs_status_t error;
};

struct world {
    struct side  sides[2];
    struct side *tx, *rx;
};

extern struct world world;

/* ---- sides: contract_side.c ------------------------------------------------------------ */

void world_open(void); /* ends the program with status 77 when there is no such transport */
void world_close(void);
void side_open(int s);
void side_close(struct side *side);

uct_ep_h ep_open(struct side *from, struct side *to);
void     ep_open_pair(uct_ep_h ep[2]); /* ep[0] of tx, ep[1] of rx; the same one twice over `self` */
void     ep_close_pair(uct_ep_h ep[2]);

int has(uint64_t flags); /* announced by tx's interface */

/* ---- time: contract_side.c --------------------------------------------------------------- */

struct patience {
    uint64_t    until;
    const char *what;
};

uint64_t        now_ns(void);
struct patience patience(const char *what);
void            progress(void); /* both sides, once */
void            progress_ms(unsigned ms);
void            progress_wait(struct patience *patience); /* ends the program when it was too long */

/* ---- what was seen: contract_report.c --------------------------------------------------------- */

enum column { COL_ZERO, COL_ONE, COL_BELOW, COL_LIMIT, COL_ABOVE, COLUMNS };

/* The check that follows; `cut`: a rail is cut in the middle of it. */
void report_operation(const char *operation, size_t limit, enum column column, size_t size, int cut);
void report_matter(const char *matter, int cut);
void report_result(const char *result); /* "ok" unless another word says it better; failed checks stay */

/* Notes a failure of the present check; returns `good`. */
int expect(int good, const char *format, ...) __attribute__((format(printf, 2, 3)));
int expect_status(ucs_status_t got, ucs_status_t wanted, const char *what);

void     report_table(void);
void     report_summary(void);
unsigned report_failures(void);

/* ---- memory: contract_memory.c ---------------------------------------------------------------- */

struct memory {
    uct_allocated_memory_t allocated; /* where the domain cannot register */
    uint8_t               *bytes;
    size_t                 length;
    uct_mem_h              memh;
    uct_rkey_bundle_t      rkey;   /* as the other side unpacked it */
    int                    remote; /* there is one */
};

struct memory memory_open(struct side *owner, struct side *user, size_t length);
void          memory_close(struct memory *memory, struct side *owner, struct side *user);
int           memory_usable(const struct side *side); /* it can be had at all */

uint8_t pattern(unsigned seed, size_t i);
void    fill(uint8_t *bytes, unsigned seed, size_t from, size_t length); /* bytes[0] is pattern(seed, from) */
int     same(const uint8_t *bytes, unsigned seed, size_t length);        /* ... and expects it */
int     blank(const uint8_t *bytes, size_t length);

/* ---- bursts: contract_burst.c ------------------------------------------------------------------ */

#define BURST_MAX 16

struct burst;

struct counted { /* a completion that counts */
    uct_completion_t comp;
    unsigned         called;
    ucs_status_t     status;
    struct burst    *burst;
};

uct_completion_t *counted(struct counted *counted);

struct burst {
    /* UCS_OK, UCS_INPROGRESS when the completion will be called, or an error. */
    ucs_status_t (*post)(struct burst *burst, unsigned i);
    void (*check)(struct burst *burst); /* when all has ended */
    unsigned       count;
    size_t         size;
    unsigned       seed;
    uct_ep_h       ep;
    struct counted done[BURST_MAX];
    uint8_t        started[BURST_MAX];
};

/* All of it, with a cut in the middle if asked for, to the end of a flush. */
void burst_run(struct burst *burst, int cut);

/* ---- the groups ---------------------------------------------------------------------------------- */

void check_attributes(void);
void check_memory(void);
void check_messages(void);
void check_rma(void);
void check_atomics(void);
void check_flow(void);
void check_pending(void);
void check_events(void);
void check_errors(void);

/* Every size of an operation, calm and cut. Above the limit it has to be refused, where the transport
 * says so (ha_rc does; UCX's own ones leave it to the user). */
struct operation {
    const char *name;
    uint64_t    flag;
    int         idle; /* a size of 0 is nothing to do */
    size_t      least, limit;
    int         bounded; /* something says no above the limit */
    ucs_status_t (*post)(struct burst *burst, unsigned i);
    void (*check)(struct burst *burst);
};

void check_operation(const struct operation *operation);

#endif
