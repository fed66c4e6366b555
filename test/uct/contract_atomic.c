/* SPDX-License-Identifier: BSD-3-Clause */

/* Atomics: each kind that is announced, 32 and 64 bits wide, posted and fetched, with operands up to
 * the largest. A burst works on one word: its last value, and every value fetched, is known. */

#include "contract.h"
#include "contract_cut.h"

#include <stdio.h>
#include <string.h>

static struct {
    struct memory   memory; /* of rx: a word between two that stay as they are */
    uct_atomic_op_t op;
    int             wide;
    uint64_t        first;   /* value before the burst */
    uint64_t        operand; /* of the first operation; the others follow from it */
    union {
        uint32_t narrow[BURST_MAX];
        uint64_t wide[BURST_MAX];
    } results;
} amo;

#define GUARD 0x6b6b6b6b6b6b6b6bull

static uint64_t mask(void)
{
    return amo.wide ? UINT64_MAX : UINT32_MAX;
}

static uint64_t operand(unsigned i)
{
    return (amo.operand + (amo.op == UCT_ATOMIC_OP_ADD ? 0 : i * 0x0101010101010101ull)) & mask();
}

/* Every third comparison fails. */
static int swaps(unsigned i)
{
    return i % 3 != 2;
}

static uint64_t apply(uint64_t value, unsigned i)
{
    switch (amo.op) {
    case UCT_ATOMIC_OP_ADD:
        return (value + operand(i)) & mask();
    case UCT_ATOMIC_OP_AND:
        return value & ~(operand(i) & 0x1111111111111111ull << i % 4);
    case UCT_ATOMIC_OP_OR:
        return value | operand(i);
    case UCT_ATOMIC_OP_XOR:
        return value ^ operand(i);
    case UCT_ATOMIC_OP_SWAP:
        return operand(i);
    case UCT_ATOMIC_OP_CSWAP:
        return swaps(i) ? operand(i) : value;
    default:
        return value;
    }
}

static uint64_t argument(unsigned i)
{
    return amo.op == UCT_ATOMIC_OP_AND ? ~(operand(i) & 0x1111111111111111ull << i % 4) & mask() : operand(i);
}

/* The value that operation i meets. */
static uint64_t before(unsigned i)
{
    uint64_t value = amo.first;

    for (unsigned k = 0; k < i; k++) {
        value = apply(value, k);
    }
    return value;
}

static uint64_t word_addr(void)
{
    return (uintptr_t)amo.memory.bytes + sizeof(uint64_t);
}

static void begin(unsigned i)
{
    uint64_t words[3] = {GUARD, GUARD, GUARD};

    if (i == 0) {
        memcpy((uint8_t *)&words[1], &amo.first, amo.wide ? 8 : 4);
        memcpy(amo.memory.bytes, words, sizeof(words));
        memset(&amo.results, 0x5a, sizeof(amo.results));
    }
}

static ucs_status_t post(struct burst *burst, unsigned i)
{
    begin(i);
    return amo.wide ? uct_ep_atomic64_post(burst->ep, amo.op, argument(i), word_addr(), amo.memory.rkey.rkey)
                    : uct_ep_atomic32_post(burst->ep, amo.op, (uint32_t)argument(i), word_addr(), amo.memory.rkey.rkey);
}

static ucs_status_t fetch(struct burst *burst, unsigned i)
{
    uct_rkey_t        rkey = amo.memory.rkey.rkey;
    uct_completion_t *comp = &burst->done[i].comp;
    uint64_t          compare;

    begin(i);
    if (amo.op != UCT_ATOMIC_OP_CSWAP) {
        return amo.wide ? uct_ep_atomic64_fetch(burst->ep, amo.op, argument(i), &amo.results.wide[i], word_addr(), rkey,
                                                comp)
                        : uct_ep_atomic32_fetch(burst->ep, amo.op, (uint32_t)argument(i), &amo.results.narrow[i],
                                                word_addr(), rkey, comp);
    }
    compare = swaps(i) ? before(i) : ~before(i);
    return amo.wide
               ? uct_ep_atomic_cswap64(burst->ep, compare, argument(i), word_addr(), rkey, &amo.results.wide[i], comp)
               : uct_ep_atomic_cswap32(burst->ep, (uint32_t)compare, (uint32_t)argument(i), word_addr(), rkey,
                                       &amo.results.narrow[i], comp);
}

static void check_word(struct burst *burst)
{
    uint64_t words[3], wanted = GUARD, last = before(burst->count);

    memcpy(&wanted, &last, amo.wide ? 8 : 4);
    memcpy(words, amo.memory.bytes, sizeof(words));
    if (planted("atomic")) {
        words[1]++;
    }
    (void)expect(words[1] == wanted, "the word is 0x%llx, not 0x%llx", (unsigned long long)words[1],
                 (unsigned long long)wanted);
    (void)expect(words[0] == GUARD && words[2] == GUARD, "a word beside it was changed");
}

static void check_results(struct burst *burst)
{
    check_word(burst);
    for (unsigned i = 0; i < burst->count; i++) {
        uint64_t result = amo.wide ? amo.results.wide[i] : amo.results.narrow[i];

        (void)expect(result == before(i), "operation %u fetched 0x%llx, not 0x%llx", i, (unsigned long long)result,
                     (unsigned long long)before(i));
    }
}

/* Operands 0, 1, a small one, all bits but one, all bits. */
static void run(int fetching)
{
    static const char *const names[]           = {"add", "and", "or", "xor", "swap", "compare-and-swap"};
    static const uint64_t    operands[COLUMNS] = {0, 1, UINT64_MAX - 1, UINT64_MAX, 77};
    static unsigned          seed;
    struct burst             burst;
    char                     name[48];

    snprintf(name, sizeof(name), "atomic %d %s %s", amo.wide ? 64 : 32, fetching ? "fetch" : "post", names[amo.op]);
    for (int column = 0; column < COL_ABOVE; column++) {
        for (int cut = 0; cut <= cut_available(); cut++) {
            memset(&burst, 0, sizeof(burst));
            burst.post  = fetching ? fetch : post;
            burst.check = fetching ? check_results : check_word;
            burst.count = BURST_MAX;
            burst.ep    = world.tx->ep;
            amo.first   = (0x9e3779b97f4a7c15ull * ++seed) & mask();
            amo.operand = operands[column] & mask();
            report_operation(name, amo.wide ? 8 : 4, (enum column)column, amo.wide ? 8 : 4, cut);
            burst_run(&burst, cut);
        }
    }
}

void check_atomics(void)
{
    const uct_iface_attr_t *attr = &world.tx->attr;

    if (!memory_usable(world.rx) || !(has(UCT_IFACE_FLAG_ATOMIC_CPU) || has(UCT_IFACE_FLAG_ATOMIC_DEVICE))) {
        return;
    }
    amo.memory = memory_open(world.rx, world.tx, 4096);
    for (amo.wide = 0; amo.wide < 2; amo.wide++) {
        uint64_t posts   = amo.wide ? attr->cap.atomic64.op_flags : attr->cap.atomic32.op_flags;
        uint64_t fetches = amo.wide ? attr->cap.atomic64.fop_flags : attr->cap.atomic32.fop_flags;

        for (amo.op = UCT_ATOMIC_OP_ADD; amo.op < UCT_ATOMIC_OP_LAST; amo.op++) {
            if (posts & UCS_BIT(amo.op)) {
                run(0);
            }
            if (fetches & UCS_BIT(amo.op)) {
                run(1);
            }
        }
    }
    memory_close(&amo.memory, world.rx, world.tx);
}
