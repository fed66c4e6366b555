/* SPDX-License-Identifier: BSD-3-Clause */
/* The declared layouts against the running UCX, and the guard against UCXs that
 * are not what we were built for. */
#include "abi/uct_ha_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct uct_ha_guard_facts real_facts(void)
{
    struct uct_ha_guard_facts facts;

    uct_ha_guard_facts_get(&facts);
    return facts;
}

static void test_the_running_ucx_passes(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();

    (void)state;
    assert_int_equal(facts.major, 1);
    assert_int_equal(facts.minor, UCT_VERNO_MINOR);
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_OK);
}

static void test_another_minor_is_refused_without_a_look(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();

    (void)state;
    facts.minor      = UCT_VERNO_MINOR + 1;
    facts.components = NULL; /* touching it would crash */
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_VERSION);
    facts.minor = UCT_VERNO_MINOR;
    facts.major = 2;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_VERSION);
}

static void test_statistics_are_refused(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();

    (void)state;
    assert_false(facts.has_statistics);
    facts.has_statistics = 1;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_STATISTICS);
}

static void test_second_copy_stays_idle(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();

    (void)state;
    assert_int_equal(uct_ha_guard_judge(&facts, "tcp"), UCT_HA_GUARD_DUPLICATE);
}

static void test_other_async_context_is_refused(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();

    (void)state;
    facts.async_mode_ok = 0;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_ASYNC);
}

/* What the list would look like in a UCX whose component has one more method,
 * as 1.16 and later do: everything behind it moves by eight bytes. */
static void test_shifted_layout_is_refused(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();
    struct {
        char            before[64];
        uct_component_t component;
        char            shift[8];
        ucs_list_link_t list;
        char            after[64];
    } other;
    ucs_list_link_t components;

    (void)state;
    memset(&other, 0x5a, sizeof(other));
    memcpy(other.component.name, "self", 5);
    components.next = components.prev = &other.list;
    other.list.next = other.list.prev = &components;
    facts.components                  = &components;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_LAYOUT);
}

static void test_empty_and_broken_lists_are_refused(void **state)
{
    struct uct_ha_guard_facts facts = real_facts();
    ucs_list_link_t           components;
    uct_component_t           component;

    (void)state;
    facts.components = &components;

    components.next = components.prev = &components;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_LAYOUT);

    components.next = NULL;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_LAYOUT);

    /* a circle that does not come back to the head */
    memset(&component, 0, sizeof(component));
    components.next     = &component.list;
    component.list.next = &component.list;
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_LAYOUT);

    /* the right name with nothing behind it */
    memcpy(component.name, "self", 5);
    assert_int_equal(uct_ha_guard_judge(&facts, "ha"), UCT_HA_GUARD_LAYOUT);
}

/* The head of every UCT interface: operations, then the domain it was opened
 * on, then its worker. A real interface tells whether we see that right. */
static void test_base_interface_fields(void **state)
{
    ucs_async_context_t *async;
    uct_component_h     *components, self = NULL;
    uct_iface_params_t   params = {.field_mask  = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
                                   .open_mode   = UCT_IFACE_OPEN_MODE_DEVICE,
                                   .mode.device = {.tl_name = "self", .dev_name = "memory"}};
    uct_md_config_t     *md_config;
    uct_iface_config_t  *config;
    uct_base_iface_t    *base;
    unsigned             count, i;
    uct_worker_h         worker;
    uct_iface_h          iface;
    uct_md_h             md;

    (void)state;
    assert_int_equal(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), UCS_OK);
    assert_int_equal(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), UCS_OK);
    assert_int_equal(uct_query_components(&components, &count), UCS_OK);
    for (i = 0; i < count; ++i) {
        if (strcmp(components[i]->name, "self") == 0) {
            self = components[i];
        }
    }
    assert_non_null(self);
    uct_release_component_list(components);
    assert_int_equal(uct_md_config_read(self, NULL, NULL, &md_config), UCS_OK);
    assert_int_equal(uct_md_open(self, "self", md_config, &md), UCS_OK);
    uct_config_release(md_config);
    assert_int_equal(uct_md_iface_config_read(md, "self", NULL, NULL, &config), UCS_OK);
    assert_int_equal(uct_iface_open(md, worker, &params, config, &iface), UCS_OK);

    base = (uct_base_iface_t *)iface;
    assert_ptr_equal(md->component, self);
    assert_ptr_equal(base->md, md);
    assert_ptr_equal(base->worker, worker);
    assert_ptr_equal(base->worker->async, async);
    assert_int_equal(base->worker->thread_mode, UCS_THREAD_MODE_SINGLE);
    assert_int_equal(base->config.max_num_eps, config->max_num_eps);
    assert_int_equal(base->config.num_alloc_methods, config->alloc_methods.count);
    assert_ptr_equal(base->internal_ops->iface_estimate_perf, uct_base_iface_estimate_perf);

    assert_int_equal(base->progress_flags, 0);
    uct_base_iface_progress_enable(iface, UCT_PROGRESS_SEND);
    assert_int_equal(base->progress_flags, UCT_PROGRESS_SEND);
    uct_base_iface_progress_disable(iface, UCT_PROGRESS_SEND);
    assert_int_equal(base->progress_flags, 0);

    uct_iface_close(iface);
    uct_config_release(config);
    uct_md_close(md);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
}

static void blocked_in_mode(ucs_async_mode_t mode)
{
    ucs_async_context_t *async;

    assert_int_equal(ucs_async_context_create(mode, &async), UCS_OK);
    assert_int_equal(async->mode, mode);
    uct_ha_async_block(async);
    uct_ha_async_block(async);
    uct_ha_async_unblock(async);
    uct_ha_async_unblock(async);
    ucs_async_context_destroy(async);
}

static void test_async_block_is_recursive(void **state)
{
    (void)state;
    blocked_in_mode(UCS_ASYNC_MODE_THREAD_SPINLOCK);
    blocked_in_mode(UCS_ASYNC_MODE_THREAD_MUTEX);
    blocked_in_mode(UCS_ASYNC_MODE_POLL);
}

static void test_time_units(void **state)
{
    (void)state;
    assert_int_equal(uct_ha_ucs_time(0), 0);
    assert_true(uct_ha_ucs_time(1.0) > 1000000);
    assert_true(uct_ha_ucs_time(2.0) > uct_ha_ucs_time(1.0));
}

static void count_completion(uct_completion_t *comp)
{
    comp->count = -100;
}

static void test_completion_keeps_the_first_error(void **state)
{
    uct_completion_t comp = {.func = count_completion, .count = 3, .status = UCS_OK};

    (void)state;
    uct_ha_completion_invoke(&comp, UCS_OK);
    uct_ha_completion_invoke(&comp, UCS_ERR_CANCELED);
    assert_int_equal(comp.count, 1);
    uct_ha_completion_invoke(&comp, UCS_ERR_IO_ERROR);
    assert_int_equal(comp.count, -100);
    assert_int_equal(comp.status, UCS_ERR_CANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_running_ucx_passes),
                                       cmocka_unit_test(test_another_minor_is_refused_without_a_look),
                                       cmocka_unit_test(test_statistics_are_refused),
                                       cmocka_unit_test(test_second_copy_stays_idle),
                                       cmocka_unit_test(test_other_async_context_is_refused),
                                       cmocka_unit_test(test_shifted_layout_is_refused),
                                       cmocka_unit_test(test_empty_and_broken_lists_are_refused),
                                       cmocka_unit_test(test_base_interface_fields),
                                       cmocka_unit_test(test_async_block_is_recursive),
                                       cmocka_unit_test(test_time_units),
                                       cmocka_unit_test(test_completion_keeps_the_first_error)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
