/* SPDX-License-Identifier: BSD-3-Clause */

/* ha_explore: every interleaving of a small world around the failover core. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

int model_telling;

static const char usage[] =
    "usage: ha_explore [options]\n"
    "\n"
    "Explores every interleaving of two endpoints over two rails, built from the\n"
    "product's own failover core, and checks the invariants of docs/failover.md\n"
    "after every step.\n"
    "\n"
    "  -a OPS, -b OPS  operations of side a (the decider) and b, in posting order, at\n"
    "                  most 4 each: S send, W write of two packets, A fetching atomic,\n"
    "                  R read, F write behind a fence, - none. Default: SW and S.\n"
    "                  s, w: nobody waits for it, it may be posted silently; T, the last\n"
    "                  one: a tail, posted when nothing else would tell\n"
    "  -f N  rail cuts, 0..3 (1)             -x N  false alarms, 0..3 (0)\n"
    "  -y N  false suspicions, 0..3 (0)      -g N  deadlines or cancels, 0..2 (0)\n"
    "  -z N  cards that are gone, or give no proof, 0..2 (0)\n"
    "  -K P  proof that the cards give: psn (default), count (then a write consumes a\n"
    "        receive), ledger (then a packet of its own marks each write and atomic)\n"
    "  -B    work goes back to rail 0 when that one is well\n"
    "  -1    one rail only\n"
    "  -C N  control packets on the way per direction, 1..2 (1); 2: out of order\n"
    "  -s S  start with: nothing, one (lane, the standby is being built), two (lanes;\n"
    "        default), moved (second epoch, on rail 1), late (third epoch, and packets\n"
    "        of the first failover are still on the way)\n"
    "  -u    send completions are polled late\n"
    "  -c    received messages become visible late\n"
    "  -r    a context runs until nothing is left to do, as the product's glue does;\n"
    "        else one transition at a time\n"
    "  -E    control packets carry no echo: a side may send at any time (safety only)\n"
    "  -R    reduced: -r -E, and what cannot be told apart is explored once (safety only)\n"
    "  -n    packets of a cut lane never arrive\n"
    "  -P    cuts are seen as port events; a side rebuilds when its port is up again\n"
    "  -p    -P, and rail 0, once cut, never returns\n"
    "  -S    split: connecting takes time and may fail, the handler may come in\n"
    "        between resolving and telling\n"
    "  -d    without the run-time checks of the product: what do they prevent?\n"
    "  -i L  let violations of these invariants pass, to see what follows: I3,I10\n"
    "  -k    the users let go when they owe nothing; the goal is that both are gone\n"
    "  -l    also L1: from every state the goal (everything has ended, everything is\n"
    "        delivered, one lane in use and a standby ready; or both failed) can be\n"
    "        reached without more bad luck, and without the luck of late packets\n"
    "  -M N  stop after N states (50000000)  -t N  stop after N seconds of processor time (no limit)\n"
    "  -v    print every level\n"
    "\n"
    "Without -a ... -l: the small bounds of `make check`, all of them.\n"
    "Exit status: 0 no violation, 1 violation (with the steps to it), 2 stopped at a\n"
    "limit without violation, 3 wrong use.\n";

/* ---- telling ---- */

void model_tell(const char *format, ...)
{
    va_list args;

    if (!model_telling) {
        return;
    }
    fputs("          ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void show_lane(const struct model_side *side, int slot)
{
    static const char *const state[] = {"no QP", "INIT", "UP", "ERRING", "ERR"};
    const struct ha_lane    *lane    = &side->pair.lane[slot];
    const struct ha_view    *view    = &side->pair.view[slot];
    const struct model_qp   *qp      = &side->qp[slot];

    printf("        lane %d.%u %s (%s) epoch %u proof %u k %u; the peer is at %u %s proof %u k %u; "
           "posted %u acked %u polled %u; executed %u packets, received %u delivered %u\n",
           slot, lane->gen, ha_lane_status_name(lane->st), state[qp->state], lane->act, lane->rxpsn, lane->k, view->gen,
           ha_lane_status_name(view->st), view->rxpsn, view->k, qp->num_ops, qp->acked, qp->polled, qp->rx, qp->num_msg,
           qp->delivered);
}

void model_show(const struct model_world *w)
{
    for (int x = 0; x < 2; x++) {
        const struct model_side *side = &w->side[x];

        printf("      side %d: epoch %u, posts on %d, delivers from %d, operations executed %x "
               "ended %x delivered %x%s%s\n",
               x, side->pair.epoch, side->tx_slot, side->rx_slot, side->executed, side->ended, side->delivered,
               side->failed ? ", failed" : "", side->gone ? ", gone" : "");
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            show_lane(side, slot);
        }
    }
}

/* ---- options ---- */

static int wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static int wrong(const char *format, ...)
{
    va_list args;

    fputs("ha_explore: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(". Try --help.\n", stderr);
    exit(3);
}

static unsigned long number_of(int option, const char *text, unsigned long max)
{
    char         *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > max || *text == '-') {
        wrong("-%c '%s' is not a number from 0 to %lu", option, text, max);
    }
    return value;
}

static void set_ops(int x, int option, const char *text)
{
    if (strcmp(text, "-") == 0) {
        text = "";
    }
    if (strlen(text) > MODEL_OPS_MAX) {
        wrong("-%c '%s': at most %d operations", option, text, MODEL_OPS_MAX);
    }
    if (text[strspn(text, "SWARFsw")] != '\0' && strcmp(text + strspn(text, "SWARFsw"), "T") != 0) {
        wrong("-%c '%s': '%c' is none of S, W, A, R, F, s, w, and T at the end", option, text,
              text[strspn(text, "SWARFsw")]);
    }
    strcpy(model_options.ops[x], text);
}

static uint8_t start_of(const char *text)
{
    static const char *const names[] = {"nothing", "one", "two", "moved", "late"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            return (uint8_t)i;
        }
    }
    wrong("-s '%s' is none of nothing, one, two, moved, late", text);
}

static uint8_t proof_of(const char *text)
{
    if (strcmp(text, "count") == 0) {
        return HA_PROOF_COUNT;
    }
    if (strcmp(text, "ledger") == 0) {
        return HA_PROOF_LEDGER;
    }
    if (strcmp(text, "psn") != 0) {
        wrong("-K '%s' is none of psn, count, ledger", text);
    }
    return HA_PROOF_NONE;
}

/* "I3,I10" as bits; L1 is bit 0. */
static uint16_t invariants_of(const char *text)
{
    uint16_t set = 0;

    for (const char *p = text; *p != '\0'; p += *p == ',') {
        char         *end = 0;
        unsigned long n   = strtoul(p + 1, &end, 10);

        if (end == p + 1 || (*end != ',' && *end != '\0') ||
            !((*p == 'I' && n >= 1 && n <= 12) || (*p == 'L' && n == 1))) {
            wrong("-i '%s' is not a list like I3,I10,L1", text);
        }
        set |= (uint16_t)(1u << (*p == 'L' ? 0 : n));
        p = end;
    }
    return set;
}

static int set_flag(struct model_options *o, struct model_limits *limits, int option)
{
    switch (option) {
    case 'u':
        o->late_sends = 1;
        break;
    case 'c':
        o->late_recvs = 1;
        break;
    case 'r':
        o->at_once = 1;
        break;
    case 'E':
        o->no_echo = 1;
        break;
    case 'n':
        o->no_late = 1;
        break;
    case 'R':
        o->reduced = o->at_once = o->no_echo = 1;
        break;
    case 'P':
        o->ports = 1;
        break;
    case 'p':
        o->ports = o->for_ever = 1;
        break;
    case 'S':
        o->split = 1;
        break;
    case 'B':
        o->failback = 1;
        break;
    case '1':
        o->single = 1;
        break;
    case 'd':
        o->unchecked = 1;
        break;
    case 'k':
        o->closing = 1;
        break;
    case 'l':
        limits->reach_goal = o->luck = 1;
        break;
    case 'v':
        limits->verbose = 1;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        return 0;
    }
    return 1;
}

static void set_value(struct model_options *o, struct model_limits *limits, int option)
{
    switch (option) {
    case 'a':
        set_ops(0, option, optarg);
        break;
    case 'b':
        set_ops(1, option, optarg);
        break;
    case 'f':
        o->cuts = (uint8_t)number_of(option, optarg, 3);
        break;
    case 'x':
        o->alarms = (uint8_t)number_of(option, optarg, 3);
        break;
    case 'y':
        o->suspicions = (uint8_t)number_of(option, optarg, 3);
        break;
    case 'g':
        o->giveups = (uint8_t)number_of(option, optarg, 2);
        break;
    case 'z':
        o->cards = (uint8_t)number_of(option, optarg, 2);
        break;
    case 'C':
        o->channel = (uint8_t)number_of(option, optarg, MODEL_NET_MAX);
        break;
    case 's':
        o->start = start_of(optarg);
        break;
    case 'K':
        o->proof = proof_of(optarg);
        break;
    case 'M':
        limits->states = number_of(option, optarg, UINT32_MAX - 1);
        break;
    case 't':
        limits->seconds = (unsigned)number_of(option, optarg, 1000000);
        break;
    case 'i':
        o->ignored = invariants_of(optarg);
        break;
    default:
        wrong("there is no such option, or its value is missing");
    }
}

static void check_options(struct model_options *o, const struct model_limits *limits)
{
    if (o->channel == 0) {
        wrong("-C 0: without control packets nothing can be agreed upon");
    }
    if (o->start == MODEL_START_LATE) {
        o->channel = 2;
    }
    if (o->proof == HA_PROOF_COUNT && (strchr(o->ops[0], 'A') != NULL || strchr(o->ops[1], 'A') != NULL)) {
        wrong("-K count: atomics by the card are not offered to who counts");
    }
    if (o->single && (o->start >= MODEL_START_MOVED || o->failback || o->ports)) {
        wrong("-1 goes with none of -s moved, -s late, -B, -P and -p");
    }
    if (o->reduced && (o->no_late || o->ports || o->split || o->cards)) {
        wrong("-R goes with none of -n, -P, -p, -S and -z: it rests on packets of a cut lane being late");
    }
    if (o->no_echo && (o->closing || limits->reach_goal)) {
        wrong("-E goes with neither -k nor -l: closing and liveness rest on the echo");
    }
}

static void parse(int argc, char **argv, struct model_limits *limits)
{
    struct model_options *o = &model_options;
    int                   option;

    while ((option = getopt(argc, argv, "a:b:f:x:y:g:z:C:s:K:M:t:i:ucrEnPpRSdklvhB1")) != -1) {
        if (!set_flag(o, limits, option)) {
            set_value(o, limits, option);
        }
    }
    if (optind != argc) {
        wrong("'%s' is not an option", argv[optind]);
    }
    check_options(o, limits);
}

/* ---- running ---- */

static const char *describe(char *buf, size_t size)
{
    static const char *const    start[] = {"nothing", "one lane", "two lanes", "second epoch", "third epoch"};
    const struct model_options *o       = &model_options;

    snprintf(
        buf, size,
        "%s|%s from %s, %u cuts, %u alarms, %u suspicions, %u give-ups, %u cards, channel %u%s%s%s%s%s%s%s%s%s%s%s%s%s",
        o->ops[0], o->ops[1], start[o->start], o->cuts, o->alarms, o->suspicions, o->giveups, o->cards, o->channel,
        o->late_sends ? ", late sends" : "", o->late_recvs ? ", late receives" : "",
        o->at_once ? ", contexts run through" : "", o->no_echo ? ", no echo" : "",
        o->no_late ? ", no late packets" : "",
        o->for_ever ? ", rail 0 never returns"
        : o->ports  ? ", port events"
                    : "",
        o->split ? ", split" : "", o->closing ? ", users let go" : "", o->reduced ? ", reduced" : "",
        o->unchecked ? ", without run-time checks" : "",
        o->proof == HA_PROOF_COUNT    ? ", proof by count"
        : o->proof == HA_PROOF_LEDGER ? ", proof by ledger"
                                      : "",
        o->failback ? ", failback" : "", o->single ? ", one rail" : "");
    return buf;
}

static void print_cover(void)
{
    const char *separator = "seen: ";

    for (int i = 0; i < MODEL_COVER_LAST; i++) {
        if (model_cover[i] != 0) {
            printf("%s%s %llu", separator, model_cover_name[i], (unsigned long long)model_cover[i]);
            separator = "; ";
        }
    }
    puts("");
}

enum model_outcome model_explore(const struct model_limits *limits)
{
    static const char *const outcome_name[] = {"complete, no violation", "VIOLATION",
                                               "STOPPED at the limit, no violation so far"};
    struct model_result      result;
    struct timespec          begin, end;
    enum model_outcome       outcome;
    char                     text[512];
    double                   seconds;

    printf("%s%s\n", describe(text, sizeof(text)), limits->reach_goal ? ", L1" : "");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    outcome = model_search(limits, &result);
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%s: %llu states, %llu transitions, depth %u, %llu goal states, generation %u, epoch %u, "
           "%.1f s, %llu MiB, two states with one hash: probability %.0e\n",
           outcome_name[outcome], (unsigned long long)result.states, (unsigned long long)result.transitions,
           result.depth, (unsigned long long)result.goals, result.max_gen, result.max_epoch, seconds,
           (unsigned long long)(result.bytes >> 20),
           (double)result.states * (double)result.states / 2 / 18446744073709551616.0);
    print_cover();
    if (outcome == MODEL_VIOLATED) {
        printf("after %u steps: %s\n", result.steps, result.violation);
    }
    fflush(stdout);
    return outcome;
}

int main(int argc, char **argv)
{
    struct model_limits limits = {.states = 50000000};

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc == 1) {
        return model_run_smalls();
    }
    parse(argc, argv, &limits);
    return (int)model_explore(&limits);
}
