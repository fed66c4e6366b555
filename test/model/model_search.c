/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Breadth first through every state that can be reached. States are told apart
 * by a 64-bit hash of their canonical bytes; the bytes themselves are kept for
 * the present level and the next one only. For a counter-example the steps from
 * the start are kept for every state and run again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

/* ---- memory ---- */

static void *grow(void *memory, uint64_t bytes)
{
    memory = realloc(memory, bytes);
    if (memory == 0) {
        fprintf(stderr, "ha_explore: no memory for %llu MiB: choose smaller bounds or a lower -M\n",
                (unsigned long long)(bytes >> 20));
        exit(3);
    }
    return memory;
}

/* Packed states one behind the other. */
struct level {
    uint8_t *bytes;
    uint64_t used, room, count;
};

static void level_push(struct level *level, const uint8_t *state, unsigned length)
{
    if (level->used + MODEL_BYTES_MAX + 1 > level->room) {
        level->room  = level->room * 3 / 2 + 65536;
        level->bytes = grow(level->bytes, level->room);
    }
    level->bytes[level->used] = (uint8_t)(length / 8);
    memcpy(level->bytes + level->used + 1, state, length);
    level->used += length + 1;
    level->count++;
}

struct search {
    const struct model_limits *limits;
    struct model_result       *result;
    struct level               now, next;
    /* hash table: open addressing; 0 = free */
    uint64_t *hash;
    uint32_t *index; /* only to check L1 */
    uint64_t  slots, count;
    /* for each state, in order of discovery: where it came from */
    uint32_t    *parent;
    model_label *label;
    uint64_t     room;
    /* steps without luck, only to check L1: those of state i begin at first[i] */
    uint32_t *edge;
    uint64_t *first;
    uint64_t  edges, edge_room;
    uint8_t  *good;
};

static uint64_t hash_of(const uint8_t *state, unsigned length)
{
    uint64_t h = 0x9e3779b97f4a7c15ull ^ length, word;

    for (unsigned i = 0; i < length; i += 8) {
        memcpy(&word, state + i, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdull;
        h = (h ^ (h >> 32)) * 0xc4ceb9fe1a85ec53ull;
        h ^= h >> 29;
    }
    return h != 0 ? h : 1;
}

static uint64_t find(const struct search *s, uint64_t hash)
{
    uint64_t at = hash & (s->slots - 1);

    while (s->hash[at] != 0 && s->hash[at] != hash) {
        at = (at + 1) & (s->slots - 1);
    }
    return at;
}

static void enlarge_table(struct search *s)
{
    uint64_t *hash = s->hash, slots = s->slots;
    uint32_t *index = s->index;

    s->slots = slots ? slots * 2 : 1 << 16;
    s->hash  = grow(0, s->slots * sizeof(*s->hash));
    memset(s->hash, 0, s->slots * sizeof(*s->hash));
    if (s->limits->reach_goal) {
        s->index = grow(0, s->slots * sizeof(*s->index));
    }
    for (uint64_t i = 0; i < slots; i++) {
        if (hash[i] == 0) {
            continue;
        }
        uint64_t at = find(s, hash[i]);

        s->hash[at] = hash[i];
        if (s->index != 0) {
            s->index[at] = index[i];
        }
    }
    free(hash);
    free(index);
}

static void enlarge_states(struct search *s)
{
    s->room   = s->room * 2 + 65536;
    s->parent = grow(s->parent, s->room * sizeof(*s->parent));
    s->label  = grow(s->label, s->room * sizeof(*s->label));
    if (s->limits->reach_goal) {
        s->first = grow(s->first, (s->room + 1) * sizeof(*s->first));
        s->good  = grow(s->good, s->room);
    }
}

/* Returns the number of the state; *fresh tells whether it was new. */
static uint64_t insert(struct search *s, const uint8_t *state, unsigned length, uint64_t parent, model_label label,
                       int *fresh)
{
    uint64_t hash = hash_of(state, length), at;

    if (s->count * 5 >= s->slots * 3) {
        enlarge_table(s);
    }
    at     = find(s, hash);
    *fresh = s->hash[at] == 0;
    if (!*fresh) {
        return s->index != 0 ? s->index[at] : 0;
    }
    if (s->count == s->room) {
        enlarge_states(s);
    }
    s->hash[at] = hash;
    if (s->index != 0) {
        s->index[at] = (uint32_t)s->count;
    }
    s->parent[s->count] = (uint32_t)parent;
    s->label[s->count]  = label;
    level_push(&s->next, state, length);
    return s->count++;
}

static void add_edge(struct search *s, uint64_t to)
{
    if (s->edges == s->edge_room) {
        s->edge_room = s->edge_room * 3 / 2 + 65536;
        s->edge      = grow(s->edge, s->edge_room * sizeof(*s->edge));
    }
    s->edge[s->edges++] = (uint32_t)to;
}

/* ---- the counter-example ---- */

/* Runs the steps that led to state `i` again, and then `last`. */
static void tell_story(struct search *s, uint64_t i, model_label last)
{
    struct model_world w;
    uint8_t            state[MODEL_BYTES_MAX];
    model_label       *steps = grow(0, (s->count + 1) * sizeof(*steps));
    unsigned           n     = 0;
    char               text[80];

    if (last != MODEL_NO_LABEL) {
        steps[n++] = last;
    }
    for (; i != 0; i = s->parent[i]) {
        steps[n++] = s->label[i];
    }
    s->result->steps = n;
    model_start(&w);
    model_pack(&w, state); /* the order of packets on the way, as the search has seen it */
    model_unpack(&w, state);
    model_show(&w);
    for (unsigned step = 1; n-- > 0; step++) {
        struct model_world before;

        model_copy(&before, &w);
        printf("%4u  %s\n", step, model_label_text(steps[n], text, sizeof(text)));
        model_telling = 1;
        model_happen(&w, steps[n]);
        model_telling = 0;
        model_oracle_step(&before, &w);
        if (w.violation == 0) {
            model_pack(&w, state);
            model_unpack(&w, state);
        }
    }
    model_show(&w);
    free(steps);
}

static enum model_outcome violated(struct search *s, const char *what, uint64_t i, model_label last)
{
    s->result->violation = what;
    printf("VIOLATION: %s\n", what);
    tell_story(s, i, last);
    return MODEL_VIOLATED;
}

/* ---- searching ---- */

/* Both sides stopped the lane of their own accord; both lanes are going at once. */
static void note_fences(const struct model_world *w)
{
    unsigned fenced = 0;

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_lane *a = &w->side[0].pair.lane[slot], *b = &w->side[1].pair.lane[slot];
        int unheard = w->side[0].pair.view[slot].st < HA_LANE_FENCED && w->side[1].pair.view[slot].st < HA_LANE_FENCED;

        model_cover[MODEL_COVER_DOUBLE_START] += a->gen == b->gen && unheard && a->st == HA_LANE_FENCED &&
                                                 b->st == HA_LANE_FENCED;
        fenced += a->st == HA_LANE_FENCED || b->st == HA_LANE_FENCED;
        model_cover[MODEL_COVER_SKIPPED] += (a->gen != 0 && a->qpn == 0) || (b->gen != 0 && b->qpn == 0);
    }
    model_cover[MODEL_COVER_BOTH_LANES] += fenced == HA_SLOTS;
}

static void note_extremes(struct search *s, const struct model_world *w)
{
    note_fences(w);
    for (int x = 0; x < 2; x++) {
        const struct ha_pair *pair = &w->side[x].pair;

        if (pair->epoch > s->result->max_epoch) {
            s->result->max_epoch = pair->epoch;
        }
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            if (pair->lane[slot].gen > s->result->max_gen) {
                s->result->max_gen = pair->lane[slot].gen;
            }
        }
    }
}

/* Everything that may happen in state `i`. */
static enum model_outcome expand(struct search *s, uint64_t i, const uint8_t *state)
{
    struct model_world from, to;
    uint8_t            packed[MODEL_BYTES_MAX];
    int                alive = 0, used = 1, quiet, fresh;
    unsigned           length;

    model_unpack(&from, state);
    note_extremes(s, &from);
    if (s->limits->reach_goal) {
        s->first[i] = s->edges;
        s->good[i]  = (uint8_t)model_goal(&from);
    }
    s->result->goals += (uint64_t)model_goal(&from);
    quiet = model_options.reduced && model_reduce_is_quiet(&from);
    for (model_label label = model_next_label(MODEL_NO_LABEL); label != MODEL_NO_LABEL;
         label             = model_next_label(label)) {
        uint64_t child;

        if (used) {
            model_copy(&to, &from);
        }
        used = model_happen(&to, label);
        if (!used) {
            continue;
        }
        model_oracle_step(&from, &to);
        length = model_pack(&to, packed);
        if (to.violation != 0) {
            return violated(s, to.violation, i, label);
        }
        if (memcmp(packed, state, length) == 0) {
            continue; /* nothing has changed */
        }
        s->result->transitions++;
        if (quiet && model_is_data(label)) {
            (void)insert(s, packed, length, i, label, &fresh);
            return MODEL_COMPLETE; /* the others need not be tried */
        }
        child = insert(s, packed, length, i, label, &fresh);
        if (model_is_luck(label)) {
            continue;
        }
        alive = 1;
        if (s->limits->reach_goal) {
            add_edge(s, child);
        }
    }
    if (!alive && !model_goal(&from)) {
        return violated(s, "L1 nothing can happen any more, and the goal is not reached", i, MODEL_NO_LABEL);
    }
    return MODEL_COMPLETE;
}

/* From which states can the goal be reached without any luck? */
static enum model_outcome check_goal_reachable(struct search *s)
{
    int more = 1;

    s->first[s->count] = s->edges;
    while (more) {
        more = 0;
        for (uint64_t i = s->count; i-- > 0;) {
            for (uint64_t e = s->first[i]; !s->good[i] && e < s->first[i + 1]; e++) {
                more |= s->good[i] = s->good[s->edge[e]];
            }
        }
    }
    for (uint64_t i = 0; i < s->count; i++) {
        if (!s->good[i]) {
            return violated(s, "L1 the goal cannot be reached any more", i, MODEL_NO_LABEL);
        }
    }
    return MODEL_COMPLETE;
}

static int over_limit(const struct search *s)
{
    return s->count >= s->limits->states ||
           (s->limits->seconds != 0 && clock() / CLOCKS_PER_SEC >= (clock_t)s->limits->seconds);
}

static enum model_outcome search_levels(struct search *s)
{
    uint8_t  state[MODEL_BYTES_MAX];
    uint64_t i = 0;

    while (s->next.count != 0) {
        struct level swap = s->now;
        uint64_t     at   = 0;

        s->now        = s->next;
        s->next       = swap;
        s->next.used  = 0;
        s->next.count = 0;
        if (s->limits->verbose) {
            printf("depth %u: %llu states\n", s->result->depth, (unsigned long long)s->now.count);
        }
        for (uint64_t n = 0; n < s->now.count; n++, i++) {
            unsigned length = s->now.bytes[at] * 8u;

            if ((n & 1023) == 0 && over_limit(s)) {
                return MODEL_STOPPED;
            }
            memset(state, 0, sizeof(state));
            memcpy(state, s->now.bytes + at + 1, length);
            at += length + 1;
            if (expand(s, i, state) != MODEL_COMPLETE) {
                return MODEL_VIOLATED;
            }
        }
        s->result->depth += s->next.count != 0;
    }
    return s->limits->reach_goal ? check_goal_reachable(s) : MODEL_COMPLETE;
}

enum model_outcome model_search(const struct model_limits *limits, struct model_result *result)
{
    struct search      s = {.limits = limits, .result = result};
    enum model_outcome outcome;
    uint8_t            state[MODEL_BYTES_MAX];
    struct model_world w;
    int                fresh;

    memset(result, 0, sizeof(*result));
    memset(model_cover, 0, sizeof(model_cover));
    model_start(&w);
    insert(&s, state, model_pack(&w, state), 0, MODEL_NO_LABEL, &fresh);
    if (w.violation != 0) {
        outcome = violated(&s, w.violation, 0, MODEL_NO_LABEL);
    } else {
        outcome = search_levels(&s);
    }
    result->states = s.count;
    result->bytes  = s.slots * (limits->reach_goal ? 12 : 8) + s.room * 6 + s.now.room + s.next.room +
                    (limits->reach_goal ? s.room * 9 + s.edge_room * 4 : 0);
    free(s.now.bytes);
    free(s.next.bytes);
    free(s.hash);
    free(s.index);
    free(s.parent);
    free(s.label);
    free(s.edge);
    free(s.first);
    free(s.good);
    return outcome;
}
