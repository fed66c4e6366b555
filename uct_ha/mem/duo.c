/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/duo.h"

#include <errno.h>
#include <string.h>

unsigned uct_ha_duo_access(unsigned flags)
{
    unsigned access = 0;

    if (flags & UCT_MD_MEM_ACCESS_REMOTE_PUT) {
        access |= HA_ACCESS_REMOTE_PUT;
    }
    if (flags & UCT_MD_MEM_ACCESS_REMOTE_GET) {
        access |= HA_ACCESS_REMOTE_GET;
    }
    if (flags & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC) {
        access |= HA_ACCESS_REMOTE_ATOMIC;
    }
    return access;
}

static void log_reg_error(ucs_log_level_t level, const char *consequence, const struct ha_rail *rail,
                          const struct uct_ha_mem *mem, int ret)
{
    const char *hint = (ret == -ENOMEM) ? " (check the locked-memory limit, ulimit -l)" : "";

    ucs_log(level, "ha_rc [HA-327]: cannot register %zu bytes at %p on %s: %s%s", mem->length, mem->address,
            ha_rail_name(rail), strerror(-ret), hint);
    if (consequence != NULL) {
        ucs_log(level, "%s", consequence);
    }
}

ucs_status_t uct_ha_duo_reg_own(const struct uct_ha_duo *duo, struct uct_ha_mem *mem, unsigned flags)
{
    int ret = uct_ha_reg_on(mem, duo->rail_no[0]);

    if (ret < 0 && ha_rail_is_gone(duo->rail[0]) && duo->rail[1] != NULL) {
        ret = uct_ha_reg_on(mem, duo->rail_no[1]); /* nothing goes over the other one any more */
    }
    if (ret < 0) {
        log_reg_error((flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR, NULL,
                      duo->rail[0], mem, ret);
        return (ret == -ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

void uct_ha_duo_reg_standby(const struct uct_ha_duo *duo, struct uct_ha_mem *mem)
{
    static int told;
    int        ret;

    if (duo->rail[1] == NULL || ha_rail_is_gone(duo->rail[1])) {
        return; /* that has been said */
    }
    ret = uct_ha_reg_on(mem, duo->rail_no[1]);
    if (ret < 0) {
        log_reg_error(__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_WARN,
                      "ha_rc [HA-327]: what uses this memory cannot go on when its rail is lost; this is said "
                      "once",
                      duo->rail[1], mem, ret);
    }
}
