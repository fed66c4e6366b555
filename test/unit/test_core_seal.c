/* SPDX-License-Identifier: BSD-3-Clause */

/* The checksum of its inventors' paper, seals that nothing escapes, windows of numbers. */

#include "core/ha_seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* "SipHash: a fast short-input PRF": key 00 01 .. 0f, input 00 01 .. of 0 to 15 bytes; the last one
 * is the paper's appendix, the others those of its reference implementation. */
static const uint8_t vectors[16][8] = {
    {0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72}, {0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74},
    {0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d}, {0x2d, 0x7e, 0xfb, 0xd7, 0x96, 0x66, 0x67, 0x85},
    {0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf}, {0x8d, 0xa6, 0x99, 0xcd, 0x64, 0x55, 0x76, 0x18},
    {0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb}, {0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab},
    {0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93}, {0xb0, 0xe4, 0xa9, 0x0b, 0xdf, 0x82, 0x00, 0x9e},
    {0xf3, 0xb9, 0xdd, 0x94, 0xc5, 0xbb, 0x5d, 0x7a}, {0xa7, 0xad, 0x6b, 0x22, 0x46, 0x2f, 0xb3, 0xf4},
    {0xfb, 0xe5, 0x0e, 0x86, 0xbc, 0x8f, 0x1e, 0x75}, {0x90, 0x3d, 0x84, 0xc0, 0x27, 0x56, 0xea, 0x14},
    {0xee, 0xf2, 0x7a, 0x8e, 0x90, 0xca, 0x23, 0xf7}, {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1},
};

static struct ha_secret counting(void)
{
    struct ha_secret secret;

    for (size_t i = 0; i < sizeof(secret.byte); i++) {
        secret.byte[i] = (uint8_t)i;
    }
    return secret;
}

static void test_vectors(void **state)
{
    struct ha_secret key = counting();
    uint8_t          input[16];
    uint64_t         hash;

    (void)state;
    for (size_t length = 0; length < 16; length++) {
        input[length] = (uint8_t)length;
        hash          = ha_siphash(&key, input, length);
        for (int i = 0; i < 8; i++) {
            assert_int_equal((uint8_t)(hash >> (8 * i)), vectors[length][i]);
        }
    }
    assert_true(ha_siphash(&key, input, 15) == 0xa129ca6149be45e5ull);
}

static int is_same(struct ha_secret a, struct ha_secret b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void test_keys(void **state)
{
    struct ha_secret a = counting(), b = counting(), ab;
    uint64_t         half[2];

    (void)state;
    b.byte[15] ^= 0x80;
    assert_true(ha_seal_name(&a) != ha_seal_name(&b));
    ab = ha_seal_key(&a, 1, 2);
    assert_true(is_same(ab, ha_seal_key(&a, 1, 2)));
    assert_false(is_same(ab, ha_seal_key(&a, 2, 1))); /* of the other direction */
    assert_false(is_same(ab, ha_seal_key(&a, 1, 3)));
    assert_false(is_same(ab, ha_seal_key(&a, 3, 2)));
    assert_false(is_same(ab, ha_seal_key(&b, 1, 2)));
    memcpy(half, ab.byte, sizeof(half));
    assert_true(half[0] != half[1]);
}

/* Every bit counts, and so does the length. */
static void test_seals(void **state)
{
    struct ha_secret key = ha_seal_key(&(struct ha_secret){{7}}, 1, 2), other = key;
    uint8_t          packet[256];
    size_t           length;

    (void)state;
    for (size_t size = 0; size < sizeof(packet) - HA_SEAL_LEN; size += 31) {
        memset(packet, (int)size, sizeof(packet));
        length = ha_seal_add(&key, packet, size);
        assert_int_equal(length, size + HA_SEAL_LEN);
        assert_true(ha_seal_is_whole(&key, packet, length));
        for (size_t bit = 0; bit < 8 * length; bit++) {
            packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(ha_seal_is_whole(&key, packet, length));
            packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t shorter = 0; shorter < length; shorter++) {
            assert_false(ha_seal_is_whole(&key, packet, shorter));
        }
        other.byte[size % HA_SECRET_LEN] ^= 1;
        assert_false(ha_seal_is_whole(&other, packet, length));
    }
}

static void test_window_in_order(void **state)
{
    struct ha_window window = {0};

    (void)state;
    assert_false(ha_window_take(&window, 0));
    for (uint64_t number = 1; number < 300; number++) {
        assert_true(ha_window_take(&window, number));
        for (uint64_t old = 0; old <= number; old++) {
            assert_false(ha_window_take(&window, old));
        }
    }
}

/* Exactly HA_WINDOW numbers may overtake each other. */
static void test_window_edges(void **state)
{
    struct ha_window window = {0};

    (void)state;
    assert_true(ha_window_take(&window, 1000));
    assert_false(ha_window_take(&window, 1000 - HA_WINDOW));
    assert_true(ha_window_take(&window, 1000 - HA_WINDOW + 1));
    assert_false(ha_window_take(&window, 1000 - HA_WINDOW + 1));
    assert_true(ha_window_take(&window, 1000 + HA_WINDOW - 1)); /* 1000 is the last one in it */
    assert_false(ha_window_take(&window, 1000));
    assert_true(ha_window_take(&window, 1001));
    assert_true(ha_window_take(&window, 1000 + 2 * HA_WINDOW - 1)); /* nothing is left of them */
    for (uint64_t number = 1000; number < 1000 + HA_WINDOW; number++) {
        assert_false(ha_window_take(&window, number));
    }
    for (uint64_t number = 1000 + HA_WINDOW; number < 1000 + 2 * HA_WINDOW - 1; number++) {
        assert_true(ha_window_take(&window, number));
        assert_false(ha_window_take(&window, number));
    }
    assert_true(ha_window_take(&window, 1ull << 47));
    assert_false(ha_window_take(&window, 1000 + 2 * HA_WINDOW));
}

/* As a model that remembers everything. */
static void test_window_at_random(void **state)
{
    struct ha_window window = {0};
    uint8_t          heard[4096];
    uint64_t         x = 88172645463325252ull, newest = 0, number;

    (void)state;
    memset(heard, 0, sizeof(heard));
    while (newest < 3900) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        number = newest + 1 + x % 150;
        number = number > 130 ? number - 130 : 1;
        assert_int_equal(ha_window_take(&window, number), !heard[number] && number + HA_WINDOW > newest);
        heard[number] = 1;
        newest        = number > newest ? number : newest;
    }
}

static void test_window_closed(void **state)
{
    struct ha_window window = {0};

    (void)state;
    ha_window_close(&window, 100);
    for (uint64_t number = 0; number <= 100; number++) {
        assert_false(ha_window_take(&window, number));
    }
    assert_true(ha_window_take(&window, 103));
    ha_window_close(&window, 102); /* nothing new */
    assert_true(ha_window_take(&window, 102));
    assert_true(ha_window_take(&window, 101));
    assert_false(ha_window_take(&window, 103));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),       cmocka_unit_test(test_keys),
        cmocka_unit_test(test_seals),         cmocka_unit_test(test_window_in_order),
        cmocka_unit_test(test_window_edges),  cmocka_unit_test(test_window_at_random),
        cmocka_unit_test(test_window_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
