/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_WIRE_H_
#define SC_WIRE_H_

/* What one port sends to another. */

#include <stdint.h>

#define SC_PSN_MASK 0xffffffu
#define SC_MTU_MAX  4096u

enum sc_op {
    SC_OP_SEND,
    SC_OP_WRITE,
    SC_OP_READ,
    SC_OP_FETCH_ADD,
    SC_OP_CMP_SWAP, /* requests */
    SC_OP_ACK,
    SC_OP_READ_RESP,
    SC_OP_ATOMIC_RESP, /* answers */
    SC_OP_DATAGRAM,
};

enum sc_packet_flag {
    SC_FIRST     = 1,
    SC_LAST      = 2,
    SC_IMM       = 4,
    SC_SOLICITED = 8,
    SC_ACK_REQ   = 16,
    SC_GRH       = 32,
};

enum sc_syndrome {
    SC_SYN_ACK,
    SC_SYN_RNR,
    SC_SYN_SEQUENCE,
    SC_SYN_INVALID,
    SC_SYN_ACCESS,
    SC_SYN_FAILED,
};

struct sc_packet {
    uint32_t bytes; /* of payload, which follows */
    uint8_t  op, flags;
    uint8_t  syndrome, timer; /* of an acknowledgement; RNR timer */
    uint16_t sport, dport;    /* places in the fabric's table of ports */
    uint32_t src_qpn, dst_qpn;
    uint32_t psn;
    uint32_t imm;
    uint32_t rkey; /* Q_Key of a datagram */
    uint64_t raddr;
    uint64_t length;        /* of the whole message */
    uint64_t operand, swap; /* of atomics; the old value in their answer */
};

_Static_assert(sizeof(struct sc_packet) == 64, "one cache line");

/* a - b, as far as 24 bits tell. */
static inline int32_t sc_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline int sc_op_is_answer(uint8_t op)
{
    return op == SC_OP_ACK || op == SC_OP_READ_RESP || op == SC_OP_ATOMIC_RESP;
}

#endif
