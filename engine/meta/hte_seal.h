/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SEAL_H_
#define HTE_SEAL_H_

/*
 * What is put into a store is everybody's who can reach it. With a secret, a
 * value is {"mac": HMAC-SHA256(secret, "hte store" | key | text), "text": text}:
 * whoever cannot make that cannot make us talk to him, nor hand us another key's value. Pure.
 */

#include "base/hte_why.h"

/* *sealed and *text are the caller's, to be given to free(). Without a secret (NULL) they are copies. */
int hte_seal_close(const char *secret, const char *key, const char *text, char **sealed, struct hte_why *why);
/* HTE_ERR_HANDSHAKE_REJECTED when the seal is missing or wrong, also when there is one and we have no secret. */
int hte_seal_open(const char *secret, const char *key, const char *sealed, char **text, struct hte_why *why);

#endif
