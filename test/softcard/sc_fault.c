/* SPDX-License-Identifier: BSD-3-Clause */

/* What befalls a packet: states of both ports, and rules for exact points. Decided at the sender. */

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "sc_card.h"

static int by_chance(uint32_t of_a_million)
{
    uint64_t x = __atomic_load_n(&sc.fabric->random, __ATOMIC_RELAXED);

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    __atomic_store_n(&sc.fabric->random, x, __ATOMIC_RELAXED);
    return of_a_million > 0 && x % 1000000 < of_a_million;
}

int sc_fault_cut(const struct sc_packet *packet)
{
    uint32_t source = __atomic_load_n(&sc.fabric->port[packet->sport].trouble, __ATOMIC_RELAXED),
             target = __atomic_load_n(&sc.fabric->port[packet->dport].trouble, __ATOMIC_RELAXED);

    if ((source & (SC_PORT_DOWN | SC_PORT_MUTE | SC_PORT_FATAL)) ||
        (target & (SC_PORT_DOWN | SC_PORT_DEAF | SC_PORT_FATAL)) ||
        ((source & SC_PORT_NOACK) && sc_op_is_answer(packet->op))) {
        __atomic_fetch_add(&sc.fabric->port[packet->sport].dropped, 1, __ATOMIC_RELAXED);
        return 1;
    }
    return 0;
}

static int is_unlucky(const struct sc_packet *packet)
{
    struct sc_port_state *from = &sc.fabric->port[packet->sport], *to = &sc.fabric->port[packet->dport];

    if (by_chance(from->lossy) || by_chance(to->lossy)) {
        __atomic_fetch_add(&from->dropped, 1, __ATOMIC_RELAXED);
        return 1;
    }
    return 0;
}

static int matches(const struct sc_rule *rule, const struct sc_packet *packet)
{
    return (rule->port == SC_NO_PORT || rule->port == packet->sport) &&
           (rule->qpn == 0 || rule->qpn == packet->src_qpn || rule->qpn == packet->dst_qpn) &&
           (rule->ops == 0 || (rule->ops & 1u << packet->op));
}

static void set_trouble(unsigned port, uint32_t trouble)
{
    __atomic_fetch_or(&sc.fabric->port[port].trouble, trouble, __ATOMIC_SEQ_CST);
    sc_fabric_tell_all(sc.fabric);
}

static enum sc_fate apply(struct sc_rule *rule, struct sc_qp *from, const struct sc_packet *packet)
{
    switch (rule->action) {
    case SC_RULE_DROP:
        return SC_FATE_LOST;
    case SC_RULE_DUPLICATE:
        return SC_FATE_TWICE;
    case SC_RULE_DELAY:
        return SC_FATE_LATE;
    case SC_RULE_QP_ERROR:
        sc_qp_error(from);
        sc_qp_event(from, IBV_EVENT_QP_FATAL);
        return SC_FATE_LOST;
    case SC_RULE_PORT_DOWN:
        set_trouble(packet->sport, SC_PORT_DOWN);
        return SC_FATE_LOST;
    case SC_RULE_MUTE:
        set_trouble(packet->sport, SC_PORT_MUTE);
        return SC_FATE_LOST;
    case SC_RULE_KILL:
        (void)kill(getpid(), SIGKILL);
        return SC_FATE_LOST;
    default:
        return SC_FATE_PASS;
    }
}

enum sc_fate sc_fault_of(struct sc_qp *from, const struct sc_packet *packet, uint64_t *delay_ns)
{
    enum sc_fate fate = SC_FATE_PASS;

    for (unsigned i = 0; i < SC_RULES_MAX; i++) {
        struct sc_rule *rule = &sc.fabric->rule[i];

        if (__atomic_load_n(&rule->action, __ATOMIC_ACQUIRE) == SC_RULE_NONE || !matches(rule, packet)) {
            continue;
        }
        if (__atomic_add_fetch(&rule->seen, 1, __ATOMIC_RELAXED) >= rule->nth &&
            __atomic_add_fetch(&rule->done, 1, __ATOMIC_RELAXED) <= rule->times) {
            fate      = apply(rule, from, packet);
            *delay_ns = rule->delay_ms * 1000000ull;
        }
    }
    return sc_fault_cut(packet) || is_unlucky(packet) ? SC_FATE_LOST : fate;
}

/* Takes one of a number that processes share; 0: there is none left. */
static int take(uint32_t *number)
{
    uint32_t left = __atomic_load_n(number, __ATOMIC_RELAXED);

    while (left > 0) {
        if (__atomic_compare_exchange_n(number, &left, left - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return 1;
        }
    }
    return 0;
}

int sc_fault_slow(enum sc_verb verb)
{
    struct sc_verb_fault *fault = &sc.fabric->verb[verb];
    struct timespec       nap   = {fault->hang_ms / 1000, fault->hang_ms % 1000 * 1000000L};

    if (fault->times == 0 || take(&fault->skip) || !take(&fault->times)) {
        return 0;
    }
    nanosleep(&nap, NULL);
    return (int)fault->error;
}
