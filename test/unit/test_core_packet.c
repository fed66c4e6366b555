/* SPDX-License-Identifier: BSD-3-Clause */

/* Control packets: round trip, every field out of range, every length. */

#include "core/ha_packet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/ha_psn.h"

static uint8_t                buf[HA_PACKET_MTU];
static const struct ha_secret key = {{1, 2, 3}};

static struct ha_packet_header a_header(void)
{
    struct ha_packet_header header = {.type       = HA_PACKET_STATE,
                                      .carrier    = 1,
                                      .flags      = HA_PACKET_WANT,
                                      .count      = 1,
                                      .nonce      = 0x01020304,
                                      .src_cookie = 0x1122334455667788ull,
                                      .dst_cookie = 0x99aabbccddeeff00ull,
                                      .number     = 0x8182838485ffull,
                                      .credits    = 0x5678,
                                      .caps       = HA_CAP_COUNTED};

    header.opts = (struct ha_opts){
        .seg_size      = 0x00102030,
        .rx_queue_len  = 0x4050,
        .timeout       = 0x61,
        .retry_count   = 0x62,
        .rnr_retry     = 0x63,
        .min_rnr_timer = 0x64,
        .rail          = {{0x71, 0x72, 0x73, 0x74}, {0x75, 0x76, 0x77, 0x78}},
    };
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        struct ha_packet_rail *rail = &header.rails[slot];

        memset(rail->gid, 0xa0 + slot, sizeof(rail->gid));
        rail->lid        = 0x1234;
        rail->mtu        = 1024;
        rail->ud_qpn     = 0xabcdef;
        rail->link_layer = 2;
        rail->prefix_len = 64;
        rail->up         = 1;
        rail->place      = (uint8_t)!slot;
    }
    return header;
}

static struct ha_packet_record a_record(void)
{
    struct ha_packet_record record;

    memset(&record, 0, sizeof(record));
    record.src_ep           = 5;
    record.dst_ep           = HA_EP_ANY;
    record.sn               = 77;
    record.tag              = 0xdeadbeef;
    record.slots            = 2;
    record.state.epoch      = 9;
    record.state.seen_epoch = 8;
    record.state.flags      = HA_PAIR_CLOSING;
    record.state.seen_flags = HA_PAIR_FAILED;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        struct ha_record_lane *lane = &record.state.lane[slot];

        lane->gen      = 3 + (uint32_t)slot;
        lane->act      = 9 - (uint32_t)slot;
        lane->rxpsn    = 0xfffffe;
        lane->k        = 0x10203040;
        lane->qpn      = 0x123456;
        lane->psn      = 0xffffff;
        lane->seen_gen = 2;
        lane->mtu      = 4096;
        lane->st       = HA_LANE_FENCED;
        lane->seen_st  = HA_LANE_READY;
        lane->proof    = HA_PROOF_PSN;
        lane->received = 0x76543210;
        lane->cause    = HA_CAUSE_RTO;
    }
    return record;
}

static size_t encode(const struct ha_packet_header *header, const struct ha_packet_record *record)
{
    size_t length = ha_packet_encode_header(buf, header);

    assert_int_equal(length, HA_PACKET_HEADER_LEN);
    for (unsigned i = 0; i < header->count; i++) {
        length = ha_packet_encode_record(buf, length, record);
    }
    assert_int_equal(length, HA_PACKET_HEADER_LEN + header->count * HA_PACKET_RECORD_LEN);
    return ha_seal_add(&key, buf, length);
}

static void test_layout_is_the_documented_one(void **state)
{
    struct ha_packet_header header   = a_header();
    struct ha_packet_record record   = a_record();
    static const uint8_t    first[]  = {'H', 'A', 'R', 'C',  3,    1,    1,    HA_CAP_COUNTED, 0,    1,    0,    1,   1,
                                        2,   3,   4,   0x11, 0x22, 0x33, 0x44, 0x55,           0x66, 0x77, 0x88, 0x99};
    static const uint8_t    opts[]   = {0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x61, 0x62, 0x63,
                                        0x64, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78};
    static const uint8_t    number[] = {0x81, 0x82, 0x83, 0x84, 0x85, 0xff};
    const uint8_t          *lane;

    (void)state;
    assert_int_equal(HA_PSN_BITS, 24);
    assert_int_equal(HA_PACKET_RECORDS_MAX, 8);
    encode(&header, &record);
    assert_memory_equal(buf, first, sizeof(first));
    assert_int_equal(buf[32], 0xa0);                  /* rails[0].gid */
    assert_int_equal(buf[59], 1);                     /* rails[0].place */
    assert_int_equal(buf[60], 0xa1);                  /* rails[1].gid */
    assert_int_equal(buf[88] << 8 | buf[89], 0x5678); /* credits */
    assert_memory_equal(buf + 96, opts, sizeof(opts));
    assert_memory_equal(buf + 114, number, sizeof(number));
    assert_int_equal(buf[120 + 3], 5);  /* src_ep */
    assert_int_equal(buf[120 + 16], 2); /* slots */
    assert_int_equal(buf[120 + 23], 9); /* epoch */
    lane = &buf[120 + 32];
    assert_int_equal(lane[3], 3); /* gen */
    assert_int_equal(lane[28] << 8 | lane[29], 4096);
    assert_int_equal(lane[30], HA_LANE_FENCED);
    assert_int_equal(lane[31], HA_LANE_READY);
    assert_int_equal(lane[32], HA_PROOF_PSN);
    assert_int_equal(lane[33], HA_CAUSE_RTO);
    assert_int_equal(lane[36], 0x76); /* received */
    assert_int_equal(lane[39], 0x10);
    assert_int_equal(lane[40 + 3], 4); /* second lane */
}

static void expect_same_header(const struct ha_packet_header *is, const struct ha_packet_header *was)
{
    assert_int_equal(is->type, was->type);
    assert_int_equal(is->carrier, was->carrier);
    assert_true(is->number == was->number);
    assert_int_equal(is->caps, was->caps);
    assert_int_equal(is->flags, was->flags);
    assert_int_equal(is->count, was->count);
    assert_int_equal(is->nonce, was->nonce);
    assert_int_equal(is->credits, was->credits);
    assert_true(is->src_cookie == was->src_cookie && is->dst_cookie == was->dst_cookie);
    assert_memory_equal(is->rails, was->rails, sizeof(is->rails)); /* has no padding */
    assert_memory_equal(&is->opts, &was->opts, sizeof(is->opts));  /* neither */
}

static void test_round_trip(void **state)
{
    struct ha_packet_header header = a_header(), header_back;
    struct ha_packet_record record = a_record(), record_back;

    (void)state;
    for (uint16_t count = 0; count <= HA_PACKET_RECORDS_MAX; count++) {
        size_t length;

        header.count = count;
        length       = encode(&header, &record);
        assert_int_equal(ha_packet_decode_header(buf, length, &header_back), 0);
        expect_same_header(&header_back, &header);
        for (unsigned i = 0; i < count; i++) {
            assert_int_equal(ha_packet_decode_record(buf, length, i, &record_back), 0);
            assert_memory_equal(&record_back.state, &record.state, sizeof(record.state));
            assert_int_equal(record_back.src_ep, record.src_ep);
            assert_int_equal(record_back.dst_ep, record.dst_ep);
            assert_int_equal(record_back.sn, record.sn);
            assert_int_equal(record_back.tag, record.tag);
            assert_int_equal(record_back.slots, record.slots);
        }
        assert_int_equal(ha_packet_decode_record(buf, length, count, &record_back), -EPROTO);
    }
}

static void test_only_the_exact_length(void **state)
{
    struct ha_packet_header header = a_header(), back;
    struct ha_packet_record record = a_record(), record_back;
    size_t                  length;

    (void)state;
    header.count = 2;
    length       = encode(&header, &record);
    for (size_t n = 0; n <= sizeof(buf); n++) {
        memset(&back, 0x5a, sizeof(back));
        if (n == length) {
            assert_int_equal(ha_packet_decode_header(buf, n, &back), 0);
        } else {
            assert_int_equal(ha_packet_decode_header(buf, n, &back), -EPROTO);
            assert_int_equal(back.type, 0x5a); /* nothing was written */
        }
    }
    for (size_t n = 0; n < length; n++) {
        assert_int_equal(ha_packet_decode_record(buf, n, 1, &record_back), -EPROTO);
    }
}

/* One byte range of an otherwise good packet, set to a value that must be refused. */
struct bad_field {
    const char *name;
    size_t      at, size;
    uint32_t    value;
};

static void refuse_header(const struct bad_field *bad, uint16_t count)
{
    struct ha_packet_header header = a_header(), back;
    struct ha_packet_record record = a_record();
    size_t                  length;

    header.count = count;
    length       = encode(&header, &record);
    assert_int_equal(ha_packet_decode_header(buf, length, &back), 0);
    for (size_t i = 0; i < bad->size; i++) {
        buf[bad->at + i] = (uint8_t)((uint64_t)bad->value >> (8 * (bad->size - 1 - i)));
    }
    if (ha_packet_decode_header(buf, length, &back) != -EPROTO) {
        fail_msg("%s = %#x was accepted", bad->name, bad->value);
    }
}

static void test_malformed_headers(void **state)
{
    static const struct bad_field bad[] = {
        {"magic", 0, 4, 0x48415244},
        {"version", 4, 1, 0},
        {"version", 4, 1, 2},
        {"version", 4, 1, 4},
        {"type", 5, 1, 0},
        {"type", 5, 1, 5},
        {"type", 5, 1, 255},
        {"carrier", 6, 1, 3},
        {"flags", 8, 2, 16},
        {"flags", 8, 2, 32},
        {"flags", 8, 2, 0x8001},
        {"count", 10, 2, 0},
        {"count", 10, 2, 2},
        {"count", 10, 2, 9},
        {"count", 10, 2, 0xffff},
        {"rail mtu", 50, 2, 1000},
        {"rail mtu", 50, 2, 128},
        {"rail mtu", 50, 2, 8192},
        {"ud_qpn", 52, 4, 0x1000000},
        {"prefix_len", 57, 1, 129},
        {"up", 58, 1, 2},
        {"rail 1 mtu", 78, 2, 1},
        {"rail 1 up", 86, 1, 9},
        {"number", 114, 6, 0},
        {"type with records", 5, 1, HA_PACKET_PING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_header(&bad[i], 1);
    }
}

/* A question whether the process runs, and its answer: by TCP. */
static void test_calls(void **state)
{
    struct ha_packet_record record = a_record();

    (void)state;
    for (unsigned type = HA_PACKET_STATE; type <= HA_PACKET_BYE; type++) {
        for (unsigned carrier = 0; carrier < HA_CARRIERS; carrier++) {
            struct ha_packet_header header = a_header(), back;
            int good = carrier == HA_CARRIER_TCP && (type == HA_PACKET_PING || type == HA_PACKET_PONG);

            header.type    = (uint8_t)type;
            header.carrier = (uint8_t)carrier;
            header.flags   = HA_PACKET_CALL;
            header.count   = 0;
            assert_int_equal(ha_packet_decode_header(buf, encode(&header, &record), &back), good ? 0 : -EPROTO);
        }
    }
}

static void refuse_record(const struct bad_field *bad, size_t base)
{
    struct ha_packet_header header = a_header();
    struct ha_packet_record record = a_record(), back;
    size_t                  length = encode(&header, &record);

    assert_int_equal(ha_packet_decode_record(buf, length, 0, &back), 0);
    memset(&back, 0x5a, sizeof(back));
    for (size_t i = 0; i < bad->size; i++) {
        buf[base + bad->at + i] = (uint8_t)(bad->value >> (8 * (bad->size - 1 - i)));
    }
    if (ha_packet_decode_record(buf, length, 0, &back) != -EPROTO) {
        fail_msg("%s = %#x was accepted", bad->name, bad->value);
    }
    assert_int_equal(back.slots, 0x5a);
}

static void test_malformed_records(void **state)
{
    static const struct bad_field bad[] = {
        {"src_ep", 0, 4, HA_EP_ANY}, {"slots", 16, 1, 0},           {"slots", 16, 1, 3}, {"reserved", 17, 1, 1},
        {"reserved", 19, 1, 1},      {"epoch below act", 20, 4, 8}, {"flags", 28, 2, 4}, {"seen_flags", 30, 2, 0x100},
    };
    static const struct bad_field bad_lane[] = {
        {"gen 0 not closed", 0, 4, 0},
        {"act", 4, 4, 10},
        {"rxpsn", 8, 4, 1u << 24},
        {"qpn", 16, 4, 1u << 24},
        {"psn", 20, 4, 0xffffffff},
        {"seen_gen 0", 24, 4, 0},
        {"mtu", 28, 2, 4095},
        {"mtu", 28, 2, 1},
        {"st", 30, 1, 5},
        {"seen_st", 31, 1, 5},
        {"proof", 32, 1, HA_PROOF_LAST},
        {"cause", 33, 1, HA_CAUSE_LAST},
        {"reserved", 34, 1, 1},
        {"reserved", 35, 1, 1},
        {"READY without mtu", 28, 3, HA_LANE_READY}, /* mtu = 0, st = READY */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_record(&bad[i], 120);
    }
    for (size_t slot = 0; slot < HA_SLOTS; slot++) {
        for (size_t i = 0; i < sizeof(bad_lane) / sizeof(bad_lane[0]); i++) {
            refuse_record(&bad_lane[i], 120 + 32 + 40 * slot);
        }
    }
}

/* Of another release one can say at least which. */
static void test_version_of_other_releases(void **state)
{
    struct ha_packet_header header = a_header();
    struct ha_packet_record record = a_record();
    size_t                  length = encode(&header, &record);

    (void)state;
    assert_int_equal(ha_packet_version(buf, length), HA_PACKET_VERSION);
    buf[4] = 1;
    assert_int_equal(ha_packet_version(buf, length), 1);
    assert_int_equal(ha_packet_version(buf, 5), 1);
    assert_int_equal(ha_packet_version(buf, 4), 0);
    buf[0] = 'h';
    assert_int_equal(ha_packet_version(buf, length), 0);
}

/* Decoding arbitrary bytes must neither read outside nor accept nonsense. */
static void test_random_bytes(void **state)
{
    struct ha_packet_header header = a_header(), header_back;
    struct ha_packet_record record = a_record(), record_back;
    uint64_t                x      = 88172645463325252ull;
    size_t                  length;

    (void)state;
    header.count = 3;
    for (int i = 0; i < 200000; i++) {
        length = encode(&header, &record);
        for (int j = 0; j < 3; j++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            buf[x % length] = (uint8_t)(x >> 32);
        }
        if (ha_packet_decode_header(buf, length, &header_back) != 0) {
            continue;
        }
        for (unsigned j = 0; j < header_back.count; j++) {
            if (ha_packet_decode_record(buf, length, j, &record_back) == 0) {
                for (int slot = 0; slot < HA_SLOTS; slot++) {
                    assert_true(record_back.state.lane[slot].st <= HA_LANE_CLOSED);
                }
            }
        }
    }
}

static void test_tag_is_the_same_on_both_sides(void **state)
{
    (void)state;
    assert_int_equal(ha_pair_tag(1, 2, 3), ha_pair_tag(2, 1, 3));
    assert_int_not_equal(ha_pair_tag(1, 2, 3), ha_pair_tag(1, 2, 4));
    assert_int_not_equal(ha_pair_tag(1, 2, 3), ha_pair_tag(1, 3, 3));
}

/* ---- a record against the pair it claims to be about ---- */

static struct ha_pair a_pair(int decider)
{
    static const struct ha_pair_config cfg = {.rtx_min = 1, .rtx_max = 2};
    struct ha_pair                     pair;

    ha_pair_init(&pair, &cfg, decider, 2);
    pair.epoch = 4;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        pair.lane[slot].gen = pair.view[slot].gen = 3;
        pair.lane[slot].st                        = HA_LANE_READY;
        pair.view[slot].st                        = HA_LANE_READY;
        pair.view[slot].qpn                       = 11;
        pair.view[slot].psn                       = 12;
        pair.view[slot].mtu                       = 1024;
    }
    return pair;
}

static struct ha_record a_fitting_record(void)
{
    struct ha_record record;

    memset(&record, 0, sizeof(record));
    record.epoch = 4;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        struct ha_record_lane *lane = &record.lane[slot];

        lane->gen      = 3;
        lane->st       = HA_LANE_READY;
        lane->qpn      = 11;
        lane->psn      = 12;
        lane->mtu      = 1024;
        lane->seen_gen = 3;
        lane->seen_st  = HA_LANE_READY;
    }
    return record;
}

static void test_records_that_do_not_fit(void **state)
{
    struct ha_pair   pair[2] = {a_pair(0), a_pair(1)};
    struct ha_record good    = a_fitting_record(), record;

    (void)state;
    for (int decider = 0; decider < 2; decider++) {
        assert_int_equal(ha_packet_record_check(&pair[decider], &good), 0);
        record       = good;
        record.epoch = 2; /* late, but possible */
        assert_int_equal(ha_packet_record_check(&pair[decider], &record), 0);
        record.epoch = 5;
        assert_int_equal(ha_packet_record_check(&pair[decider], &record), decider ? -EPROTO : 0);
        record.epoch = 7;
        assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            record = good, record.lane[slot].gen = 4;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), 0);
            record.lane[slot].act = 1;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].gen = 5;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].seen_gen = 4;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].seen_st = HA_LANE_FENCED;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].qpn = 13;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].psn = 13;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
            record = good, record.lane[slot].mtu = 512;
            assert_int_equal(ha_packet_record_check(&pair[decider], &record), -EPROTO);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_the_documented_one),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_only_the_exact_length),
        cmocka_unit_test(test_version_of_other_releases),
        cmocka_unit_test(test_malformed_headers),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_malformed_records),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_tag_is_the_same_on_both_sides),
        cmocka_unit_test(test_records_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
