/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/attention.h"

#include "pair/conn.h"

void uct_ha_attention_locked(struct uct_ha_conn *conn)
{
    if (!conn->attention) {
        conn->attention = 1;
        ucs_list_add_tail(&conn->pairs->attention, &conn->attention_link);
    }
    uct_ha_due_touch(&conn->due);
    uct_ha_wake_progress(&conn->pairs->lanes->wake);
}

void uct_ha_attention_posted(struct uct_ha_conn *conn)
{
    uct_ha_awake_posted(&conn->awake);
}

void uct_ha_attention(struct uct_ha_conn *conn)
{
    uct_ha_attention_todo(conn, 0);
}

void uct_ha_attention_todo(struct uct_ha_conn *conn, unsigned todo)
{
    pthread_mutex_t *lock = &conn->pairs->lanes->wake.lock;

    pthread_mutex_lock(lock);
    conn->todo |= (uint8_t)todo;
    uct_ha_attention_locked(conn);
    pthread_mutex_unlock(lock);
}

struct uct_ha_conn *uct_ha_attention_next_locked(struct uct_ha_pairs *pairs)
{
    struct uct_ha_conn *conn;

    if (ucs_list_is_empty(&pairs->attention)) {
        return NULL;
    }
    conn = ucs_list_head(&pairs->attention, struct uct_ha_conn, attention_link);
    ucs_list_del(&conn->attention_link);
    conn->attention = 0;
    uct_ha_due_touch(&conn->due); /* the timer has left to progress what is over */
    return conn;
}
