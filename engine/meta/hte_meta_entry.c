/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_meta_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte_json.h"
#include "hte_meta_state.h"
#include "hte_seal.h"
#include "hte_store.h"

/* ---- keys and values ---------------------------------------------------------------- */

static int make_key(const struct hte_meta *meta, const char *kind, const char *segment, char key[HTE_STORE_KEY_MAX + 1],
                    struct hte_why *why)
{
    int length = snprintf(key, HTE_STORE_KEY_MAX + 1, "mooncake/%s%s%s/%s", meta->cluster,
                          meta->cluster[0] != '\0' ? "/" : "", kind, segment);

    if (length > HTE_STORE_KEY_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "segment name '%.64s...' is too long", segment);
    }
    return 0;
}

int hte_meta_put(struct hte_meta *meta, const char *kind, const char *text, struct hte_why *why)
{
    char key[HTE_STORE_KEY_MAX + 1], *sealed;
    int  ret = make_key(meta, kind, meta->name, key, why);

    if (ret == 0) {
        ret = hte_seal_close(meta->secret, key, text, &sealed, why);
    }
    if (ret == 0) {
        ret = hte_store_put(meta->store, key, sealed, why);
        free(sealed);
    }
    return ret;
}

int hte_meta_get(struct hte_meta *meta, const char *kind, const char *segment, char **text, struct hte_why *why)
{
    char key[HTE_STORE_KEY_MAX + 1], *sealed;
    int  ret = make_key(meta, kind, segment, key, why);

    if (ret == 0) {
        ret = hte_store_get(meta->store, key, &sealed, why);
    }
    if (ret == 0) {
        ret = hte_seal_open(meta->secret, key, sealed, text, why);
        free(sealed);
    }
    return ret;
}

int hte_meta_remove(struct hte_meta *meta, const char *kind, struct hte_why *why)
{
    char key[HTE_STORE_KEY_MAX + 1];
    int  ret = make_key(meta, kind, meta->name, key, why);

    return ret != 0 ? ret : hte_store_remove(meta->store, key, why);
}

/* ---- where a process answers ----------------------------------------------------------- */

int hte_meta_put_address(struct hte_meta *meta, struct hte_why *why)
{
    char     host[HTE_HOST_MAX + 1], *text;
    uint16_t port;
    json_t  *json;
    int      ret = hte_net_split(meta->address, host, &port, why);

    if (ret != 0) {
        return ret;
    }
    json = json_pack("{s:s, s:i}", "ip_or_host_name", host, "rpc_port", (int)port);
    text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for an address");
    }
    ret = hte_meta_put(meta, "rpc_meta", text, why);
    free(text);
    return ret;
}

static int parse_address(const char *text, char address[HTE_ADDRESS_TEXT_MAX], struct hte_why *why)
{
    struct hte_json_at at = {.list = NULL};
    const char        *host;
    uint64_t           port;
    int                ret = hte_json_parse(text, strlen(text), &at.object, why);

    if (ret != 0) {
        return ret;
    }
    ret = hte_json_text(&at, "ip_or_host_name", HTE_HOST_MAX, &host, why);
    if (ret == 0) {
        ret = hte_json_uint(&at, "rpc_port", UINT16_MAX, &port, why);
    }
    if (ret == 0) {
        hte_net_join(host, (uint16_t)port, address);
    }
    json_decref(at.object);
    return ret;
}

int hte_meta_locate(struct hte_meta *meta, const char *segment, char address[HTE_ADDRESS_TEXT_MAX], struct hte_why *why)
{
    char *text;
    int   ret;

    if (meta->store == NULL) {
        if (strlen(segment) >= HTE_ADDRESS_TEXT_MAX) {
            return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "segment '%.64s...': host:port is expected", segment);
        }
        strcpy(address, segment);
        return 0;
    }
    ret = hte_meta_get(meta, "rpc_meta", segment, &text, why);
    if (ret == HTE_ERR_UNKNOWN_SEGMENT) {
        return hte_why_set(why, ret, "%s knows no segment '%.200s'", hte_store_url(meta->store), segment);
    }
    if (ret == 0) {
        ret = parse_address(text, address, why);
        free(text);
    }
    return ret;
}
