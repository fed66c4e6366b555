/* SPDX-License-Identifier: BSD-3-Clause */

/* Receives that wait to be posted together: none twice, none missing, in their order. */

#include "lane/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RECVS 8

static struct ha_recv receive[RECVS];

static void add(struct uct_ha_chain *chain, unsigned first, unsigned behind)
{
    for (unsigned i = first; i < behind; i++) {
        receive[i].next = &receive[0]; /* of another time: who is the last one has any */
        uct_ha_chain_add(chain, &receive[i]);
    }
}

static void check(const struct ha_recv *list, unsigned first, unsigned behind)
{
    for (unsigned i = first; i < behind; i++, list = list->next) {
        assert_ptr_equal(list, &receive[i]);
    }
    assert_null(list);
}

static void test_in_order(void **state)
{
    struct uct_ha_chain chain;

    (void)state;
    uct_ha_chain_init(&chain);
    assert_null(uct_ha_chain_take(&chain));
    for (unsigned count = 1; count <= RECVS; count++) {
        add(&chain, 0, count);
        assert_ptr_equal(chain.first, &receive[0]);
        check(uct_ha_chain_take(&chain), 0, count);
        assert_null(chain.first);
        assert_null(uct_ha_chain_take(&chain));
    }
}

/* What the card did not take comes first the next time. */
static void test_put_back(void **state)
{
    struct uct_ha_chain chain;

    (void)state;
    uct_ha_chain_init(&chain);
    for (unsigned later = 2; later <= RECVS; later++) {
        add(&chain, 0, 2);
        (void)uct_ha_chain_take(&chain);
        add(&chain, 2, later - 1 > 2 ? later - 1 : 2);
        uct_ha_chain_put_back(&chain, &receive[0]);
        add(&chain, later - 1 > 2 ? later - 1 : 2, later);
        check(uct_ha_chain_take(&chain), 0, later);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_put_back),
    };

    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
