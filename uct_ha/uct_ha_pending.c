/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that UCP has queued until there is room. */
#include "uct_ha_tx.h"

#include "uct_ha_iface.h"

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

/* UCP purges what is pending on an endpoint that failed, and for an atomic without result that calls a
 * completion function which UCP 1.13 never set: the process aborts. So these are tried once more instead: they
 * see the error, and UCP ends them with it.
 * Aborts remain, presumably because UCP purges its endpoints of other devices to that peer as well, which have
 * not failed here: such a purge cannot be told from one that only moves requests to another lane. */
void uct_ha_tx_end_posts(struct uct_ha_conn *conn)
{
    uct_ha_pending_priv_t *priv, *next;
    uct_pending_req_t     *req;

    conn->iface->dispatching = conn;
    ucs_list_for_each_safe(priv, next, &conn->pending, list) {
        if (priv->post) {
            req = uct_ha_pending_req(priv);
            ucs_list_del(&priv->list);
            (void)req->func(req); /* whatever it says, the request is not ours any more */
        }
    }
    conn->iface->dispatching = NULL;
    if (ucs_list_is_empty(&conn->pending) && conn->pending_queued) {
        conn->pending_queued = 0;
        ucs_list_del(&conn->pending_link);
    }
}
