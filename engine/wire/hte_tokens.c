/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_tokens.h"

#include <stdlib.h>

#define FIRST 64

static int grow(struct hte_tokens *tokens)
{
    uint32_t               i, count = tokens->count == 0 ? FIRST : 2 * tokens->count;
    struct hte_token_slot *slots = realloc(tokens->slots, count * sizeof(*slots));

    if (slots == NULL) {
        return -1;
    }
    for (i = tokens->count; i < count; ++i) {
        slots[i] = (struct hte_token_slot){.next_free = i + 1};
    }
    tokens->slots      = slots;
    tokens->first_free = tokens->count;
    tokens->count      = count;
    return 0;
}

uint64_t hte_tokens_take(struct hte_tokens *tokens, struct hte_op *op)
{
    struct hte_token_slot *slot;
    uint32_t               index;

    if (tokens->first_free == tokens->count && grow(tokens) != 0) {
        return HTE_TOKEN_NONE;
    }
    index              = tokens->first_free;
    slot               = &tokens->slots[index];
    slot->op           = op;
    tokens->first_free = slot->next_free;
    return (uint64_t)slot->generation << 32 | index;
}

void hte_tokens_give_back(struct hte_tokens *tokens, uint64_t token)
{
    struct hte_token_slot *slot = &tokens->slots[(uint32_t)token];

    slot->op = NULL;
    ++slot->generation;
    slot->next_free    = tokens->first_free;
    tokens->first_free = (uint32_t)token;
}

void hte_tokens_free(struct hte_tokens *tokens)
{
    free(tokens->slots);
}
