/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_slice.h"

void hte_slice_init(struct hte_slice_state *slice, bool is_write, unsigned max_fails)
{
    slice->step      = HTE_SLICE_READY;
    slice->is_write  = is_write;
    slice->fails     = 0;
    slice->max_fails = max_fails > 254 ? 254 : (uint8_t)max_fails;
    slice->bad_rail  = -1;
}

static enum hte_slice_action enter(struct hte_slice_state *slice, enum hte_slice_step step,
                                   enum hte_slice_action action)
{
    slice->step = step;
    return action;
}

static enum hte_slice_action fail(struct hte_slice_state *slice, int rail)
{
    slice->bad_rail = (int16_t)rail;
    if (slice->fails++ >= slice->max_fails) {
        return enter(slice, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP);
    }
    return enter(slice, HTE_SLICE_READY, HTE_SLICE_RETRY);
}

static bool is_out(const struct hte_slice_state *slice)
{
    return hte_slice_is_with_ucx(slice) || slice->step == HTE_SLICE_SENT;
}

enum hte_slice_action hte_slice_on(struct hte_slice_state *slice, enum hte_slice_event event, int rail)
{
    switch (event) {
    case HTE_SLICE_POST:
        if (slice->step == HTE_SLICE_READY) {
            return enter(slice, HTE_SLICE_POSTED, HTE_SLICE_NOTHING);
        }
        break;
    case HTE_SLICE_LOCAL:
        if (slice->step == HTE_SLICE_POSTED && slice->is_write) {
            return enter(slice, HTE_SLICE_SENT, HTE_SLICE_NOTHING);
        }
        if (slice->step == HTE_SLICE_POSTED || slice->step == HTE_SLICE_SEEN) {
            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_COMPLETE);
        }
        break;
    case HTE_SLICE_FLUSHED:
        if (slice->step == HTE_SLICE_SENT) {
            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_COMPLETE);
        }
        if (slice->step == HTE_SLICE_POSTED && slice->is_write) {
            return enter(slice, HTE_SLICE_SEEN, HTE_SLICE_NOTHING);
        }
        break;
    case HTE_SLICE_MOVED:
        if (slice->step == HTE_SLICE_POSTED) {
            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_COMPLETE);
        }
        break;
    case HTE_SLICE_FAIL:
        if (is_out(slice)) {
            return fail(slice, rail);
        }
        break;
    case HTE_SLICE_EXPIRE:
        if (is_out(slice)) {
            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP);
        }
        break;
    case HTE_SLICE_DROP:
        if (slice->step == HTE_SLICE_READY) {
            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP);
        }
        break;
    }
    return HTE_SLICE_ILLEGAL;
}
