/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compiler makes of hte.h, as JSON: test_hte.py compares the binding with it. */
#include <stddef.h>
#include <stdio.h>

#include "hte.h"

#define SIZE(type)         printf("\"%s\":%zu,\n", #type, sizeof(struct type))
#define FIELD(type, field) printf("\"%s.%s\":%zu,\n", #type, #field, offsetof(struct type, field))
#define VALUE(name)        printf("\"%s\":%d,\n", #name, (int)(name))

static void print_sizes(void)
{
    SIZE(hte_option);
    SIZE(hte_config);
    SIZE(hte_option_help);
    SIZE(hte_memory);
    SIZE(hte_buffer);
    SIZE(hte_request);
    SIZE(hte_status);
    SIZE(hte_batch_status);
    SIZE(hte_notification);
    SIZE(hte_nic_load);
    SIZE(hte_link);
}

/* The last field of each: what stands before it has to be right, too. */
static void print_fields(void)
{
    FIELD(hte_config, port);
    FIELD(hte_config, n_options);
    FIELD(hte_memory, permission);
    FIELD(hte_buffer, permission);
    FIELD(hte_buffer, location);
    FIELD(hte_request, target);
    FIELD(hte_request, length);
    FIELD(hte_status, transferred);
    FIELD(hte_batch_status, finished);
    FIELD(hte_notification, text);
    FIELD(hte_nic_load, inflight);
    FIELD(hte_nic_load, pause_left_ms);
    FIELD(hte_link, worker);
    FIELD(hte_link, reconnects);
}

static void print_values(void)
{
    VALUE(HTE_WAITING);
    VALUE(HTE_PENDING);
    VALUE(HTE_INVALID);
    VALUE(HTE_CANCELED);
    VALUE(HTE_COMPLETED);
    VALUE(HTE_TIMEOUT);
    VALUE(HTE_FAILED);
    VALUE(HTE_PERM_GLOBAL_RW);
    VALUE(HTE_PERM_GLOBAL_RO);
    VALUE(HTE_PERM_LOCAL);
    VALUE(HTE_PRIORITY_HIGH);
    VALUE(HTE_PRIORITY_MEDIUM);
    VALUE(HTE_PRIORITY_LOW);
    VALUE(HTE_READ);
    VALUE(HTE_WRITE);
    VALUE(HTE_SEGMENT_LOCAL);
    VALUE(HTE_SEGMENT_NONE);
    VALUE(HTE_NAME_MAX);
    VALUE(HTE_ERR_INVALID_ARGUMENT);
    VALUE(HTE_ERR_BATCH_BUSY);
    VALUE(HTE_ERR_DEAD_PEER);
    VALUE(HTE_ERR_BAD_HANDLE);
    VALUE(HTE_ERR_TIMEOUT);
    VALUE(HTE_ERR_CANCELED);
}

int main(void)
{
    printf("{");
    print_sizes();
    print_fields();
    print_values();
    printf("\"end\":0}\n");
    return 0;
}
