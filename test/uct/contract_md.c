/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory: registered with every kind of access, keys packed and unpacked, pointers. */

#include "contract.h"

#include <stdlib.h>
#include <string.h>

#define FILLED 256
#define LENGTH 12288

static const struct {
    const char *name;
    unsigned    flags;
} kinds[] = {
    {"mem_reg REMOTE_PUT", UCT_MD_MEM_ACCESS_REMOTE_PUT},
    {"mem_reg REMOTE_GET", UCT_MD_MEM_ACCESS_REMOTE_GET},
    {"mem_reg REMOTE_ATOMIC", UCT_MD_MEM_ACCESS_REMOTE_ATOMIC},
    {"mem_reg LOCAL_READ", UCT_MD_MEM_ACCESS_LOCAL_READ},
    {"mem_reg LOCAL_WRITE", UCT_MD_MEM_ACCESS_LOCAL_WRITE},
    {"mem_reg LOCAL_READ, LOCAL_WRITE", UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE},
    {"mem_reg RMA", UCT_MD_MEM_ACCESS_RMA},
    {"mem_reg ALL", UCT_MD_MEM_ACCESS_ALL},
    {"mem_reg ALL, NONBLOCK", UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK},
    {"mem_reg ALL, HIDE_ERRORS", UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS},
};

static struct {
    uint8_t             *bytes; /* of rx, with the access that is tried */
    const struct memory *other; /* of tx */
    uct_rkey_t           rkey;
    uint64_t             old;
} used;

static ucs_status_t post_put(struct burst *burst, unsigned i)
{
    uct_iov_t iov = {.buffer = used.other->bytes, .length = 3000, .memh = used.other->memh, .count = 1};

    return uct_ep_put_zcopy(burst->ep, &iov, 1, (uintptr_t)used.bytes, used.rkey, &burst->done[i].comp);
}

static ucs_status_t post_get(struct burst *burst, unsigned i)
{
    uct_iov_t iov = {.buffer = used.other->bytes, .length = 3000, .memh = used.other->memh, .count = 1};

    return uct_ep_get_zcopy(burst->ep, &iov, 1, (uintptr_t)used.bytes, used.rkey, &burst->done[i].comp);
}

static ucs_status_t post_add(struct burst *burst, unsigned i)
{
    return uct_ep_atomic64_fetch(burst->ep, UCT_ATOMIC_OP_ADD, 1, &used.old, (uintptr_t)used.bytes, used.rkey,
                                 &burst->done[i].comp);
}

static void check_put(struct burst *burst)
{
    (void)burst;
    (void)same(used.bytes, 3, 3000);
}

static void check_get(struct burst *burst)
{
    (void)burst;
    (void)same(used.other->bytes, 4, 3000);
}

static void check_add(struct burst *burst)
{
    uint64_t now;

    (void)burst;
    memcpy(&now, used.bytes, sizeof(now));
    (void)expect(used.old == 41 && now == 42, "the atomic found %llu and left %llu", (unsigned long long)used.old,
                 (unsigned long long)now);
}

static void one(ucs_status_t (*post)(struct burst *burst, unsigned i), void (*check)(struct burst *burst))
{
    struct burst burst = {.post = post, .check = check, .count = 1, .ep = world.tx->ep};

    burst_run(&burst, 0);
}

/* What the flags allow works. */
static void use(uct_mem_h memh, unsigned flags)
{
    uint64_t          first = 41;
    uct_rkey_bundle_t rkey;
    uint8_t           packed[FILLED];

    (void)expect_status(uct_md_mkey_pack(world.rx->md, memh, packed), UCS_OK, "mkey_pack");
    if (!expect_status(uct_rkey_unpack(world.tx->component, packed, &rkey), UCS_OK, "rkey_unpack")) {
        return;
    }
    used.rkey = rkey.rkey;
    if ((flags & UCT_MD_MEM_ACCESS_REMOTE_PUT) && has(UCT_IFACE_FLAG_PUT_ZCOPY)) {
        fill(used.other->bytes, 3, 0, 3000);
        one(post_put, check_put);
    }
    if ((flags & UCT_MD_MEM_ACCESS_REMOTE_GET) && has(UCT_IFACE_FLAG_GET_ZCOPY)) {
        fill(used.bytes, 4, 0, 3000);
        one(post_get, check_get);
    }
    if ((flags & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC) &&
        (world.tx->attr.cap.atomic64.fop_flags & UCS_BIT(UCT_ATOMIC_OP_ADD))) {
        memcpy(used.bytes, &first, sizeof(first));
        one(post_add, check_add);
    }
    (void)expect_status(uct_rkey_release(world.tx->component, &rkey), UCS_OK, "rkey_release");
}

static void every_access(const struct memory *other)
{
    uint8_t  *bytes = malloc(LENGTH + 64);
    uct_mem_h memh;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        uint8_t *at = bytes + 8 * i; /* of no page's beginning */

        report_matter(kinds[i].name, 0);
        if (expect_status(uct_md_mem_reg(world.rx->md, at, LENGTH - 80, kinds[i].flags, &memh), UCS_OK, "mem_reg")) {
            used.bytes = at;
            used.other = other;
            use(memh, kinds[i].flags);
            (void)expect_status(uct_md_mem_dereg(world.rx->md, memh), UCS_OK, "mem_dereg");
        }
    }
    free(bytes);
}

static void odd_registrations(void)
{
    uint8_t   bytes[64];
    uct_mem_h one, two;

    report_matter("mem_reg: one byte; the same memory twice; nothing is refused", 0);
    (void)expect_status(uct_md_mem_reg(world.rx->md, bytes + 3, 1, UCT_MD_MEM_ACCESS_ALL, &one), UCS_OK, "one byte");
    (void)expect_status(uct_md_mem_reg(world.rx->md, bytes, 64, UCT_MD_MEM_ACCESS_ALL, &two), UCS_OK, "again");
    (void)expect_status(uct_md_mem_dereg(world.rx->md, one), UCS_OK, "the first");
    (void)expect_status(uct_md_mem_dereg(world.rx->md, two), UCS_OK, "the second");
    (void)expect(uct_md_mem_reg(world.rx->md, bytes, 0, UCT_MD_MEM_ACCESS_ALL, &one) == UCS_ERR_INVALID_PARAM,
                 "0 bytes are registered");
}

/* By the domain's flag until UCX 1.13, by its component's later: UCT_COMPONENT_FLAG_RKEY_PTR, which has no name in
 * older headers, and no meaning in older libraries. */
static int promises_rkey_ptr(void)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS};

    return (world.rx->md_attr.cap.flags & UCT_MD_FLAG_RKEY_PTR) ||
           (uct_component_query(world.tx->component, &attr) == UCS_OK && (attr.flags & UCS_BIT(1)));
}

/* A key is as long as announced; it may be unpacked often; a pointer where one is promised. */
static void keys(const struct memory *memory)
{
    size_t            length = world.rx->md_attr.rkey_packed_size;
    uint8_t           packed[2][FILLED];
    uct_rkey_bundle_t rkey[3];
    void             *pointer = NULL;
    ucs_status_t      status;

    report_matter("mkey_pack: as long as announced, every byte, always the same", 0);
    for (int i = 0; i < 2; i++) {
        memset(packed[i], i == 0 ? 0x00 : 0xff, FILLED);
        (void)expect_status(uct_md_mkey_pack(world.rx->md, memory->memh, packed[i]), UCS_OK, "mkey_pack");
        for (size_t b = length; b < FILLED; b++) {
            if (!expect(packed[i][b] == (i == 0 ? 0x00 : 0xff), "byte %zu of %zu was written", b, length)) {
                break;
            }
        }
    }
    (void)expect(memcmp(packed[0], packed[1], length) == 0, "two keys of the same memory differ");

    report_matter("rkey_unpack: several times, released one by one", 0);
    for (int i = 0; i < 3; i++) {
        (void)expect_status(uct_rkey_unpack(world.tx->component, packed[0], &rkey[i]), UCS_OK, "rkey_unpack");
    }
    report_matter("rkey_ptr: a pointer where one is promised, else refused", 0);
    status = uct_rkey_ptr(world.tx->component, &rkey[0], (uintptr_t)memory->bytes, &pointer);
    if (promises_rkey_ptr()) {
        (void)expect_status(status, UCS_OK, "rkey_ptr");
        memory->bytes[0] = 0xa7;
        (void)expect(pointer != NULL && *(volatile uint8_t *)pointer == 0xa7, "the pointer leads elsewhere");
    } else {
        (void)expect_status(status, UCS_ERR_UNSUPPORTED, "rkey_ptr");
    }
    for (int i = 0; i < 3; i++) {
        (void)expect_status(uct_rkey_release(world.tx->component, &rkey[i]), UCS_OK, "rkey_release");
    }
}

void check_memory(void)
{
    struct memory memory;

    if (!memory_usable(world.rx)) {
        return;
    }
    memory = memory_open(world.rx, NULL, LENGTH);
    keys(&memory);
    memory_close(&memory, world.rx, NULL);
    if (world.rx->md_attr.cap.flags & UCT_MD_FLAG_REG) {
        memory = memory_open(world.tx, NULL, LENGTH);
        every_access(&memory);
        odd_registrations();
        memory_close(&memory, world.tx, NULL);
    }
}
