/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_META_ANSWER_H_
#define HTE_META_ANSWER_H_

#include "hte_message.h"

/* The server's door, hte_server_answer: arg = struct hte_meta. */
void hte_meta_answer(void *arg, const struct hte_ask *request, struct hte_reply *reply);

#endif
