/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_meta_ask.h"

#include "hte_net.h"

int hte_meta_ask(const struct hte_client_options *options, const char *address, enum hte_ask_type type,
                 const char *request, char **payload, struct hte_why *why)
{
    char             host[HTE_HOST_MAX + 1];
    struct hte_reply reply;
    uint16_t         port;
    int              ret = hte_net_split(address, host, &port, why);

    if (ret != 0) {
        return ret;
    }
    if (port == 0) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "segment '%s': host:port is expected", address);
    }
    ret = hte_client_call(options, host, port, type, request, &reply, why);
    if (ret != 0) {
        return ret;
    }
    if (reply.error != 0) {
        hte_why_set(why, reply.error, "peer %s: %.200s", address,
                    reply.why.text[0] != '\0' ? reply.why.text : "it refused");
        hte_reply_cleanup(&reply);
        return reply.error;
    }
    *payload = reply.payload;
    return 0;
}
