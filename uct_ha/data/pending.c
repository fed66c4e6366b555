/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that UCP has queued until there is room. */
#include "data/tx.h"

#include "uct/iface.h"

static int dispatch_one(struct uct_ha_iface *iface, struct uct_ha_conn *conn)
{
    uct_ha_pending_priv_t *priv = ucs_list_head(&conn->pending, uct_ha_pending_priv_t, list);
    uct_pending_req_t     *req  = uct_ha_pending_req(priv);
    unsigned               post = priv->post;
    ucs_status_t           status;

    ucs_list_del(&priv->list);
    iface->dispatching = conn;
    status             = req->func(req);
    iface->dispatching = NULL;
    if (status == UCS_OK || (post && status != UCS_ERR_NO_RESOURCE)) {
        return 1; /* UCP has ended an atomic that failed, although it returns the error */
    }
    /* Not finished: it stays first. Its private area was ours all the time. */
    ucs_list_add_head(&conn->pending, &priv->list);
    return status == UCS_INPROGRESS;
}

/* One request of each connection in turn; stop after a full round without
 * success. */
unsigned uct_ha_tx_dispatch(struct uct_ha_iface *iface)
{
    struct uct_ha_conn *conn, *first = NULL;
    unsigned            went = 0;

    while (!ucs_list_is_empty(&iface->pending)) {
        conn = ucs_list_head(&iface->pending, struct uct_ha_conn, pending_link);
        if (conn == first) {
            break;
        }
        ucs_list_del(&conn->pending_link);
        conn->pending_queued = 0;
        if (dispatch_one(iface, conn)) {
            went++;
            first = NULL;
        } else if (first == NULL) {
            first = conn;
        }
        uct_ha_tx_queue_pending(conn);
    }
    return went;
}

/* UCP purges an endpoint that is to end, one that failed or another of the same peer. For an atomic without
 * result it then calls a completion function that UCP 1.13 has never set: the process aborts. So these are tried
 * once more instead. UCP has put a stub in the place of a failed endpoint, and ends them with that stub's error;
 * if they come here, uct_ha_ep_atomic*_post() refuses them while `purging`. Only a purge that moves
 * requests to another lane finds no room, and gets them as usual. */
static int end_post(struct uct_ha_conn *conn, uct_ha_pending_priv_t *priv)
{
    uct_pending_req_t *req = uct_ha_pending_req(priv);
    ucs_status_t       status;

    conn->purging = 1;
    status        = req->func(req);
    conn->purging = 0;
    return status != UCS_ERR_NO_RESOURCE;
}

void uct_ha_tx_purge(struct uct_ha_conn *conn, uct_pending_purge_callback_t cb, void *arg)
{
    uct_ha_pending_priv_t *priv;

    if (conn->pending_queued) {
        conn->pending_queued = 0;
        ucs_list_del(&conn->pending_link);
    }
    while (!ucs_list_is_empty(&conn->pending)) {
        priv = ucs_list_head(&conn->pending, uct_ha_pending_priv_t, list);
        ucs_list_del(&priv->list);
        if (cb != NULL && !(priv->post && end_post(conn, priv))) {
            cb(uct_ha_pending_req(priv), arg);
        }
    }
}
