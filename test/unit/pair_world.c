/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair_world.h"

#include <string.h>

#include "core/ha_packet.h"

const struct ha_pair_config config = {.connect_timeout = 100000,
                                      .deadline        = 50000,
                                      .linger          = 50000,
                                      .standby_delay   = 2000,
                                      .cooldown        = 3000,
                                      .drain_timeout   = 4000,
                                      .rtx_min         = 1000,
                                      .rtx_max         = 8000};

#define MESSAGES 256

struct side side[2];

static struct message {
    int              to;
    uint32_t         want; /* an answer */
    struct ha_record record;
} wire[MESSAGES];
unsigned on_wire;
uint64_t now;
int      cut;
unsigned peer_answers;

static void settle(int x, const struct ha_action *action)
{
    struct ha_event event = {.kind = HA_EV_SETTLED, .slot = action->slot, .gen = action->gen};

    side[x].fenced++;
    if (side[x].stuck) {
        return;
    }
    event.proof    = side[x].no_proof ? HA_PROOF_NONE : side[x].kind ? side[x].kind : HA_PROOF_PSN;
    event.psn      = side[x].psn;
    event.received = side[x].received;
    give(x, event);
    event.kind = HA_EV_DRAINED;
    give(x, event);
}

void perform(int x, const struct ha_action *action)
{
    struct ha_event event = {.slot = action->slot, .gen = action->gen};

    switch (action->kind) {
    case HA_ACT_CREATE_QP:
        side[x].created++;
        event.kind        = HA_EV_QP_CREATED;
        event.qpn         = 100 + action->gen;
        event.mtu         = 1024;
        event.proof       = side[x].offer;
        event.ledger_addr = 0x1122334455667788ull + (uint64_t)x;
        event.ledger_key  = 0xaabbccddu;
        give(x, event);
        break;
    case HA_ACT_CONNECT_QP:
        side[x].marks = ha_pair_ledger(&side[x].pair, action->slot, &side[x].ledger_addr, &side[x].ledger_key);
        event.kind    = HA_EV_QP_CONNECTED;
        give(x, event);
        break;
    case HA_ACT_FENCE:
        settle(x, action);
        break;
    case HA_ACT_RESOLVE:
        side[x].peer = ha_pair_evidence(&side[x].pair, action->slot);
        event.kind   = HA_EV_RESOLVED;
        give(x, event);
        break;
    case HA_ACT_CHECK_CLOSE:
        event.kind     = HA_EV_DELIVERED;
        event.value    = action->value + side[x].value;
        event.proof    = side[x].kind ? side[x].kind : HA_PROOF_PSN;
        event.psn      = side[x].psn + (uint32_t)side[x].moves;
        event.received = side[x].received + side[x].received_later;
        give(x, event);
        break;
    case HA_ACT_SEND:
        side[x].sent++;
        if (!cut) {
            assert_true(on_wire < MESSAGES);
            wire[on_wire].to   = !x;
            wire[on_wire].want = action->value;
            ha_pair_snapshot(&side[x].pair, &wire[on_wire++].record);
        }
        break;
    case HA_ACT_DESTROY_QP:
        side[x].destroyed++;
        break;
    case HA_ACT_FAIL:
        side[x].failed++;
        side[x].fail = action->value;
        break;
    case HA_ACT_GONE:
        side[x].gone++;
        break;
    case HA_ACT_LANES:
        break;
    }
}

void give(int x, struct ha_event event)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              n = ha_pair_step(&side[x].pair, &event, now, actions);

    for (int i = 0; i < n; i++) {
        perform(x, &actions[i]);
    }
}

void run(int x)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              n;

    while ((n = ha_pair_run(&side[x].pair, HA_CTX_PROGRESS, now, actions)) >= 0) {
        for (int i = 0; i < n; i++) {
            perform(x, &actions[i]);
        }
    }
    assert_false(ha_pair_wants_progress(&side[x].pair, now));
}

/* Let `rounds` of 500 ns pass. */
void pass(int rounds)
{
    while (rounds-- > 0) {
        static struct message got[MESSAGES];
        unsigned              n = on_wire;

        for (int x = 0; x < 2; x++) {
            if (ha_pair_next_timer(&side[x].pair) <= now) {
                give(x, (struct ha_event){.kind = HA_EV_TIMER, .value = peer_answers});
            }
            run(x);
        }
        memcpy(got, wire, sizeof(got));
        on_wire -= n;
        memmove(wire, wire + n, on_wire * sizeof(wire[0]));
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(ha_packet_record_check(&side[got[i].to].pair, &got[i].record), 0);
            give(got[i].to, (struct ha_event){.kind = HA_EV_RECORD, .record = &got[i].record, .value = got[i].want});
        }
        now += 500;
    }
}

void rail(int x, int slot, int usable)
{
    give(x, (struct ha_event){.kind = HA_EV_RAIL, .slot = slot, .value = (uint32_t)usable});
}

void down(int x, int slot)
{
    give(x, (struct ha_event){
                .kind = HA_EV_LANE_DOWN, .slot = slot, .gen = side[x].pair.lane[slot].gen, .cause = HA_CAUSE_PORT});
}

int pair_setup(void **state)
{
    (void)state;
    memset(side, 0, sizeof(side));
    on_wire      = 0;
    now          = 1000;
    cut          = 0;
    peer_answers = 0;
    for (int x = 0; x < 2; x++) {
        ha_pair_init(&side[x].pair, &config, x == 0, 2);
        give(x, (struct ha_event){.kind = HA_EV_START});
        rail(x, 0, 1);
        rail(x, 1, 1);
    }
    return 0;
}

int pair_setup_connected(void **state)
{
    pair_setup(state);
    pass(20);
    for (int x = 0; x < 2; x++) {
        assert_int_equal(ha_pair_tx_slot(&side[x].pair), 0);
        assert_int_equal(ha_pair_rx_slot(&side[x].pair), 0);
        assert_int_equal(ha_pair_standby(&side[x].pair), 1);
    }
    return 0;
}

void expect_active(int slot, uint32_t epoch)
{
    for (int x = 0; x < 2; x++) {
        assert_int_equal(ha_pair_tx_slot(&side[x].pair), slot);
        assert_int_equal(ha_pair_rx_slot(&side[x].pair), slot);
        assert_int_equal(side[x].pair.epoch, epoch);
        assert_false(ha_pair_failed(&side[x].pair));
    }
}
