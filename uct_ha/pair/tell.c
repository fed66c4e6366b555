/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/tell.h"

#include "pair/conn.h"
#include "ctl/ctl.h"
#include "uct/iface.h"
#include "pair/peer.h"

#include <arpa/inet.h>
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
        return "; the peer's address on that rail does not answer: ping it, and compare GIDs (UCX_HA_RC_GID_INDEX) and VLANs "
               "of both hosts";
    case EINVAL:
        return "; the device refuses the peer's parameters: compare GID type (RoCE v1 or v2, UCX_HA_RC_GID_INDEX), LID and MTU "
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
    const struct uct_ha_iface *iface = conn->iface;
    ucs_log_level_t            level = level_now(conn->peer, uct_ha_now());
    int                        error = why == HA_FAIL_CONNECT ? conn->connect_error : 0;

    ucs_log(level, "ha_rc: endpoint %u to peer %016lx failed: %s%s%s (own rails: %s %s%s%s%s%s)%s",
            conn->id, (unsigned long)conn->peer->cookie, ha_fail_name(why),
            error != 0 ? ", last error: " : "", error != 0 ? strerror(error) : "",
            ha_rail_name(iface->rail[0]), iface->ctl.down[0] ? "down" : "up",
            iface->slots == HA_SLOTS ? ", " : "",
            iface->slots == HA_SLOTS ? ha_rail_name(iface->rail[1]) : "",
            iface->slots == HA_SLOTS ? " " : "",
            iface->slots < HA_SLOTS ? "" : iface->ctl.down[1] ? "down" : "up",
            why == HA_FAIL_CONNECT ? connect_hint(conn) : "");
}

/* ---- two rails that do not match ------------------------------------------------------- */

#define TOLD_MAX 64 /* a job of thousands says no more than that */

/* Of this pair for the first time? */
static int is_news(const struct uct_ha_rail_where *own, const struct uct_ha_rail_where *peer,
                   enum ha_match match)
{
    static uint64_t told[TOLD_MAX];
    uint64_t        hash = 14695981039346656037ull ^ match, free_slot;

    for (size_t i = 0; i < sizeof(own->addr.gid); i++) {
        hash = (hash ^ own->addr.gid[i]) * 1099511628211ull;
        hash = (hash ^ peer->addr.gid[i]) * 1099511628211ull;
    }
    hash = (hash ^ own->addr.lid ^ (uint64_t)peer->addr.lid << 16 ^ (uint64_t)peer->zone << 32) *
           1099511628211ull;
    hash = (hash ^ own->addr.pkey ^ (uint64_t)peer->addr.pkey << 16) * 1099511628211ull | 1;
    for (int i = 0; i < TOLD_MAX; i++) {
        free_slot = 0;
        if (__atomic_compare_exchange_n(&told[i], &free_slot, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return 1;
        }
        if (free_slot == hash) {
            return 0;
        }
    }
    return 0;
}

/* "10.0.1.2/24", "LID 7 of subnet fe80::", "no address yet". Returns buf. */
static const char *addr_text(const struct ha_rail_addr *addr, char *buf, size_t size)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    char                 ip[INET6_ADDRSTRLEN];
    uint8_t              subnet[16] = { 0 };
    size_t               length;

    if (addr->mtu == 0) {
        snprintf(buf, size, "no address yet");
    } else if (addr->link_layer == HA_LINK_IB) {
        memcpy(subnet, addr->gid, 8);
        snprintf(buf, size, "LID %u of subnet %s", addr->lid, inet_ntop(AF_INET6, subnet, ip, sizeof(ip)));
    } else if (memcmp(addr->gid, mapped, sizeof(mapped)) == 0) {
        snprintf(buf, size, "%s/%d", inet_ntop(AF_INET, addr->gid + 12, ip, sizeof(ip)),
                 addr->prefix_len < 96 ? 0 : addr->prefix_len - 96);
    } else {
        snprintf(buf, size, "%s/%d", inet_ntop(AF_INET6, addr->gid, ip, sizeof(ip)), addr->prefix_len);
    }
    if (addr->pkey != 0 && addr->pkey != (HA_PKEY_FULL | HA_PKEY_PARTITION)) { /* not the default one */
        length = strlen(buf);
        snprintf(buf + length, size - length, ", partition key 0x%04x", addr->pkey);
    }
    return buf;
}

void uct_ha_tell_unreachable(const struct uct_ha_iface *iface, const struct uct_ha_rail_where *own,
                             const struct uct_ha_rail_where *peer, enum ha_match match)
{
    char own_text[112], peer_text[112];

    if (!ucs_log_is_enabled(UCS_LOG_LEVEL_DIAG) || !is_news(own, peer, match)) {
        return;
    }
    ucs_diag("ha_rc: %s (%s) does not reach a peer's rail (%s): %s; if no other pair does, %s",
             ha_rail_name(iface->rail[0]), addr_text(&own->addr, own_text, sizeof(own_text)),
             addr_text(&peer->addr, peer_text, sizeof(peer_text)), ha_match_text(match),
             ha_match_remedy(match));
}
