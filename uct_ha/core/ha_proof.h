/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PROOF_H_
#define HA_PROOF_H_

/*
 * What the owner of a queue pair can say about it after it was fenced: which
 * of the peer's operations were executed there. The kind is the responder's
 * choice (its device decides what it can prove), offered when the lane is
 * built and kept for its generation, because the requester counts accordingly.
 *
 *          decides                                      in doubt, because it has no mark
 * PSN      everything, packet by packet                 nothing
 * COUNT    what consumes a receive, one by one, and     an operation that consumes none, behind the
 *          everything before the last one received      last one received and before the first one not
 * LEDGER   as COUNT; and what has its mark in the       one: the first behind the last mark or
 *          ledger, and everything before it             message found
 * NONE     nothing of the device: messages count that   every operation but messages and READs
 *          its owner's software has taken, and it       behind the last message that was counted
 *          takes no more
 *
 * The answer of a READ or of a fetching atomic is another matter: that it was
 * executed does not bring its data.
 */

#include <stdint.h>

enum ha_proof {
    HA_PROOF_NONE,   /* the device says nothing; received: what was polled, and no more is taken */
    HA_PROOF_EMPTY,  /* it never accepted a packet */
    HA_PROOF_PSN,    /* word: the next packet number it expects */
    HA_PROOF_COUNT,  /* received: receives that succeeded, all of them polled */
    HA_PROOF_LEDGER, /* word: number behind the last ledger mark found; received: as above */
    HA_PROOF_LAST
};

struct ha_evidence {
    uint32_t word;
    uint32_t received;
    uint8_t  kind;
};

static inline int ha_proof_has_word(unsigned kind)
{
    return kind == HA_PROOF_PSN || kind == HA_PROOF_LEDGER;
}

static inline int ha_proof_has_count(unsigned kind)
{
    return kind == HA_PROOF_COUNT || kind == HA_PROOF_LEDGER || kind == HA_PROOF_NONE;
}

#endif
