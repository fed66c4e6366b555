/* SPDX-License-Identifier: BSD-3-Clause */
#include "meta_test.h"

static struct hte_blob blob(size_t length, uint8_t seed)
{
    struct hte_blob made = {.bytes = malloc(length), .length = length};
    size_t          i;

    for (i = 0; i < length; i++) {
        ((uint8_t *)made.bytes)[i] = (uint8_t)(seed + 37 * i);
    }
    return made;
}

static void fill_buffer(struct hte_desc_buffer *buffer, uint32_t i)
{
    buffer->location   = strdup(i % 2 == 0 ? "cpu:0" : "*");
    buffer->addr       = i == 0 ? 0xfff0000000000000ull : 0x7f0000000000ull + i * 0x100000ull;
    buffer->length     = 0x100000;
    buffer->permission = (enum hte_permission)(i % 3);
    buffer->num_keys   = 2;
    if (i % 3 == 1) {
        buffer->slot        = i;
        buffer->file        = 9;
        buffer->file_inode  = INT64_MAX;
        buffer->file_offset = 4096ull * i;
    }
    buffer->keys    = calloc(2, sizeof(*buffer->keys));
    buffer->keys[0] = blob(20 + i % 5, (uint8_t)i);
    buffer->keys[1] = blob(33, (uint8_t)(i + 1));
}

struct hte_descriptor *sample_descriptor(const char *name, uint32_t num_buffers, uint64_t version)
{
    struct hte_descriptor *made = calloc(1, sizeof(*made));
    uint32_t               i;

    made->name        = strdup(name);
    made->protocol    = strdup("ucx");
    made->version     = version;
    made->timestamp   = 1700000000000000ull;
    made->num_workers = made->num_devices = 2;
    made->num_priorities                  = 1;
    made->num_buffers                     = num_buffers;
    made->workers                         = calloc(2, sizeof(*made->workers));
    made->devices                         = calloc(2, sizeof(*made->devices));
    made->priorities                      = calloc(1, sizeof(*made->priorities));
    made->buffers                         = calloc(num_buffers + 1, sizeof(*made->buffers));
    for (i = 0; i < 2; i++) {
        made->workers[i].context = i;
        made->workers[i].address = blob(100 + i, (uint8_t)i);
        made->devices[i].name    = strdup(i == 0 ? "mlx5_0:1" : "mlx5_1:1");
        made->devices[i].lid     = i;
        made->devices[i].gid     = strdup(i == 0 ? "fe80::1" : "");
    }
    made->priorities[0].location      = strdup("cpu:0");
    made->priorities[0].num_preferred = made->priorities[0].num_available = 1;
    made->priorities[0].preferred                                         = calloc(1, sizeof(uint32_t));
    made->priorities[0].available                                         = calloc(1, sizeof(uint32_t));
    made->priorities[0].preferred[0]                                      = 1;
    for (i = 0; i < num_buffers; i++) {
        fill_buffer(&made->buffers[i], i);
    }
    made->host = (struct hte_desc_host){
        .identity = strdup("boot/1/2"), .pid = 77, .board = 5, .guard = 0x7f1234567000, .secret = INT64_MAX};
    return made;
}

static void assert_same_blob(const struct hte_blob *a, const struct hte_blob *b)
{
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->bytes, b->bytes, a->length);
}

static void assert_same_buffer(const struct hte_desc_buffer *a, const struct hte_desc_buffer *b)
{
    uint32_t i;

    assert_string_equal(a->location, b->location);
    assert_true(a->addr == b->addr && a->length == b->length && a->permission == b->permission);
    assert_true(a->slot == b->slot && a->file == b->file && a->file_inode == b->file_inode &&
                a->file_offset == b->file_offset);
    assert_int_equal(a->num_keys, b->num_keys);
    for (i = 0; i < a->num_keys; i++) {
        assert_same_blob(&a->keys[i], &b->keys[i]);
    }
}

static void assert_same_priority(const struct hte_desc_priority *a, const struct hte_desc_priority *b)
{
    assert_string_equal(a->location, b->location);
    assert_int_equal(a->num_preferred, b->num_preferred);
    assert_int_equal(a->num_available, b->num_available);
    assert_memory_equal(a->preferred, b->preferred, a->num_preferred * sizeof(*a->preferred));
    assert_memory_equal(a->available, b->available, a->num_available * sizeof(*a->available));
}

void assert_same_descriptor(const struct hte_descriptor *a, const struct hte_descriptor *b)
{
    uint32_t i;

    assert_string_equal(a->name, b->name);
    assert_string_equal(a->protocol, b->protocol);
    assert_true(a->version == b->version && a->timestamp == b->timestamp);
    assert_string_equal(a->host.identity, b->host.identity);
    assert_true(a->host.pid == b->host.pid && a->host.board == b->host.board && a->host.guard == b->host.guard &&
                a->host.secret == b->host.secret);
    assert_true(a->num_workers == b->num_workers && a->num_devices == b->num_devices);
    assert_true(a->num_priorities == b->num_priorities && a->num_buffers == b->num_buffers);
    for (i = 0; i < a->num_workers; i++) {
        assert_int_equal(a->workers[i].context, b->workers[i].context);
        assert_same_blob(&a->workers[i].address, &b->workers[i].address);
    }
    for (i = 0; i < a->num_devices; i++) {
        assert_string_equal(a->devices[i].name, b->devices[i].name);
        assert_string_equal(a->devices[i].gid, b->devices[i].gid);
        assert_int_equal(a->devices[i].lid, b->devices[i].lid);
    }
    for (i = 0; i < a->num_priorities; i++) {
        assert_same_priority(&a->priorities[i], &b->priorities[i]);
    }
    for (i = 0; i < a->num_buffers; i++) {
        assert_same_buffer(&a->buffers[i], &b->buffers[i]);
    }
}
