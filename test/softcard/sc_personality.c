/* SPDX-License-Identifier: BSD-3-Clause */
#include "sc_personality.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/* The first one is what nobody has to ask for: no card of a vendor, and no rule of a vendor in the way. */
static const struct sc_personality table[] = {
    {.name         = "plain",
     .vendor_id    = 0x1234,
     .part_id      = 1,
     .forgets      = SC_FORGETS_RESET,
     .flush_vendor = 0xf5,
     .max_inline   = 220},
    {.name         = "mlx5",
     .vendor_id    = 0x02c9,
     .part_id      = 0x1017,
     .forgets      = SC_FORGETS_RESET,
     .slow_retry   = 1,
     .flush_vendor = 0xf5,
     .max_inline   = 220},
    {.name       = "irdma",
     .vendor_id  = 0x8086,
     .part_id    = 0x159b,
     .stale_psn  = 1,
     .forgets    = SC_FORGETS_DESTROY,
     .no_wr_api  = 1,
     .max_inline = 101},
    {.name       = "bnxt_re",
     .vendor_id  = 0x14e4,
     .part_id    = 0x1750,
     .forgets    = SC_FORGETS_RESET,
     .last_wqe   = SC_LAST_WQE_FATAL,
     .max_inline = 96},
    {.name = "hns", .vendor_id = 0x19e5, .part_id = 0xa222, .forgets = SC_FORGETS_RESET, .max_inline = 64},
    {.name       = "efa",
     .vendor_id  = 0x1d0f,
     .part_id    = 0xefa1,
     .no_rc      = 1,
     .stale_psn  = 1,
     .forgets    = SC_FORGETS_RESET,
     .max_inline = 64},
    {.name           = "rxe",
     .vendor_id      = 0xffffff,
     .part_id        = 0,
     .retry7_forever = 1,
     .port_kills     = IBV_WC_WR_FLUSH_ERR,
     .max_inline     = 220},
    {.name           = "rxe-old",
     .vendor_id      = 0xffffff,
     .part_id        = 0,
     .retry7_forever = 1,
     .port_kills     = IBV_WC_LOC_QP_OP_ERR,
     .last_wqe       = SC_LAST_WQE_NONE,
     .own_memory     = IBV_WC_LOC_QP_OP_ERR,
     .long_message   = 1,
     .no_access      = 1,
     .odd_atomic     = 1,
     .late_receive   = 1,
     .max_inline     = 220},
};

/* `index`-th word of a list, the last one for all that follow. */
static size_t pick(const char **word, unsigned index)
{
    size_t length = strcspn(*word, ",");

    while (index-- > 0 && (*word)[length] == ',') {
        *word += length + 1;
        length = strcspn(*word, ",");
    }
    return length;
}

const struct sc_personality *sc_personality_of(unsigned index)
{
    const char *wanted = getenv("SOFTCARD_PERSONALITY");
    size_t      length;

    if (wanted == NULL || *wanted == '\0') {
        return &table[0];
    }
    length = pick(&wanted, index);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strlen(table[i].name) == length && strncmp(table[i].name, wanted, length) == 0) {
            return &table[i];
        }
    }
    return NULL;
}
