/* SPDX-License-Identifier: BSD-3-Clause */

/* The bounds of `make check`, and what they have to see together. */

#include <stdio.h>

#include "model.h"

uint64_t model_cover[MODEL_COVER_LAST];

const char *const model_cover_name[MODEL_COVER_LAST] = {
    "operations retired by proof",
    "replayed",
    "partly executed writes replayed",
    "reads executed again",
    "atomics in doubt",
    "messages held on the new lane",
    "packets executed while the fence settles",
    "packets executed after the sender was stopped",
    "both sides fence before hearing of each other",
    "both lanes fenced at once",
    "closes that wait for messages",
    "empty proofs",
    "generations skipped",
    "packet numbers that wrapped",
    "messages counted without a proof",
    "operations executed by a card that nobody could stop",
    "operations in doubt without a proof",
    "operations posted silently",
    "tails",
    "fenced operations held",
    "proofs by count",
    "proofs by ledger",
    "returns to rail 0",
    "lanes rebuilt on the only rail",
    "sides gone after a cut",
};

struct small {
    const char          *what;
    struct model_options options;
    int                  reach_goal;
};

/* What `make check` runs: some seconds each on a slow machine. */
static const struct small smalls[] = {
    {"one transition at a time, and L1",
     {.ops = {"S", "S"}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES},
     1},
    {"a write of two packets", {.ops = {"SW", "S"}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES}, 0},
    {"a fenced write behind a read and an atomic, completions polled late",
     {.ops = {"RAF", ""}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1, .late_sends = 1},
     0},
    {"while the standby is being built, and L1",
     {.ops = {"S", ""}, .cuts = 1, .channel = 1, .start = MODEL_START_ONE_LANE, .at_once = 1},
     1},
    {"two lanes lost, control alone",
     {.ops = {"", ""}, .alarms = 2, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1},
     0},
    {"messages seen late, back to rail 0",
     {.ops = {"SS", ""}, .alarms = 1, .channel = 1, .start = MODEL_START_MOVED, .at_once = 1, .late_recvs = 1},
     1},
    {"three operations against two, reduced",
     {.ops     = {"SWA", "AS"},
      .cuts    = 1,
      .channel = 1,
      .start   = MODEL_START_TWO_LANES,
      .at_once = 1,
      .no_echo = 1,
      .reduced = 1},
     0},
    {"silent operations and their tail, completions polled late, and L1",
     {.ops = {"sT", ""}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1, .late_sends = 1},
     1},
    {"silent writes fill the window of packet numbers, and L1",
     {.ops = {"wwwW", ""}, .alarms = 0, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1},
     1},
    {"a card without proof at either side, and L1",
     {.ops = {"SW", ""}, .cards = 1, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1},
     1},
    {"two cards without proof",
     {.ops = {"W", ""}, .cards = 2, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1, .no_echo = 1},
     0},
    {"proof by count, messages seen late",
     {.ops        = {"SW", "S"},
      .cuts       = 1,
      .channel    = 1,
      .start      = MODEL_START_TWO_LANES,
      .at_once    = 1,
      .no_echo    = 1,
      .late_recvs = 1,
      .proof      = HA_PROOF_COUNT},
     0},
    {"proof by ledger",
     {.ops     = {"SWW", ""},
      .cuts    = 1,
      .channel = 1,
      .start   = MODEL_START_TWO_LANES,
      .at_once = 1,
      .no_echo = 1,
      .proof   = HA_PROOF_LEDGER},
     0},
    {"work goes back to rail 0, and L1",
     {.ops = {"S", ""}, .channel = 1, .start = MODEL_START_MOVED, .at_once = 1, .failback = 1},
     1},
    {"one rail only, and L1",
     {.ops = {"SW", "S"}, .cuts = 1, .channel = 1, .start = MODEL_START_ONE_LANE, .at_once = 1, .single = 1},
     1},
    {"the users let go and a rail is cut, and L1",
     {.ops = {"S", ""}, .cuts = 1, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1, .closing = 1},
     1},
    {"the users let go",
     {.ops = {"S", ""}, .alarms = 1, .channel = 1, .start = MODEL_START_TWO_LANES, .at_once = 1, .closing = 1},
     1},
};

int model_run_smalls(void)
{
    unsigned n = sizeof(smalls) / sizeof(smalls[0]), passed = 0, failed = 0;
    uint64_t seen[MODEL_COVER_LAST] = {0};

    for (unsigned i = 0; i < n; i++) {
        struct model_limits limits = {.states = 50000000, .reach_goal = smalls[i].reach_goal};

        printf("--- %s\n", smalls[i].what);
        model_options      = smalls[i].options;
        model_options.luck = limits.reach_goal != 0;
        if (model_explore(&limits) == MODEL_COMPLETE) {
            passed++;
        } else {
            failed++;
        }
        for (int c = 0; c < MODEL_COVER_LAST; c++) {
            seen[c] += model_cover[c];
        }
    }
    for (int c = 0; c < MODEL_COVER_LAST; c++) {
        if (seen[c] == 0) {
            printf("FAILED: no run had '%s': nothing is proven about it\n", model_cover_name[c]);
            failed++;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
