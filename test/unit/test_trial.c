/* SPDX-License-Identifier: BSD-3-Clause */

/* Which ports are rails at all, and when a packet needs a global header. */

#include "verbs/ha_trial.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "verbs/ha_rail_priv.h"

enum { INIT, RTR, RTS, STEPS };

static struct ibv_device  device;
static struct ibv_context context = {.device = &device};
static struct ibv_pd      pd      = {.context = &context};
static struct ibv_cq      the_cq;
static struct ibv_qp      the_qp = {.qp_num = 4711};
static struct ibv_ah_attr itself = {.dlid = 77, .port_num = 2};
static int                cq_error, create_error, error[STEPS];
static int                queues, pairs, steps;

/* ---- a device ---- */

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int comp_vector)
{
    assert_ptr_equal(ctx, &context);
    assert_in_range(cqe, 1, 16);
    assert_true(cq_context == NULL && channel == NULL && comp_vector == 0);
    errno = cq_error;
    queues += cq_error == 0;
    return cq_error == 0 ? &the_cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    assert_ptr_equal(cq, &the_cq);
    assert_int_equal(pairs, 0);
    queues--;
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *init)
{
    assert_ptr_equal(of, &pd);
    assert_int_equal(init->qp_type, IBV_QPT_RC);
    assert_true(init->send_cq == &the_cq && init->recv_cq == &the_cq);
    errno = create_error;
    pairs += create_error == 0;
    return create_error == 0 ? &the_qp : NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    assert_ptr_equal(qp, &the_qp);
    pairs--;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const int states[STEPS] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

    assert_ptr_equal(qp, &the_qp);
    assert_true(mask & IBV_QP_STATE);
    assert_in_range(steps, 0, STEPS - 1);
    assert_int_equal(attr->qp_state, states[steps]);
    if (steps == INIT) {
        assert_int_equal(attr->port_num, 2);
        assert_int_equal(attr->pkey_index, 3);
    } else if (steps == RTR) { /* to itself */
        assert_int_equal(attr->dest_qp_num, 4711);
        assert_int_equal(attr->ah_attr.dlid, 77);
    }
    return error[steps++];
}

static int begin(void **state)
{
    (void)state;
    device.transport_type = IBV_TRANSPORT_IB;
    cq_error = create_error = 0;
    memset(error, 0, sizeof(error));
    queues = pairs = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(queues, 0);
    assert_int_equal(pairs, 0);
    return 0;
}

static int trial(const struct ibv_ah_attr *way)
{
    steps = 0;
    return ha_trial(&pd, 2, 3, way);
}

/* ---- tests ---- */

static void test_a_rail(void **state)
{
    (void)state;
    assert_int_equal(trial(&itself), 0);
    assert_int_equal(steps, STEPS);
}

static void test_port_that_is_down(void **state)
{
    (void)state;
    assert_int_equal(trial(NULL), 0);
    assert_int_equal(steps, 1);
    create_error = EOPNOTSUPP;
    assert_int_equal(trial(NULL), -EOPNOTSUPP);
}

static void test_other_transports(void **state)
{
    static const int other[] = {IBV_TRANSPORT_IWARP, IBV_TRANSPORT_USNIC, IBV_TRANSPORT_USNIC_UDP,
                                IBV_TRANSPORT_UNSPECIFIED, IBV_TRANSPORT_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        device.transport_type = (enum ibv_transport_type)other[i];
        assert_int_equal(trial(&itself), -EPROTONOSUPPORT);
    }
}

static void test_refusals(void **state)
{
    static const int no[] = {EOPNOTSUPP, ENOSYS, EPROTONOSUPPORT};

    (void)state;
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        create_error = no[i];
        assert_int_equal(trial(&itself), -EOPNOTSUPP);
        create_error = 0;
        for (int step = 0; step < STEPS; step++) {
            error[step] = no[i];
            assert_int_equal(trial(&itself), -EOPNOTSUPP);
            assert_int_equal(steps, step + 1);
            error[step] = 0;
        }
    }
    error[INIT] = EINVAL;
    assert_int_equal(trial(&itself), -EOPNOTSUPP);
    create_error = EINVAL;
    assert_int_equal(trial(&itself), -EOPNOTSUPP);
}

/* A full device is a rail all the same, and so is one that does not find itself. */
static void test_says_nothing(void **state)
{
    static const int later[] = {ENOMEM, EAGAIN, EBUSY, ENOSPC, EIO, ETIMEDOUT};

    (void)state;
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        cq_error = later[i];
        assert_int_equal(trial(&itself), 0);
        cq_error     = 0;
        create_error = later[i];
        assert_int_equal(trial(&itself), 0);
        create_error = 0;
        for (int step = 0; step < STEPS; step++) {
            error[step] = later[i];
            assert_int_equal(trial(&itself), 0);
            error[step] = 0;
        }
    }
    error[RTR] = EINVAL;
    assert_int_equal(trial(&itself), 0);
}

/* On InfiniBand between subnets, and where the port asks for it: virtual functions have no LID of their own. */
static void test_global_header(void **state)
{
    struct ha_rail_addr own = {.link_layer = HA_LINK_IB, .gid = {1}}, near = own, far = own;

    (void)state;
    near.gid[15] = 9;
    far.gid[0]   = 2;
    assert_int_equal(ha_needs_grh(&own, 0, &near), 0);
    assert_int_equal(ha_needs_grh(&own, 0, &far), 1);
    assert_int_equal(ha_needs_grh(&own, 1, &near), 1);
    own.link_layer = HA_LINK_ETHERNET;
    assert_int_equal(ha_needs_grh(&own, 0, &near), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_rail, begin, end),
        cmocka_unit_test_setup_teardown(test_port_that_is_down, begin, end),
        cmocka_unit_test_setup_teardown(test_other_transports, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_says_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_global_header, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
