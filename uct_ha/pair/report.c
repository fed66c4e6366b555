/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/report.h"

#include "abi/uct_ha_abi.h"
#include "base/messages.h"
#include "base/stats.h"
#include "core/ha_name.h"
#include "core/ha_state.h"
#include "verbs/ha_rail.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MSEC 1000000ull

#define AGAIN_NS   (5000 * MSEC) /* between two lines about a rail */
#define QUIET_NS   (200 * MSEC)  /* nobody has moved for so long: they all have */
#define LONGEST_NS (1000 * MSEC) /* who waits for the last of thousands still wants to know */
#define FAILURE_NS (1000 * MSEC) /* endpoints that are lost so soon after each other fell to one failure */
#define PEERS_MAX  8

/* What is to be said about a rail that was left. */
struct rail {
    char     name[HA_RAIL_NAME_MAX];
    unsigned failures;  /* so far */
    uint64_t failed_at; /* the latest */
    uint64_t told_at;   /* the latest line, 0 = none */
    unsigned told;      /* failures, then */
    unsigned last_cause;
    uint64_t left[HA_CAUSE_LAST];

    unsigned moved; /* endpoints since that line */
    uint64_t first_at, last_at;
    char     to[HA_RAIL_NAME_MAX];
    char     peer[PEERS_MAX][UCT_HA_ADDR_TEXT_MAX];
    unsigned peers;                   /* PEERS_MAX + 1: more than there is room for */
    unsigned cause[HA_CAUSE_LAST][2]; /* noticed here, by the peer */
    uint64_t silent, took_min, took_max;
    uint64_t replayed, retired;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rail     rails[HA_RAILS_MAX];
static unsigned        users;
static unsigned        bare_ends;

const char *uct_ha_addr_text(const struct ha_rail_addr *addr, char buf[UCT_HA_ADDR_TEXT_MAX])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (addr->link_layer == HA_LINK_IB) {
        (void)snprintf(buf, UCT_HA_ADDR_TEXT_MAX, "LID %u", addr->lid);
    } else if (memcmp(addr->gid, mapped, sizeof(mapped)) == 0) {
        (void)inet_ntop(AF_INET, addr->gid + sizeof(mapped), buf, UCT_HA_ADDR_TEXT_MAX);
    } else {
        (void)inet_ntop(AF_INET6, addr->gid, buf, UCT_HA_ADDR_TEXT_MAX);
    }
    return buf;
}

/* ---- collecting ------------------------------------------------------------------- */

static struct rail *rail_find(const char *name)
{
    struct rail *rail = rails;

    while (rail < rails + HA_RAILS_MAX - 1 && rail->name[0] != '\0' && strcmp(rail->name, name) != 0) {
        rail++;
    }
    (void)snprintf(rail->name, sizeof(rail->name), "%s", name);
    return rail;
}

static void add_peer(struct rail *rail, const char *peer)
{
    for (unsigned i = 0; i < rail->peers && i < PEERS_MAX; i++) {
        if (strcmp(rail->peer[i], peer) == 0) {
            return;
        }
    }
    if (rail->peers < PEERS_MAX) {
        (void)snprintf(rail->peer[rail->peers], UCT_HA_ADDR_TEXT_MAX, "%s", peer);
    }
    rail->peers += rail->peers <= PEERS_MAX;
}

static void add(struct rail *rail, const struct uct_ha_move *move, uint64_t now)
{
    unsigned by_peer = move->peer_cause != HA_CAUSE_NONE;
    unsigned cause   = by_peer ? move->peer_cause : move->cause;

    if (rail->failures == 0 || move->begin > rail->failed_at + FAILURE_NS) {
        rail->failures++;
    }
    rail->failed_at = ucs_max(rail->failed_at, move->begin);
    if (rail->moved++ == 0) {
        rail->first_at = now;
        rail->took_min = UINT64_MAX;
        (void)snprintf(rail->to, sizeof(rail->to), "%s", move->to);
    } else if (strcmp(rail->to, move->to) != 0) {
        (void)snprintf(rail->to, sizeof(rail->to), "other rails");
    }
    rail->last_at = now;
    add_peer(rail, move->peer);
    rail->cause[cause < HA_CAUSE_LAST ? cause : HA_CAUSE_NONE][by_peer]++;
    rail->left[cause < HA_CAUSE_LAST ? cause : HA_CAUSE_NONE]++;
    rail->last_cause = cause;
    rail->silent     = ucs_max(rail->silent, move->silent);
    rail->took_min   = ucs_min(rail->took_min, move->took);
    rail->took_max   = ucs_max(rail->took_max, move->took);
    rail->replayed += move->replayed;
    rail->retired += move->retired;
}

void uct_ha_report_move(const struct uct_ha_move *move, uint64_t now)
{
    int is_failback = move->cause == HA_CAUSE_FAILBACK || move->peer_cause == HA_CAUSE_FAILBACK;

    ucs_info("ha_rc [HA-%u]: failover: endpoint %u to %s left %s (%s%s%s), goes on over %s: epoch %u, resent %u, "
             "confirmed %u, silent %.0f ms, moved in %.1f ms",
             is_failback ? UCT_HA_MSG_FAILBACK : UCT_HA_MSG_MOVED, move->id, move->peer, move->from,
             ha_cause_name(move->cause), move->peer_cause != HA_CAUSE_NONE ? ": " : "",
             move->peer_cause != HA_CAUSE_NONE ? ha_cause_name(move->peer_cause) : "", move->to, move->epoch,
             move->replayed, move->retired, (double)move->silent / MSEC, (double)move->took / MSEC);
    if (!is_failback) {
        pthread_mutex_lock(&lock);
        add(rail_find(move->from), move, now);
        pthread_mutex_unlock(&lock);
    }
}

/* ---- telling ---------------------------------------------------------------------- */

static unsigned number_of(unsigned cause)
{
    switch (cause) {
    case HA_CAUSE_PORT:
        return UCT_HA_MSG_PORT;
    case HA_CAUSE_COMPLETION:
        return UCT_HA_MSG_COMPLETION;
    case HA_CAUSE_FLUSH:
        return UCT_HA_MSG_FLUSH;
    case HA_CAUSE_HEARTBEAT:
        return UCT_HA_MSG_HEARTBEAT;
    case HA_CAUSE_RTO:
        return UCT_HA_MSG_RTO;
    case HA_CAUSE_CONNECT:
        return UCT_HA_MSG_CONNECT;
    case HA_CAUSE_PROGRAM:
        return UCT_HA_MSG_PROGRAM;
    case HA_CAUSE_SLOW:
        return UCT_HA_MSG_SLOW;
    case HA_CAUSE_NOT_READY:
        return UCT_HA_MSG_NOT_READY;
    default:
        return UCT_HA_MSG_OTHER;
    }
}

/* "heartbeat", "heartbeat 398, peer: port 2". Returns the most frequent one. */
static unsigned causes_text(const struct rail *rail, char *buf, size_t size)
{
    unsigned best = HA_CAUSE_NONE, best_count = 0, count;
    size_t   length = 0;

    buf[0] = '\0';
    for (unsigned c = 0; c < HA_CAUSE_LAST; c++) {
        count = rail->cause[c][0] + rail->cause[c][1];
        if (count > best_count) {
            best       = c;
            best_count = count;
        }
        for (unsigned by_peer = 0; by_peer < 2; by_peer++) {
            count = rail->cause[c][by_peer];
            if (count > 0 && length < size) {
                length += (size_t)snprintf(buf + length, size - length, "%s%s%s", length > 0 ? ", " : "",
                                           by_peer ? "peer: " : "", ha_cause_name(c));
            }
            if (count > 0 && count < rail->moved && length < size) {
                length += (size_t)snprintf(buf + length, size - length, " %u", count);
            }
        }
    }
    return best;
}

static void peers_text(const struct rail *rail, char *buf, size_t size)
{
    if (rail->peers <= 1) {
        (void)snprintf(buf, size, "%s", rail->peer[0]);
    } else {
        (void)snprintf(buf, size, "%s, %s%s", rail->peer[0], rail->peer[1], rail->peers > 2 ? " and others" : "");
    }
}

static void tell(struct rail *rail, uint64_t now)
{
    char     causes[256], peers[2 * UCT_HA_ADDR_TEXT_MAX + 16], failures[64] = "";
    unsigned best   = causes_text(rail, causes, sizeof(causes));
    unsigned number = number_of(best);

    peers_text(rail, peers, sizeof(peers));
    if (rail->failures > rail->told + 1) {
        (void)snprintf(failures, sizeof(failures), "s %u to", rail->told + 1);
    }
    ucs_warn("ha_rc [HA-%u]: failover: %u endpoint%s to %s left %s (%s), go%s on over %s: silent %.0f ms, moved in "
             "%.0f to %.0f ms, resent %lu, confirmed %lu; failure%s %u of this rail; the job goes on, no error. %s%s",
             number, rail->moved, rail->moved == 1 ? "" : "s", peers, rail->name, causes, rail->moved == 1 ? "es" : "",
             rail->to, (double)rail->silent / MSEC, (double)rail->took_min / MSEC, (double)rail->took_max / MSEC,
             (unsigned long)rail->replayed, (unsigned long)rail->retired, failures, rail->failures,
             rail->cause[best][1] > rail->cause[best][0] ? "The peer noticed: look there first. " : "",
             uct_ha_message_remedy(number));
    rail->told_at = now;
    rail->told    = rail->failures;
    rail->moved = rail->peers = 0;
    rail->silent = rail->took_max = rail->replayed = rail->retired = 0;
    memset(rail->cause, 0, sizeof(rail->cause));
}

static int is_ripe(const struct rail *rail, uint64_t now)
{
    return (now >= rail->last_at + QUIET_NS || now >= rail->first_at + LONGEST_NS) &&
           (rail->told_at == 0 || now >= rail->told_at + AGAIN_NS);
}

static void flush_locked(uint64_t now, int all)
{
    for (struct rail *rail = rails; rail < rails + HA_RAILS_MAX && rail->name[0] != '\0'; rail++) {
        if (rail->moved > 0 && (all || is_ripe(rail, now))) {
            tell(rail, now);
        }
    }
}

void uct_ha_report_flush(uint64_t now, int all)
{
    pthread_mutex_lock(&lock);
    flush_locked(now, all);
    pthread_mutex_unlock(&lock);
}

int uct_ha_report_rail(unsigned index, struct uct_ha_report_rail *out)
{
    const struct rail *rail = &rails[index < HA_RAILS_MAX ? index : 0];
    int                ret  = -1;

    pthread_mutex_lock(&lock);
    if (index < HA_RAILS_MAX && rail->name[0] != '\0') {
        memcpy(out->name, rail->name, sizeof(out->name));
        memcpy(out->left, rail->left, sizeof(out->left));
        out->failures   = rail->failures;
        out->last_cause = rail->last_cause;
        ret             = 0;
    }
    pthread_mutex_unlock(&lock);
    return ret;
}

void uct_ha_report_bare_end(int was_bare)
{
    if (was_bare) {
        UCT_HA_STATS_ADD(unprotected, -1);
        pthread_mutex_lock(&lock);
        bare_ends++;
        pthread_mutex_unlock(&lock);
    }
}

/* ---- life ------------------------------------------------------------------------- */

void uct_ha_report_open(void)
{
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
}

void uct_ha_report_close(uint64_t now)
{
    pthread_mutex_lock(&lock);
    flush_locked(now, 1);
    if (--users == 0) {
        if (bare_ends > 0) {
            ucs_warn("ha_rc [HA-%u]: %u endpoint%s of this process ended without a standby, after a long time without "
                     "one. %s",
                     UCT_HA_MSG_UNPROTECTED, bare_ends, bare_ends == 1 ? "" : "s",
                     uct_ha_message_remedy(UCT_HA_MSG_UNPROTECTED));
        }
        bare_ends = 0;
        memset(rails, 0, sizeof(rails));
    }
    pthread_mutex_unlock(&lock);
}
