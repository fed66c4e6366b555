/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PIECE_H_
#define HTE_PIECE_H_

/*
 * Life of one piece: the part of a request that one worker thread carries out. Most requests are one piece. Pure;
 * a piece is touched by one thread at a time.
 *
 *            cut             last slice over, all cut
 *   WAITING ─────▶ RUNNING ────────────────────────────▶ FINAL: COMPLETED
 *      │              │ stop (slice gave up, cancel)        ▲
 *      │              ▼        last slice over              │
 *      │           STOPPED ─────────────────────────────▶ FINAL: the code it was stopped with
 *      └─────────────────────────── stop ───────────────────▲
 *
 * WAITING nothing cut yet · RUNNING slices are out, or more can be cut · STOPPED nothing more is cut, slices
 * that are out come in · FINAL no slice is out, nothing will change
 */

#include <stdbool.h>
#include <stdint.h>

enum hte_piece_step { HTE_PIECE_WAITING, HTE_PIECE_RUNNING, HTE_PIECE_STOPPED, HTE_PIECE_FINAL };

struct hte_piece_state {
    uint64_t left;        /* bytes not cut */
    uint64_t transferred; /* bytes of completed slices */
    uint32_t out;         /* slices that are not over */
    uint8_t  step;        /* enum hte_piece_step */
    uint8_t  code;        /* enum hte_status_code it ends or ended with */
    int16_t  error;       /* enum hte_error likewise */
};

/* Each returns whether the piece has just become FINAL. */
void hte_piece_init(struct hte_piece_state *piece, uint64_t length);
void hte_piece_cut(struct hte_piece_state *piece, uint64_t length);
bool hte_piece_slice_done(struct hte_piece_state *piece, uint64_t length);
bool hte_piece_slice_lost(struct hte_piece_state *piece, int code, int error);
/* Cut no more. The first reason stays. Nothing happens to a piece that is FINAL, or has been cut
 * to the end: it ends as its slices end. */
bool hte_piece_stop(struct hte_piece_state *piece, int code, int error);

static inline bool hte_piece_can_cut(const struct hte_piece_state *piece)
{
    return piece->step <= HTE_PIECE_RUNNING && piece->left > 0;
}

/* The one of two final codes that a whole reports when its parts ended differently: FAILED, TIMEOUT, INVALID, CANCELED,
 * COMPLETED, in this order. */
int hte_worse_code(int a, int b);
/* The final code of what ends with this error. */
int hte_code_of(int error);

#endif
