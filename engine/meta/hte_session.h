/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SESSION_H_
#define HTE_SESSION_H_

/*
 * Who may talk on a handshake connection, and that nobody else's bytes get
 * into it. Pure: frames in, frames out; the nonce is an argument; no socket, no clock.
 *
 *   client                                           server
 *   START      -- hello {nonce, secret?} ----------> WAIT_HELLO
 *   WAIT_CHALLENGE <-- challenge {nonce, secret?} -- WAIT_PROOF  (OPEN without a secret)
 *   WAIT_WELCOME   -- proof {mac} -----------------> OPEN
 *   OPEN           <-- welcome {mac} ---------------
 *
 * Without a secret the client is OPEN after the challenge. Whoever holds a secret talks only to one who holds the
 * same; the one who calls proves it first, so a scanner learns nothing to guess on. From any state a bad frame leads
 * to CLOSED; the server's last word is then refused {why}.
 *
 * A proof is HMAC-SHA256(secret, role | hello | challenge): both nonces and all that was said, so it fits no other
 * connection and no other direction. With a secret, every later frame starts with HMAC-SHA256(key, direction |
 * number of the frame | body), key = HMAC(secret, "hte key" | hello | challenge). Bodies are not hidden: authentic,
 * not private.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hte_why.h"
#include "hte_hmac.h"

#define HTE_SESSION_VERSION   1
#define HTE_SESSION_NONCE_LEN 32
#define HTE_SESSION_FRAME_MAX 1024 /* bytes of every frame before OPEN */
#define HTE_SECRET_MIN        16   /* characters */
#define HTE_SECRET_MAX        1024

enum hte_session_state {
    HTE_SESSION_START,
    HTE_SESSION_WAIT_HELLO,
    HTE_SESSION_WAIT_CHALLENGE,
    HTE_SESSION_WAIT_PROOF,
    HTE_SESSION_WAIT_WELCOME,
    HTE_SESSION_OPEN,
    HTE_SESSION_CLOSED
};

struct hte_session {
    enum hte_session_state state;
    bool                   is_server;
    const char            *secret; /* NULL = none; of the owner, as long as the session */
    uint8_t                nonce[HTE_SESSION_NONCE_LEN];
    char                   hello[HTE_SESSION_FRAME_MAX], challenge[HTE_SESSION_FRAME_MAX];
    uint8_t                key[HTE_HMAC_LEN];
    uint64_t               sent, received; /* frames since OPEN */
};

/* `nonce`: fresh randomness, HTE_SESSION_NONCE_LEN bytes. */
void hte_session_init(struct hte_session *session, bool is_server, const char *secret, const uint8_t *nonce);
void hte_session_cleanup(struct hte_session *session); /* wipes the keys */

/* HTE_ERR_INVALID_ARGUMENT when it is too short or too long, HTE_ERR_NOT_IMPLEMENTED without libcrypto. NULL is
 * good. */
int hte_session_check_secret(const char *secret, struct hte_why *why);

/* Takes the body of a frame (the client starts with an empty one) and writes the body of the answer, "" for none.
 * Afterwards session->state says what comes next. On failure the state is CLOSED; the server's `answer` is to be
 * sent still. */
int hte_session_step(struct hte_session *session, const char *body, size_t length, char answer[HTE_SESSION_FRAME_MAX],
                     struct hte_why *why);

/* Once OPEN: bytes that stand in front of each body, and their making and checking. Frames are counted: call it
 * exactly once for each frame, in order. */
size_t hte_session_seal_length(const struct hte_session *session);
bool   hte_session_seal(struct hte_session *session, const void *body, size_t length, uint8_t *seal);
bool   hte_session_check(struct hte_session *session, const void *body, size_t length, const uint8_t *seal);

#endif
