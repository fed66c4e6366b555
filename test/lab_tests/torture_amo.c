/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

/*
 * Atomics on words that only this endpoint's peer changes, so that each has an
 * exact value at the end, and an operation done twice or not at all shows:
 *
 *   ticket  fetching add of 1: every result must come exactly once
 *   count   posted add of 1: the number of operations
 *   sum     posted add of any value: the sum
 *   parity  posted exclusive or of any value: the exclusive or of all
 *   chain   swap: what was put in = what came out + what is left
 *   only    compare and swap, one at a time: each must find what the last one left
 */

enum { TICKET, COUNT, SUM, PARITY, CHAIN, ONLY, TICKET32, COUNT32, SUM32 };

#define FIRST_FEW 256 /* atomics before the others have to keep up */

struct amo_kind {
    ucp_atomic_op_t op;
    uint8_t         size;
    uint8_t         fetch;
};

static const struct amo_kind amo_kinds[AMO_WORDS] = {
    [TICKET] = {UCP_ATOMIC_OP_ADD, 8, 1},   [COUNT] = {UCP_ATOMIC_OP_ADD, 8, 0},   [SUM] = {UCP_ATOMIC_OP_ADD, 8, 0},
    [PARITY] = {UCP_ATOMIC_OP_XOR, 8, 0},   [CHAIN] = {UCP_ATOMIC_OP_SWAP, 8, 1},  [ONLY] = {UCP_ATOMIC_OP_CSWAP, 8, 1},
    [TICKET32] = {UCP_ATOMIC_OP_ADD, 4, 1}, [COUNT32] = {UCP_ATOMIC_OP_ADD, 4, 0}, [SUM32] = {UCP_ATOMIC_OP_ADD, 4, 0},
};

static const char *const amo_names[AMO_WORDS] = {"ticket",           "count",    "sum",     "parity", "chain",
                                                 "compare and swap", "ticket32", "count32", "sum32"};

struct torture_amo {
    uint64_t     *words; /* the peer changes them */
    ucp_mem_h     memh;
    struct remote peer;
    uint64_t      expected[AMO_WORDS]; /* of the peer's words, all operations done once */
    uint64_t      chain_out;           /* sum of what swaps returned */
    int           only_busy;
    struct ledger tickets, tickets32;
};

static uint64_t operand_of(unsigned word, uint64_t seq)
{
    switch (word) {
    case TICKET:
    case TICKET32:
    case COUNT:
    case COUNT32:
        return 1;
    case SUM32:
        return (uint32_t)mix(seq);
    default:
        return mix(seq);
    }
}

static void expect(struct torture_amo *amo, unsigned word, uint64_t operand)
{
    switch (word) {
    case PARITY:
        amo->expected[word] ^= operand;
        break;
    case ONLY:
        amo->expected[word] = operand;
        break;
    default:
        amo->expected[word] += operand;
        break;
    }
    if (amo_kinds[word].size == 4) {
        amo->expected[word] = (uint32_t)amo->expected[word];
    }
}

static void post(struct torture *t, struct op *op, unsigned word)
{
    const struct amo_kind *kind  = &amo_kinds[word];
    ucp_request_param_t    param = {
           .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
                           (kind->fetch ? UCP_OP_ATTR_FIELD_REPLY_BUFFER : 0),
           .cb.send      = op_completed,
           .user_data    = op,
           .datatype     = ucp_dt_make_contig(kind->size),
           .reply_buffer = &op->reply,
    };

    op_started(t, op,
               ucp_atomic_op_nbx(t->ep, kind->op, &op->operand, 1, t->amo->peer.address + word * sizeof(uint64_t),
                                 t->amo->peer.rkey, &param));
}

/* They complete so quickly that they would crowd out everything else. */
static uint64_t others_sent(const struct torture *t)
{
    uint64_t sum = 0;

    if (t->opt.plan.ops == 1u << KIND_AMO) {
        return UINT64_MAX / 2;
    }
    for (unsigned kind = 0; kind < KIND_AMO; kind++) {
        sum += t->total.sent[kind];
    }
    return sum / 2;
}

/* Compare and swap: operand = what must be there, reply = what shall be; then
 * reply = what was there. */
int amo_start(struct torture *t)
{
    struct torture_amo *amo     = t->amo;
    uint64_t            seq     = t->total.sent[KIND_AMO];
    unsigned            word    = (unsigned)(mix(seq ^ t->opt.plan.seed) % AMO_WORDS);
    uint64_t            operand = operand_of(word, seq);
    struct op          *op;

    if (seq > FIRST_FEW + others_sent(t)) {
        return 0;
    }
    if (word == ONLY && amo->only_busy) {
        word    = COUNT;
        operand = 1;
    }
    t->total.sent[KIND_AMO]++;
    op          = op_create(t, KIND_AMO, seq, word, NULL);
    op->operand = word == ONLY ? amo->expected[ONLY] : operand;
    op->reply   = operand;
    amo->only_busy |= word == ONLY;
    expect(amo, word, operand);
    if (planted(t, PLANT_ATOMIC) && word == COUNT && seq > PLANT_AT) {
        struct op *twice = op_create(t, KIND_COUNT, seq, word, NULL);

        twice->operand = 1;
        t->opt.plant   = PLANT_NOTHING;
        post(t, twice, COUNT);
    }
    post(t, op, word);
    return 1;
}

/* op->size says which word. */
void amo_finish(struct op *op)
{
    struct torture     *t   = op->torture;
    struct torture_amo *amo = t->amo;

    switch (op->size) {
    case TICKET:
        ledger_add(t, &amo->tickets, op->reply, 0, "ticket");
        break;
    case TICKET32:
        ledger_add(t, &amo->tickets32, (uint32_t)op->reply, 0, "ticket32");
        break;
    case CHAIN:
        amo->chain_out += op->reply;
        break;
    case ONLY:
        amo->only_busy = 0;
        if (op->reply != op->operand) {
            complain(t, &t->total.corrupt, "compare and swap %" PRIu64 ": found %" PRIx64 " instead of %" PRIx64,
                     op->seq, op->reply, op->operand);
        }
        break;
    default:
        break;
    }
}

/* Once all own operations are complete. */
void amo_expected(const struct torture *t, uint64_t *words)
{
    memcpy(words, t->amo->expected, sizeof(t->amo->expected));
    words[CHAIN] -= t->amo->chain_out;
}

void amo_check_final(struct torture *t, const uint64_t *words)
{
    for (unsigned word = 0; word < AMO_WORDS; word++) {
        int       counts  = operand_of(word, 0) == 1;
        uint64_t  found   = t->amo->words[word];
        uint64_t *counter = !counts ? &t->total.corrupt : found < words[word] ? &t->total.lost : &t->total.duplicate;

        if (found != words[word]) {
            complain(t, counter, "atomics on %s: %" PRIx64 " instead of %" PRIx64, amo_names[word], found, words[word]);
        }
    }
}

void amo_create(struct torture *t)
{
    t->amo = calloc(1, sizeof(*t->amo));
    if (t->amo == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    t->amo->words = must_alloc(4096);
    memset(t->amo->words, 0, 4096);
    t->amo->memh = remote_map(t, t->amo->words, 4096);
}

size_t amo_pack(struct torture *t, void *blob, size_t room)
{
    return remote_pack(t, blob, room, t->amo->words, t->amo->memh);
}

size_t amo_unpack(struct torture *t, const void *blob, size_t size)
{
    return remote_unpack(t, blob, size, &t->amo->peer);
}

void amo_destroy(struct torture *t)
{
    ucp_rkey_destroy(t->amo->peer.rkey);
    ucp_mem_unmap(t->run->context, t->amo->memh);
    free(t->amo->words);
    free(t->amo->tickets.seen);
    free(t->amo->tickets32.seen);
    free(t->amo);
}
