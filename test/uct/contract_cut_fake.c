/* SPDX-License-Identifier: BSD-3-Clause */

/* Made-up hardware: rails a0 and a1 of tx, b0 and b1 of rx, on networks 0 and 1. */

#include "contract_cut.h"

#include "contract.h"
#include "fake_verbs.h"
#include "verbs/ha_rail.h"
#include "uct_ha.h"

/* Fast enough for a test, slow enough for a machine that is busy. */
static const char *const given[] = {
    "RAILS=a0:1+a1:1,b0:1+b1:1",
    "RCACHE=n",
    "TIMEOUT=10",
    "RETRY_COUNT=3",
    "RTO=400ms",
    "HEARTBEAT=10ms",
    "HEARTBEAT_MISSES=30",
    "DEAD_PEER=10s",
    "COOLDOWN=1ms",
    "COOLDOWN_MAX=1ms",
    "CONNECT_TIMEOUT=20s",
};

#define MAX_MSG (1u << 20) /* so that its limit can be tried */

static struct {
    struct uct_ha_stats before;
    unsigned            cuts;
    int                 net, cut; /* network that carries the work; rail that is down */
} cut;

static struct uct_ha_stats stats(void)
{
    struct uct_ha_stats now;

    (void)uct_ha_stats_get(&now, sizeof(now));
    return now;
}

void hardware_begin(void)
{
    static const char *const names[] = {"a0:1", "a1:1", "b0:1", "b1:1"};

    fake_begin(4711);
    for (int i = 0; i < 4; i++) {
        (void)fake_rail_add(names[i], (unsigned)i % 2, 1 + (unsigned)i / 2);
        fake_limits(i)->max_msg_size = MAX_MSG;
    }
    settings.transport = "ha_rc";
    settings.device[0] = names[0];
    settings.device[1] = names[2];
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        settings.setting[settings.settings++] = given[i];
    }
}

int hardware_end(void)
{
    return fake_end();
}

int cut_available(void)
{
    return !settings.calm;
}

static void wait_standby(void)
{
    struct patience wait = patience("a standby");

    while (stats().pairs < 2 || stats().standbys < stats().pairs) {
        progress_wait(&wait);
    }
}

/* Work is under way in one of three states: nothing of it executed; all executed, and nobody was told; some. */
void cut_arm(void)
{
    wait_standby();
    cut.before = stats();
    cut.cut    = cut.net + (cut.cuts % 4 < 2 ? 0 : 2); /* of tx or of rx */
    if (cut.cuts % 3 == 1) {
        fake_set(2 + cut.net, FAKE_LOSE_ACK_OUT, 1000);
    } else {
        for (int rail = cut.net; rail < 4; rail += 2) {
            fake_set(rail, FAKE_STALL, cut.cuts % 3 == 0 ? 1000 : 800);
        }
    }
}

void cut_strike(void)
{
    if (!planted("cut")) {
        fake_port(cut.cut, 0);
    }
    for (int rail = 0; rail < 4; rail++) {
        fake_set(rail, FAKE_STALL, 0);
        fake_set(rail, FAKE_LOSE_ACK_OUT, 0);
    }
    cut.cuts++;
}

void cut_moved(void)
{
    struct patience wait = patience("the endpoints to move");

    while (stats().failovers < cut.before.failovers + 2 && !planted("cut")) {
        progress_wait(&wait);
    }
    (void)expect(stats().failovers >= cut.before.failovers + 2, "no failover");
    cut.net = !cut.net;
}

void cut_over(void)
{
    cut_moved();
    (void)expect(stats().replayed + stats().retired > cut.before.replayed + cut.before.retired,
                 "the cut met no work under way");
}

void cut_repair(void)
{
    fake_port(cut.cut, 1);
    wait_standby();
}
