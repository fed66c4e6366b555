/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_piece.h"

#include "engine/include/hte.h"

void hte_piece_init(struct hte_piece_state *piece, uint64_t length)
{
    *piece = (struct hte_piece_state){
        .left = length,
        .step = HTE_PIECE_WAITING,
        .code = HTE_COMPLETED,
    };
}

void hte_piece_cut(struct hte_piece_state *piece, uint64_t length)
{
    piece->step = HTE_PIECE_RUNNING;
    piece->left -= length;
    ++piece->out;
}

static bool end_if_over(struct hte_piece_state *piece)
{
    bool is_stopped = piece->step == HTE_PIECE_STOPPED;

    if (piece->step == HTE_PIECE_FINAL || piece->out > 0 || (piece->left > 0 && !is_stopped)) {
        return false;
    }
    piece->step = HTE_PIECE_FINAL;
    return true;
}

static void stop(struct hte_piece_state *piece, int code, int error)
{
    if (piece->step <= HTE_PIECE_RUNNING) {
        piece->step  = HTE_PIECE_STOPPED;
        piece->code  = (uint8_t)code;
        piece->error = (int16_t)error;
    }
}

bool hte_piece_slice_done(struct hte_piece_state *piece, uint64_t length)
{
    --piece->out;
    piece->transferred += length;
    return end_if_over(piece);
}

bool hte_piece_slice_lost(struct hte_piece_state *piece, int code, int error)
{
    --piece->out;
    stop(piece, code, error);
    return end_if_over(piece);
}

bool hte_piece_stop(struct hte_piece_state *piece, int code, int error)
{
    if (piece->left == 0) {
        return false;
    }
    stop(piece, code, error);
    return end_if_over(piece);
}

int hte_worse_code(int a, int b)
{
    static const unsigned char rank[] = {
        [HTE_COMPLETED] = 1, [HTE_CANCELED] = 2, [HTE_INVALID] = 3, [HTE_TIMEOUT] = 4, [HTE_FAILED] = 5,
    };
    return rank[a] >= rank[b] ? a : b;
}

int hte_code_of(int error)
{
    switch (error) {
    case HTE_ERR_CANCELED:
        return HTE_CANCELED;
    case HTE_ERR_TIMEOUT:
        return HTE_TIMEOUT;
    case HTE_ERR_RANGE:
    case HTE_ERR_PERMISSION:
        return HTE_INVALID;
    default:
        return HTE_FAILED;
    }
}
