/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ATTENTION_H_
#define UCT_HA_ATTENTION_H_

/* Connections that progress is to look at. For the data part as well, which does not know
 * what a connection is. */

enum { /* what progress does after it has left the lock */
       UCT_HA_TODO_FAIL    = 1 << 0,
       UCT_HA_TODO_GONE    = 1 << 1,
       UCT_HA_TODO_REPORT  = 1 << 2,
       UCT_HA_TODO_REJECT  = 1 << 3,
       UCT_HA_TODO_DECLARE = 1 << 4,
       UCT_HA_TODO_TAIL    = 1 << 5,
};

struct uct_ha_conn;
struct uct_ha_pairs;

/* Progress should look at this connection. */
void uct_ha_attention_locked(struct uct_ha_conn *conn);
void uct_ha_attention(struct uct_ha_conn *conn);

/* ... and do this as well: UCT_HA_TODO_*. */
void uct_ha_attention_todo(struct uct_ha_conn *conn, unsigned todo);

/* Progress has posted while the connection slept: pair/awake.h. No lock. */
void uct_ha_attention_posted(struct uct_ha_conn *conn);

/* The next one, in turn; NULL when there is none. */
struct uct_ha_conn *uct_ha_attention_next_locked(struct uct_ha_pairs *pairs);

#endif
