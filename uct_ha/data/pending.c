/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/pending.h"

void uct_ha_pending_queue(struct uct_ha_flow *flow)
{
    if (!flow->pending_queued && !ucs_list_is_empty(&flow->pending)) {
        flow->pending_queued = 1;
        ucs_list_add_tail(&flow->flows->pending, &flow->pending_link);
    }
}

static int dispatch_one(struct uct_ha_flows *flows, struct uct_ha_flow *flow)
{
    uct_ha_pending_priv_t *priv = ucs_list_head(&flow->pending, uct_ha_pending_priv_t, list);
    uct_pending_req_t     *req  = uct_ha_pending_req(priv);
    unsigned               amo  = priv->amo;
    ucs_status_t           status;

    ucs_list_del(&priv->list);
    flows->dispatching = flow;
    status             = req->func(req);
    flows->dispatching = NULL;
    uct_ha_flow_hold_go(flow); /* the turn is over, whether it was taken or not */
    if (status == UCS_OK || (amo && status != UCS_ERR_NO_RESOURCE)) {
        return 1; /* UCP has ended an atomic that failed, although it returns the error */
    }
    /* Not finished: it stays first. Its private area was ours all the time. */
    ucs_list_add_head(&flow->pending, &priv->list);
    return status == UCS_INPROGRESS;
}

/* One request of each connection in turn; stop after a full round without
 * success. */
unsigned uct_ha_pending_dispatch(struct uct_ha_flows *flows)
{
    struct uct_ha_flow *flow, *first = NULL;
    unsigned            went = 0;

    while (!ucs_list_is_empty(&flows->pending)) {
        flow = ucs_list_head(&flows->pending, struct uct_ha_flow, pending_link);
        if (flow == first) {
            break;
        }
        ucs_list_del(&flow->pending_link);
        flow->pending_queued = 0;
        if (dispatch_one(flows, flow)) {
            went++;
            first = NULL;
        } else if (first == NULL) {
            first = flow;
        }
        uct_ha_pending_queue(flow);
    }
    return went;
}

/* UCP purges an endpoint that is to end, one that failed or another of the same peer. For an atomic without
 * result it then calls a completion function that UCP 1.13 has never set: the process aborts; and one with a result
 * it takes for under way, and never ends it. So these are tried once more instead. UCP has put a stub in the place of
 * a failed endpoint, and ends them with that stub's error; if they come here, uct_ha_ep_atomic*() refuses them
 * while `purging`. Only a purge that moves
 * requests to another lane finds no room, and gets them as usual. */
static int end_atomic(struct uct_ha_flow *flow, uct_ha_pending_priv_t *priv)
{
    uct_pending_req_t *req = uct_ha_pending_req(priv);
    ucs_status_t       status;

    flow->purging = 1;
    status        = req->func(req);
    flow->purging = 0;
    return status != UCS_ERR_NO_RESOURCE;
}

void uct_ha_pending_purge(struct uct_ha_flow *flow, uct_pending_purge_callback_t cb, void *arg)
{
    uct_ha_pending_priv_t *priv;

    if (flow->pending_queued) {
        flow->pending_queued = 0;
        ucs_list_del(&flow->pending_link);
    }
    while (!ucs_list_is_empty(&flow->pending)) {
        priv = ucs_list_head(&flow->pending, uct_ha_pending_priv_t, list);
        ucs_list_del(&priv->list);
        if (cb != NULL && !(priv->amo && end_atomic(flow, priv))) {
            cb(uct_ha_pending_req(priv), arg);
        }
    }
}
