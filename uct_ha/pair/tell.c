/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/tell.h"

#include "base/messages.h"
#include "base/now.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "pair/report.h"

#include <errno.h>
#include <string.h>

#define TELL_AGAIN_NS 5000000000ull

/* What to look at when an endpoint never came up. */
static const char *connect_hint(const struct uct_ha_conn *conn)
{
    switch (conn->connect_error) {
    case 0:
        return "; the peer never answered: is it running, do its rails reach ours (ping each rail's address; VLAN, "
               "firewall for UDP port 4791), and does it use the same UCX_HA_RC_RAILS";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "; the peer's address on that rail does not answer: ping it, and compare GIDs (UCX_HA_RC_GID_INDEX) and "
               "VLANs "
               "of both hosts";
    case EINVAL:
        return "; the device refuses the peer's parameters: compare GID type (RoCE v1 or v2, UCX_HA_RC_GID_INDEX), LID "
               "and MTU "
               "(UCX_HA_RC_PATH_MTU) of both hosts";
    default:
        return "";
    }
}

/* Every endpoint of a peer fails: the first line says it, the rest is for those who look
 * closer. */
static ucs_log_level_t level_now(struct uct_ha_peer *peer, uint64_t now)
{
    if (peer->told_at != 0 && now - peer->told_at < TELL_AGAIN_NS) {
        return UCS_LOG_LEVEL_DEBUG;
    }
    peer->told_at = now;
    return UCS_LOG_LEVEL_ERROR;
}

void uct_ha_tell_failure(const struct uct_ha_conn *conn, unsigned why)
{
    const struct uct_ha_pairs *pairs = conn->pairs;
    unsigned number = why < HA_FAIL_LAST ? UCT_HA_MSG_FAIL_DEADLINE - HA_FAIL_DEADLINE + why : UCT_HA_MSG_FAIL_OTHER;
    uint64_t now    = uct_ha_now();
    ucs_log_level_t level = level_now(conn->peer, now);
    char            peer[UCT_HA_ADDR_TEXT_MAX];
    int             error = why == HA_FAIL_CONNECT ? conn->connect_error : 0;

    uct_ha_report_flush(now, 1); /* what led to this comes first */
    ucs_log(level, "ha_rc [HA-%u]: endpoint %u to %s (peer %016lx) failed: %s%s%s (own rails: %s %s%s%s%s%s)%s. %s",
            number, conn->id, uct_ha_addr_text(&conn->peer->rail[0].where.addr, peer),
            (unsigned long)conn->peer->cookie, ha_fail_name(why), error != 0 ? ", last error: " : "",
            error != 0 ? strerror(error) : "", ha_rail_name(pairs->lanes->rail[0]), pairs->down[0] ? "down" : "up",
            pairs->lanes->slots == HA_SLOTS ? ", " : "",
            pairs->lanes->slots == HA_SLOTS ? ha_rail_name(pairs->lanes->rail[1]) : "",
            pairs->lanes->slots == HA_SLOTS ? " " : "",
            pairs->lanes->slots < HA_SLOTS ? ""
            : pairs->down[1]               ? "down"
                                           : "up",
            why == HA_FAIL_CONNECT ? connect_hint(conn) : "", uct_ha_message_remedy(number));
}
