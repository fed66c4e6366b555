/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_inbox.h"

#include <string.h>

#include "base/hte_error.h"
#include "hte_guest.h"
#include "hte_letter.h"
#include "hte_move.h"

/* Only those that came as a whole are looked at: nobody sends others. */
static ucs_status_t on_letter(void *arg, const void *header, size_t header_length, void *bytes, size_t length,
                              const ucp_am_recv_param_t *param)
{
    struct hte_lane       *lane = arg;
    struct hte_letter_head head;

    if (header_length != sizeof(head) || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        return UCS_OK;
    }
    memcpy(&head, header, sizeof(head));
    if (head.kind == HTE_LETTER_ACK || head.kind == HTE_LETTER_BYTES_ARE) {
        hte_move_receive(lane, &head, bytes, length);
    } else {
        hte_guests_receive(lane, &head, bytes, length,
                           (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : NULL);
    }
    return UCS_OK;
}

static ucs_status_t receive_letters(struct hte_lane *lane, ucp_worker_h ucp)
{
    ucp_am_handler_param_t params = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = HTE_LETTER_ID,
        .cb         = on_letter,
        .arg        = lane,
    };

    return ucp_worker_set_am_recv_handler(ucp, &params);
}

int hte_inbox_open(struct hte_lane *lane)
{
    ucs_status_t status = UCS_OK;
    unsigned     i;

    for (i = 0; i < lane->n_rails && status == UCS_OK; ++i) {
        status = receive_letters(lane, lane->rail[i].ucp);
    }
    return status == UCS_OK
               ? HTE_OK
               : hte_fail(HTE_ERR_CONTEXT, "UCX's worker takes no active messages: %s", ucs_status_string(status));
}
