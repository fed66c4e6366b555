/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_cover.h"

const char *const sim_cover_name[SIM_COVER_LAST] = {
    "failovers", "operations retired by proof", "operations replayed", "partial writes replayed",
    "reads executed again", "fetching atomics in doubt", "messages held on the new lane",
    "closes that waited for messages", "packets executed while the fence settled",
    "packets executed after the sender was fenced", "double starts", "both lanes fenced at once",
    "false alarms", "suspicions acted on", "suspicions refused", "standbys that died",
    "failovers with a computing peer", "retries exhausted", "acknowledgements lost",
    "one-way losses", "ports down", "both rails cut", "connects that failed",
    "lanes fenced while connecting", "lanes abandoned before connecting", "generations skipped",
    "empty proofs", "packet numbers that wrapped", "lanes of generation 4 or more",
    "starts on slot 1", "fenced operations that waited", "control packets lost",
    "control packets repeated", "control packets reordered", "old control packets heard",
    "error ends", "peers killed", "endpoints canceled", "sides closed before their peer finished",
    "operations refused by the peer", "lanes replaced on a single rail",
    "worlds of many pairs", "worlds of three or four rails", "faults that struck several pairs at work",
    "pairs that a fault elsewhere left alone", "rails that lose control packets", "rails that are slow",
    "control packets later than their time", "hosts restarted", "ends because another process answered",
    "packets for another process", "pairs between the same users after a restart",
    "hosts cut off", "standbys cut during a failover", "lanes cut while connecting",
    "rails cut during a flush", "rails cut while a side closes", "rails cut during a failback",
    "flushes that waited for a failover", "failbacks", "slow lanes left", "rails held back",
    "lanes proved by count", "lanes proved by ledger", "operations in doubt",
    "operations executed without their mark",
    "queue pairs whose card was gone", "lanes without a proof", "messages counted without a proof",
    "messages executed and never taken", "operations executed by a card that nobody could stop",
    "drain markers given up", "lanes without a proof at either end", "standbys without a proof that were not empty",
    "pairs", "operations", "steps",
};
