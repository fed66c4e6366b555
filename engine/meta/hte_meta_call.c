/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "hte_meta_ask.h"
#include "hte_meta_entry.h"
#include "hte_meta_state.h"

bool hte_meta_is_p2p(const struct hte_meta *meta)
{
    return meta->store == NULL;
}

enum hte_presence hte_meta_presence(struct hte_meta *meta, const char *segment)
{
    const struct hte_client_options *limits = &meta->client;
    char                             address[HTE_ADDRESS_TEXT_MAX], host[HTE_HOST_MAX + 1];
    uint16_t                         port;
    int                              fd, ret;

    if (hte_meta_locate(meta, segment, address, NULL) != 0 || hte_net_split(address, host, &port, NULL) != 0) {
        return HTE_PRESENCE_UNKNOWN;
    }
    fd  = 0;
    ret = hte_net_connect(host, port,
                          hte_net_now() + (limits->connect_ms < limits->call_ms ? limits->connect_ms : limits->call_ms),
                          limits->stop, &fd, NULL);
    if (ret == 0) {
        close(fd);
        return HTE_PRESENCE_THERE;
    }
    return ret == HTE_ERR_SOCKET && fd == -ECONNREFUSED ? HTE_PRESENCE_NOBODY : HTE_PRESENCE_UNKNOWN;
}

int hte_meta_call(struct hte_meta *meta, const char *segment, enum hte_call call, const char *payload, char **reply,
                  struct hte_why *why)
{
    static const enum hte_ask_type types[] = {[HTE_CALL_CONNECTION] = HTE_ASK_CONNECTION,
                                              [HTE_CALL_NOTIFY]     = HTE_ASK_NOTIFY,
                                              [HTE_CALL_PROBE]      = HTE_ASK_PROBE,
                                              [HTE_CALL_METRICS]    = HTE_ASK_METRICS};
    char                           address[HTE_ADDRESS_TEXT_MAX], *answer;
    int                            ret = hte_meta_locate(meta, segment, address, why);

    if (ret == 0) {
        ret = hte_meta_ask(&meta->client, address, types[call], payload != NULL ? payload : "", &answer, why);
    }
    if (ret != 0) {
        return ret;
    }
    if (reply != NULL) {
        *reply = answer;
    } else {
        free(answer);
    }
    return 0;
}
