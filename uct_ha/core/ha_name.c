/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_name.h"

#include "ha_state.h"

/* A value without a word does not compile. */
#define EACH_HAS_A_WORD(names, last) \
    _Static_assert(sizeof(names) / sizeof((names)[0]) == (last), "a word for each value, and no more")

const char *ha_cause_name(unsigned cause)
{
    static const char *const name[] = {
        "none",    "port",    "completion", "flush", "rto",  "heartbeat", "peer",
        "connect", "program", "failback",   "close", "slow", "not ready",
    };

    EACH_HAS_A_WORD(name, HA_CAUSE_LAST);
    return cause < HA_CAUSE_LAST ? name[cause] : "unknown";
}

const char *ha_fail_name(unsigned fail)
{
    static const char *const name[] = {
        "none",
        "no lane until the failover deadline",
        "no lane until the connect deadline",
        "proof outside of the posted window",
        "proof below what was acknowledged",
        "proof moved after the fence",
        "message count differs from the proof",
        "peer is more than one generation ahead",
        "ended by the peer",
        "the peer is silent on every rail",
        "ended by the user",
        "an operation without completion was refused",
        "the peer proves in another way than it offered",
        "ledger and message count of the proof contradict each other",
        "an operation without completion is in doubt",
        "the peer's connect options are refused",
        "a standby is required, and there is none",
    };

    EACH_HAS_A_WORD(name, HA_FAIL_LAST);
    return fail < HA_FAIL_LAST ? name[fail] : "unknown";
}

const char *ha_lane_status_name(unsigned st)
{
    static const char *const name[] = {"CONN", "READY", "FENCED", "RESOLVED", "CLOSED"};

    EACH_HAS_A_WORD(name, HA_LANE_CLOSED + 1);
    return st <= HA_LANE_CLOSED ? name[st] : "unknown";
}

const char *ha_proof_name(unsigned kind)
{
    static const char *const name[] = {"none", "empty", "psn", "count", "ledger"};

    EACH_HAS_A_WORD(name, HA_PROOF_LAST);
    return kind < HA_PROOF_LAST ? name[kind] : "unknown";
}
