/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_seal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hte_hmac.h"
#include "hte_json.h"

static bool mac_of_value(const char *secret, const char *key, const char *text, uint8_t mac[HTE_HMAC_LEN])
{
    static const char      purpose[] = "hte store";
    const struct hte_bytes pieces[]  = {{purpose, sizeof(purpose)}, {key, strlen(key) + 1}, {text, strlen(text) + 1}};

    return hte_hmac(secret, strlen(secret), pieces, 3, mac);
}

static int copy(const char *text, char **made, struct hte_why *why)
{
    *made = strdup(text);
    return *made != NULL ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "no memory for a value");
}

int hte_seal_close(const char *secret, const char *key, const char *text, char **sealed, struct hte_why *why)
{
    char    hex[HTE_HMAC_HEX_LEN + 1];
    uint8_t mac[HTE_HMAC_LEN];
    json_t *json;

    if (secret == NULL) {
        return copy(text, sealed, why);
    }
    if (!mac_of_value(secret, key, text, mac)) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a seal");
    }
    hte_hex_encode(mac, sizeof(mac), hex);
    json    = json_pack("{s:s, s:s}", "mac", hex, "text", text);
    *sealed = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return *sealed != NULL ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "no memory for a seal");
}

static int check(const char *secret, const char *key, const struct hte_json_at *at, char **text, struct hte_why *why)
{
    uint8_t     shown[HTE_HMAC_LEN], right[HTE_HMAC_LEN];
    const char *hex, *inner;

    if (hte_json_text(at, "mac", HTE_HMAC_HEX_LEN, &hex, NULL) != 0 ||
        hte_json_payload(at, "text", SIZE_MAX, &inner, NULL) != 0) {
        return hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED,
                           "%.200s in the store is not sealed: its writer has no secret, and this side wants one", key);
    }
    if (!hte_hex_decode(hex, shown, sizeof(shown)) || !mac_of_value(secret, key, inner, right) ||
        !hte_hmac_equal(shown, right)) {
        return hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED,
                           "%.200s in the store has a wrong seal: the secrets differ, or it was tampered with", key);
    }
    return copy(inner, text, why);
}

int hte_seal_open(const char *secret, const char *key, const char *sealed, char **text, struct hte_why *why)
{
    struct hte_json_at at  = {.list = NULL};
    int                ret = hte_json_parse(sealed, strlen(sealed), &at.object, why);

    if (ret != 0) {
        return ret;
    }
    if (secret != NULL) {
        ret = check(secret, key, &at, text, why);
    } else if (json_object_get(at.object, "mac") != NULL) {
        ret = hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED,
                          "%.200s in the store is sealed with a secret, and this side has none", key);
    } else {
        ret = copy(sealed, text, why);
    }
    json_decref(at.object);
    return ret;
}
