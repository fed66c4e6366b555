/* SPDX-License-Identifier: BSD-3-Clause */

/* Blocks of one size: none in another's place, used again, many of them in huge pages. */

#include "base/slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BLOCKS 1000
#define SIZE   4000 /* no whole number of lines */

static void *block[BLOCKS];

static void take_all(struct uct_ha_slab *slab)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = uct_ha_slab_alloc(slab);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % UCT_HA_LINE, 0);
        memset(block[i], (int)(i % 251), SIZE);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        const uint8_t *bytes = block[i];

        for (unsigned k = 0; k < SIZE; k++) {
            assert_int_equal(bytes[k], i % 251);
        }
    }
}

static void test_blocks(void **state)
{
    struct uct_ha_slab slab;
    unsigned           chunks;

    (void)state;
    uct_ha_slab_init(&slab, SIZE);
    assert_int_equal(slab.size, 4032);
    take_all(&slab);
    chunks = slab.num_chunks;
    for (unsigned i = 0; i < BLOCKS; i++) {
        uct_ha_slab_free(&slab, block[i]);
    }
    take_all(&slab);
    assert_int_equal(slab.num_chunks, chunks);
    uct_ha_slab_cleanup(&slab);
    assert_int_equal(slab.num_chunks, 0);
}

static uintptr_t page_of(const void *at)
{
    return (uintptr_t)at / UCT_HA_HUGE_PAGE;
}

/* A few take what they need; of many those that come later are together. */
static void test_pages(void **state)
{
    struct uct_ha_slab slab;
    unsigned           together = 0;

    (void)state;
    uct_ha_slab_init(&slab, SIZE);
    take_all(&slab);
    for (unsigned i = 200; i + 1 < BLOCKS; i++) {
        together += page_of(block[i]) == page_of(block[i + 1]);
    }
    assert_true(together > 790);
    assert_in_range(slab.num_chunks, 3, 4); /* 2 × 16, and the rest by 520 */
    uct_ha_slab_cleanup(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
