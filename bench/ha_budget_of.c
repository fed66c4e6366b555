/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The budget of a device that is described by its limits: for bench/budget, and for who
 * plans with a card that is not here. One JSON object on stdout.
 *
 *   ha_budget_of max_qp=N max_qp_wr=N max_cqe=N max_mr=N memlock=N
 *                tx_queue_len=N rx_queue_len=N rx_queue_init=N seg_size=N rails=N
 *
 * Every name once; "unlimited" is a number, too. Exit status 2 for anything else.
 */

#include "topo/ha_budget.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_QP, MAX_QP_WR, MAX_CQE, MAX_MR, MEMLOCK, TX, RX, RX_INIT, SEG, RAILS, NAMES };

static const char *const names[NAMES] = {
    "max_qp",       "max_qp_wr",    "max_cqe",       "max_mr",   "memlock",
    "tx_queue_len", "rx_queue_len", "rx_queue_init", "seg_size", "rails",
};

/* As ha_info has them. */
#define SEED_WR       64
#define SEED_CHANNELS 16
#define SEED_RECVS    8

static int number(const char *text, uint64_t *value)
{
    char *end;

    if (strcmp(text, "unlimited") == 0) {
        *value = HA_BUDGET_UNLIMITED;
        return 0;
    }
    errno  = 0;
    *value = strtoull(text, &end, 10);
    return *text < '0' || *text > '9' || *end != '\0' || errno != 0 ? -1 : 0;
}

static int take(const char *word, uint64_t *value, unsigned *seen)
{
    size_t length = strcspn(word, "=");

    for (int i = 0; i < NAMES; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) {
            *seen |= 1u << i;
            return word[length] == '=' ? number(word + length + 1, &value[i]) : -1;
        }
    }
    return -1;
}

static void print(const struct ha_budget *budget, uint64_t seed)
{
    printf("{\"connections\":%" PRIu64 ",\"limited_by\":\"%s\",\"queues_fit\":%s,\"seed_formula\":%" PRIu64,
           budget->connections, ha_budget_limit_name(budget->limited_by), budget->queues_fit ? "true" : "false", seed);
    for (int i = 0; i < HA_BUDGET_LIMITS; i++) {
        printf(",\"%s\":%" PRIu64, ha_budget_limit_name((enum ha_budget_limit)i), budget->by[i]);
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    uint64_t                v[NAMES] = {0};
    unsigned                seen     = 0;
    struct ha_budget_device device;
    struct ha_budget_need   need;
    struct ha_budget        budget;

    for (int i = 1; i < argc; i++) {
        if (take(argv[i], v, &seen) != 0) {
            fprintf(stderr, "ha_budget_of: '%s' is not NAME=NUMBER of what it knows\n", argv[i]);
            return 2;
        }
    }
    for (int i = 0; i < NAMES; i++) {
        if (!(seen & 1u << i)) {
            fprintf(stderr, "ha_budget_of: %s=NUMBER is missing\n", names[i]);
            return 2;
        }
    }
    device = (struct ha_budget_device){.max_qp    = v[MAX_QP],
                                       .max_qp_wr = v[MAX_QP_WR],
                                       .max_cqe   = v[MAX_CQE],
                                       .max_mr    = v[MAX_MR],
                                       .memlock   = v[MEMLOCK]};
    need   = ha_budget_need(v[TX], v[RX], v[RX_INIT], v[SEG], (unsigned)v[RAILS]);
    budget = ha_budget(&device, &need);
    print(&budget, ha_budget_seed(v[MAX_QP], v[MAX_CQE], SEED_WR, SEED_CHANNELS, SEED_RECVS));
    return 0;
}
