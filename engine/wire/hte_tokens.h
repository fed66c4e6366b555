/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_TOKENS_H_
#define HTE_TOKENS_H_

/* Numbers of operations that peers answer: index and generation. One that is over is not found any more, and its
 * number does not come again before its place was used 2^32 times. Of one thread only. */

#include <stddef.h>
#include <stdint.h>

#define HTE_TOKEN_NONE (~(uint64_t)0)

struct hte_op;

struct hte_token_slot {
    struct hte_op *op; /* NULL: free */
    uint32_t       generation, next_free;
};

struct hte_tokens {
    struct hte_token_slot *slots;
    uint32_t               count, first_free; /* count: none is free */
};

/* HTE_TOKEN_NONE: no memory. */
uint64_t hte_tokens_take(struct hte_tokens *tokens, struct hte_op *op);
void     hte_tokens_give_back(struct hte_tokens *tokens, uint64_t token);
void     hte_tokens_free(struct hte_tokens *tokens);

static inline struct hte_op *hte_tokens_find(const struct hte_tokens *tokens, uint64_t token)
{
    uint32_t index = (uint32_t)token;

    return index < tokens->count && tokens->slots[index].generation == (uint32_t)(token >> 32) ? tokens->slots[index].op
                                                                                               : NULL;
}

#endif
