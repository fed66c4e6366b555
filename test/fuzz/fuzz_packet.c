/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A control packet, and what it does to the state of a pair. Input: one byte
 * that chooses how far the pair has come, one that chooses its side, then the
 * datagram; or, if bit 1 of that byte is set, changes of the genuine one: two
 * bytes where, one byte what. A stranger's packet may end the pair; it must not
 * break the rules that the core keeps for itself, nor make it say what is not
 * well-formed.
 */

#include "fuzz.h"

#include "core/ha_packet.h"

#include <string.h>

const char     fuzz_name[] = "packet";
const unsigned fuzz_runs   = 20000;

#define NOW     1000000ull
#define PSN     0xfffff0u
#define STAGES  24 /* after so many exchanges the pair has failed over and back */
#define AT_ONCE 64 /* more transitions in a row are endless */

struct side {
    struct ha_pair pair;
    uint64_t       rank[HA_SLOTS];
    uint32_t       epoch;
};

static const struct ha_pair_config config = {.connect_timeout = 1ull << 40,
                                             .deadline        = 1ull << 40,
                                             .linger          = 1ull << 40,
                                             .drain_timeout   = 1,
                                             .rtx_min         = 1,
                                             .rtx_max         = 1};

/* ---- a glue that does at once what the core asks for ------------------------------ */

static void give(struct side *side, const struct ha_event *event);

static void answer(struct side *side, const struct ha_action *action)
{
    struct ha_event event = {.slot = action->slot, .gen = action->gen};

    switch (action->kind) {
    case HA_ACT_CREATE_QP:
        event.kind = HA_EV_QP_CREATED;
        event.qpn  = 100 + action->gen;
        event.psn  = PSN;
        event.mtu  = 1024;
        break;
    case HA_ACT_CONNECT_QP:
        event.kind = HA_EV_QP_CONNECTED;
        break;
    case HA_ACT_FENCE:
        event.kind  = HA_EV_SETTLED;
        event.proof = HA_PROOF_PSN;
        event.psn   = PSN;
        give(side, &event);
        event.kind = HA_EV_DRAINED;
        break;
    case HA_ACT_RESOLVE:
        event.kind = HA_EV_RESOLVED;
        break;
    case HA_ACT_CHECK_CLOSE:
        if (action->value != 0) {
            return; /* no message ever comes */
        }
        event.kind  = HA_EV_DELIVERED;
        event.proof = HA_PROOF_PSN;
        event.psn   = PSN;
        break;
    default:
        return;
    }
    give(side, &event);
}

static void perform(struct side *side, const struct ha_action *actions, int n)
{
    fuzz_expect(n < HA_ACTIONS_MAX, "more actions than a step may emit: some may be missing");
    for (int i = 0; i < n; i++) {
        answer(side, &actions[i]);
    }
}

static void give(struct side *side, const struct ha_event *event)
{
    struct ha_action actions[HA_ACTIONS_MAX];

    perform(side, actions, ha_pair_step(&side->pair, event, NOW, actions));
}

static void run(struct side *side)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              n, rounds = 0;

    while ((n = ha_pair_run(&side->pair, HA_CTX_PROGRESS, NOW, actions)) >= 0) {
        fuzz_expect(rounds++ < AT_ONCE, "the core never comes to rest");
        perform(side, actions, n);
    }
}

static void hear(struct side *side, const struct ha_record *record)
{
    struct ha_event event = {.kind = HA_EV_RECORD, .record = record};

    give(side, &event);
    run(side);
}

/* ---- what must be true of a pair, whatever it has heard --------------------------- */

static void check_lanes(struct side *side)
{
    const struct ha_pair *pair = &side->pair;

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        uint64_t rank = (uint64_t)pair->lane[slot].gen << 8 | pair->lane[slot].st;

        fuzz_expect(rank >= side->rank[slot], "a lane moves back");
        fuzz_expect(pair->lane[slot].act <= pair->epoch, "a lane serves an epoch that has not begun");
        side->rank[slot] = rank;
    }
    fuzz_expect(pair->lane[0].act == 0 || pair->lane[0].act != pair->lane[1].act, "two lanes serve one epoch");
    fuzz_expect(pair->epoch >= side->epoch, "the epoch moves back");
    side->epoch = pair->epoch;
}

/* Our own packets are well-formed, and our peer would look at them. */
static void check_words(const struct side *side)
{
    struct ha_packet_header header = {.type = HA_PACKET_STATE, .count = 1, .number = 1};
    struct ha_packet_record record = {.slots = HA_SLOTS, .dst_ep = 1}, again;
    uint8_t                 bytes[HA_PACKET_MTU];
    size_t                  length;

    ha_pair_snapshot(&side->pair, &record.state);
    length = ha_packet_encode_header(bytes, &header);
    length = ha_packet_encode_record(bytes, length, &record) + HA_SEAL_LEN;
    fuzz_expect(ha_packet_decode_record(bytes, length, 0, &again) == 0, "we say what is malformed");
    fuzz_expect(memcmp(&record.state, &again.state, sizeof(again.state)) == 0, "what we say is not what is heard");
}

static void check(struct side *side)
{
    int tx = ha_pair_tx_slot(&side->pair), rx = ha_pair_rx_slot(&side->pair);

    check_lanes(side);
    check_words(side);
    fuzz_expect(tx == HA_NO_SLOT || side->pair.lane[tx].q == HA_QP_UP, "posts on a lane that is down");
    fuzz_expect(!ha_pair_failed(&side->pair) || (tx == HA_NO_SLOT && rx == HA_NO_SLOT),
                "a pair that has failed goes on");
    (void)ha_pair_next_timer(&side->pair);
}

/* ---- how far the pair has come ------------------------------------------------------ */

static void begin(struct side *side, int decider)
{
    struct ha_event event = {.kind = HA_EV_START, .value = 1};

    memset(side, 0, sizeof(*side));
    ha_pair_init(&side->pair, &config, decider, HA_SLOTS);
    give(side, &event);
    event.kind = HA_EV_RAIL;
    for (event.slot = 0; event.slot < HA_SLOTS; event.slot++) {
        give(side, &event);
    }
    run(side);
}

/* Two sides talk; in the middle each loses a lane. Every stage is kept. */
static void live_through(struct side stages[STAGES][2])
{
    struct side      side[2];
    struct ha_record record;

    begin(&side[0], 1);
    begin(&side[1], 0);
    for (unsigned i = 0; i < STAGES; i++) {
        struct side    *to = &side[i & 1], *from = &side[!(i & 1)];
        struct ha_event event = {.kind = HA_EV_LANE_DOWN, .cause = HA_CAUSE_PORT};

        check(&side[0]);
        check(&side[1]);
        memcpy(stages[i], side, sizeof(side));
        ha_pair_snapshot(&from->pair, &record);
        fuzz_expect(ha_packet_record_check(&to->pair, &record) == 0, "a genuine record is refused");
        hear(to, &record);
        if (i == 8 || i == 13) {
            event.slot = i == 13;
            event.gen  = to->pair.lane[event.slot].gen;
            give(to, &event);
            run(to);
        }
    }
}

static void come_to(struct side side[2], unsigned stage)
{
    static struct side stages[STAGES][2];
    static int         lived;

    if (!lived) {
        live_through(stages);
    }
    lived = 1;
    memcpy(side, stages[stage], sizeof(stages[stage]));
}

static void take(const uint8_t *data, size_t size, unsigned count, struct side *side)
{
    struct ha_packet_record record;
    uint8_t                 again[HA_PACKET_MTU];

    for (unsigned i = 0; i < count; i++) {
        size_t at = HA_PACKET_HEADER_LEN + (size_t)i * HA_PACKET_RECORD_LEN;

        if (ha_packet_decode_record(data, size, i, &record) != 0) {
            return;
        }
        ha_packet_encode_record(again, at, &record);
        fuzz_expect(memcmp(again + at, data + at, HA_PACKET_RECORD_LEN) == 0, "a record is not what its bytes say");
        if (ha_packet_record_check(&side->pair, &record.state) != 0) {
            continue;
        }
        hear(side, &record.state);
        check(side);
    }
}

/* What the peer would say, with some bytes changed. */
static size_t disguise(const uint8_t *data, size_t size, const struct side *peer, uint8_t *packet)
{
    struct ha_packet_header header = {.type = HA_PACKET_STATE, .count = 1, .number = 1};
    struct ha_packet_record record = {.slots = HA_SLOTS};
    struct ha_secret        key    = {{0}};
    size_t                  length = ha_packet_encode_header(packet, &header);

    ha_pair_snapshot(&peer->pair, &record.state);
    length = ha_packet_encode_record(packet, length, &record);
    length = ha_seal_add(&key, packet, length);
    for (; size >= 3; data += 3, size -= 3) {
        packet[(data[0] << 8 | data[1]) % length] = data[2];
    }
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ha_packet_header header;
    uint8_t                 packet[HA_PACKET_MTU], again[HA_PACKET_MTU];
    struct side             side[2];
    int                     x;

    if (size < 2 || size - 2 > sizeof(packet)) {
        return 0;
    }
    come_to(side, data[0] % STAGES);
    x = data[1] & 1;
    size -= 2;
    if (data[1] & 2) {
        size = disguise(data + 2, size, &side[!x], packet);
    } else {
        memcpy(packet, data + 2, size);
    }
    if (ha_packet_decode_header(packet, size, &header) != 0) {
        return 0;
    }
    ha_packet_encode_header(again, &header);
    fuzz_expect(memcmp(again, packet, HA_PACKET_HEADER_LEN) == 0, "a header is not what its bytes say");
    take(packet, size, header.count, &side[x]);
    return 0;
}
