/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_session.h"

#include <stdio.h>
#include <string.h>

#include "hte_json.h"

enum direction { FROM_CLIENT = 'c', FROM_SERVER = 's' };

void hte_session_init(struct hte_session *session, bool is_server, const char *secret, const uint8_t *nonce)
{
    memset(session, 0, sizeof(*session));
    session->state     = is_server ? HTE_SESSION_WAIT_HELLO : HTE_SESSION_START;
    session->is_server = is_server;
    session->secret    = secret;
    memcpy(session->nonce, nonce, sizeof(session->nonce));
}

void hte_session_cleanup(struct hte_session *session)
{
    hte_wipe(session->key, sizeof(session->key));
    session->state = HTE_SESSION_CLOSED;
}

int hte_session_check_secret(const char *secret, struct hte_why *why)
{
    size_t length;

    if (secret == NULL) {
        return 0;
    }
    length = strlen(secret);
    if (length < HTE_SECRET_MIN || length > HTE_SECRET_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT,
                           "the secret has %zu characters; %d..%d are needed, e.g. those of: openssl rand -hex 32",
                           length, HTE_SECRET_MIN, HTE_SECRET_MAX);
    }
    if (!hte_hmac_is_built()) {
        return hte_why_set(why, HTE_ERR_NOT_IMPLEMENTED,
                           "a secret was given, but this library was built without libcrypto");
    }
    return 0;
}

/* ---- what is proven ------------------------------------------------------------ */

/* The zero byte of each piece is part of it: no piece can run into the next. */
static bool mac_of_opening(const struct hte_session *session, const char *purpose, uint8_t mac[HTE_HMAC_LEN])
{
    const struct hte_bytes pieces[] = {{purpose, strlen(purpose) + 1},
                                       {session->hello, strlen(session->hello) + 1},
                                       {session->challenge, strlen(session->challenge) + 1}};

    return hte_hmac(session->secret, strlen(session->secret), pieces, 3, mac);
}

static bool is_proven(const struct hte_session *session, const char *purpose, const char *hex)
{
    uint8_t shown[HTE_HMAC_LEN], right[HTE_HMAC_LEN];

    return hte_hex_decode(hex, shown, sizeof(shown)) && mac_of_opening(session, purpose, right) &&
           hte_hmac_equal(shown, right);
}

static bool open_session(struct hte_session *session)
{
    if (session->secret != NULL && !mac_of_opening(session, "hte key", session->key)) {
        return false;
    }
    session->state = HTE_SESSION_OPEN;
    return true;
}

/* ---- frames of the opening -------------------------------------------------------- */

static void write_opening(const struct hte_session *session, const char *type, char *text)
{
    char nonce[2 * HTE_SESSION_NONCE_LEN + 1];

    hte_hex_encode(session->nonce, sizeof(session->nonce), nonce);
    snprintf(text, HTE_SESSION_FRAME_MAX, "{\"type\":\"%s\",\"version\":%d,\"nonce\":\"%s\",\"secret\":%d}", type,
             HTE_SESSION_VERSION, nonce, session->secret != NULL);
}

static bool write_proof(const struct hte_session *session, const char *type, const char *purpose, char *text)
{
    uint8_t mac[HTE_HMAC_LEN];
    char    hex[HTE_HMAC_HEX_LEN + 1];

    if (!mac_of_opening(session, purpose, mac)) {
        return false;
    }
    hte_hex_encode(mac, sizeof(mac), hex);
    snprintf(text, HTE_SESSION_FRAME_MAX, "{\"type\":\"%s\",\"mac\":\"%s\"}", type, hex);
    return true;
}

/* A frame of the wanted type; what a server says instead before it hangs up is passed on. */
static int parse_frame(const char *body, size_t length, const char *type, struct hte_json_at *at, struct hte_why *why)
{
    const char *found, *cause;
    int         ret;

    if (length >= HTE_SESSION_FRAME_MAX) {
        return hte_why_set(why, HTE_ERR_LIMIT, "%zu bytes instead of a %s frame", length, type);
    }
    memset(at, 0, sizeof(*at));
    ret = hte_json_parse(body, length, &at->object, why);
    if (ret != 0) {
        return ret;
    }
    ret = hte_json_text(at, "type", 32, &found, why);
    if (ret == 0 && strcmp(found, type) != 0) {
        if (strcmp(found, "refused") == 0 && hte_json_text(at, "why", HTE_SESSION_FRAME_MAX, &cause, NULL) == 0) {
            ret = hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED, "the peer refused: %s", cause);
        } else {
            ret = hte_json_complain(at, "type", why, "'%s' where '%s' is expected", found, type);
        }
    }
    if (ret != 0) {
        json_decref(at->object);
    }
    return ret;
}

static int read_opening(const struct hte_session *session, const char *body, size_t length, const char *type,
                        bool *has_secret, struct hte_why *why)
{
    uint8_t            nonce[HTE_SESSION_NONCE_LEN];
    uint64_t           version, secret;
    struct hte_json_at at;
    const char        *text;
    int                ret = parse_frame(body, length, type, &at, why);

    if (ret != 0) {
        return ret;
    }
    ret = hte_json_uint(&at, "version", UINT32_MAX, &version, why);
    if (ret == 0 && version != HTE_SESSION_VERSION) {
        ret = hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED, "handshake version %u here, %llu there", HTE_SESSION_VERSION,
                          (unsigned long long)version);
    }
    if (ret == 0) {
        ret = hte_json_text(&at, "nonce", 2 * sizeof(nonce), &text, why);
    }
    if (ret == 0 && !hte_hex_decode(text, nonce, sizeof(nonce))) {
        ret = hte_json_complain(&at, "nonce", why, "%zu hexadecimal digits are expected", 2 * sizeof(nonce));
    }
    if (ret == 0 && memcmp(nonce, session->nonce, sizeof(nonce)) == 0) {
        ret = hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED, "our own nonce came back");
    }
    if (ret == 0) {
        ret = hte_json_uint(&at, "secret", 1, &secret, why);
    }
    json_decref(at.object);
    *has_secret = ret == 0 && secret != 0;
    return ret;
}

static int read_proof(const struct hte_session *session, const char *body, size_t length, const char *type,
                      const char *purpose, struct hte_why *why)
{
    struct hte_json_at at;
    const char        *mac;
    int                ret = parse_frame(body, length, type, &at, why);

    if (ret != 0) {
        return ret;
    }
    ret = hte_json_text(&at, "mac", HTE_HMAC_HEX_LEN, &mac, why);
    if (ret == 0 && !is_proven(session, purpose, mac)) {
        ret = hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED, "the secrets differ");
    }
    json_decref(at.object);
    return ret;
}

/* ---- steps ------------------------------------------------------------------------- */

static int step_hello(struct hte_session *session, const char *body, size_t length, char *answer, struct hte_why *why)
{
    bool has_secret;
    int  ret = read_opening(session, body, length, "hello", &has_secret, why);

    if (ret != 0) {
        return ret;
    }
    if (has_secret != (session->secret != NULL)) {
        return hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED,
                           has_secret ? "a secret was offered, but this side has none" : "a secret is required");
    }
    memcpy(session->hello, body, length); /* shorter than the field, which is zeroed */
    write_opening(session, "challenge", answer);
    strcpy(session->challenge, answer);
    session->state = HTE_SESSION_WAIT_PROOF;
    if (session->secret == NULL) {
        open_session(session);
    }
    return 0;
}

static int step_challenge(struct hte_session *session, const char *body, size_t length, char *answer,
                          struct hte_why *why)
{
    bool has_secret;
    int  ret = read_opening(session, body, length, "challenge", &has_secret, why);

    if (ret != 0) {
        return ret;
    }
    if (has_secret != (session->secret != NULL)) {
        return hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED,
                           has_secret ? "the peer wants a secret, but this side has none"
                                      : "the peer has no secret, but this side wants one");
    }
    memcpy(session->challenge, body, length);
    if (session->secret == NULL) {
        open_session(session);
        return 0;
    }
    if (!write_proof(session, "proof", "hte client", answer)) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a proof");
    }
    session->state = HTE_SESSION_WAIT_WELCOME;
    return 0;
}

static int step_proof(struct hte_session *session, const char *body, size_t length, char *answer, struct hte_why *why)
{
    int ret = read_proof(session, body, length, "proof", "hte client", why);

    if (ret != 0) {
        return ret;
    }
    if (!write_proof(session, "welcome", "hte server", answer) || !open_session(session)) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a proof");
    }
    return 0;
}

static int step_welcome(struct hte_session *session, const char *body, size_t length, struct hte_why *why)
{
    int ret = read_proof(session, body, length, "welcome", "hte server", why);

    if (ret != 0) {
        return ret;
    }
    return open_session(session) ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "no memory for a key");
}

static int step_by_state(struct hte_session *session, const char *body, size_t length, char *answer,
                         struct hte_why *why)
{
    switch (session->state) {
    case HTE_SESSION_START:
        write_opening(session, "hello", answer);
        strcpy(session->hello, answer);
        session->state = HTE_SESSION_WAIT_CHALLENGE;
        return 0;
    case HTE_SESSION_WAIT_HELLO:
        return step_hello(session, body, length, answer, why);
    case HTE_SESSION_WAIT_CHALLENGE:
        return step_challenge(session, body, length, answer, why);
    case HTE_SESSION_WAIT_PROOF:
        return step_proof(session, body, length, answer, why);
    case HTE_SESSION_WAIT_WELCOME:
        return step_welcome(session, body, length, why);
    case HTE_SESSION_OPEN:
    case HTE_SESSION_CLOSED:
        break;
    }
    return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the handshake is over already");
}

int hte_session_step(struct hte_session *session, const char *body, size_t length, char answer[HTE_SESSION_FRAME_MAX],
                     struct hte_why *why)
{
    struct hte_why cause = {.text = ""};
    json_t        *refusal;
    size_t         size;
    int            ret;

    answer[0] = '\0';
    ret       = step_by_state(session, body, length, answer, &cause);
    if (ret == 0) {
        return 0;
    }
    session->state = HTE_SESSION_CLOSED;
    answer[0]      = '\0';
    if (session->is_server) {
        refusal = json_pack("{s:s, s:s}", "type", "refused", "why", cause.text);
        size    = json_dumpb(refusal, answer, HTE_SESSION_FRAME_MAX - 1, JSON_COMPACT);
        answer[size < HTE_SESSION_FRAME_MAX ? size : 0] = '\0';
        json_decref(refusal);
    }
    return hte_why_set(why, ret, "%s", cause.text);
}

/* ---- after the opening ------------------------------------------------------------- */

size_t hte_session_seal_length(const struct hte_session *session)
{
    return session->state == HTE_SESSION_OPEN && session->secret != NULL ? HTE_HMAC_LEN : 0;
}

static bool mac_of_frame(const struct hte_session *session, enum direction direction, uint64_t number, const void *body,
                         size_t length, uint8_t mac[HTE_HMAC_LEN])
{
    uint8_t                place[9] = {(uint8_t)direction};
    const struct hte_bytes pieces[] = {{place, sizeof(place)}, {body, length}};
    int                    i;

    for (i = 0; i < 8; i++) {
        place[1 + i] = (uint8_t)(number >> (56 - 8 * i));
    }
    return hte_hmac(session->key, sizeof(session->key), pieces, 2, mac);
}

bool hte_session_seal(struct hte_session *session, const void *body, size_t length, uint8_t *seal)
{
    if (hte_session_seal_length(session) == 0) {
        return true;
    }
    return mac_of_frame(session, session->is_server ? FROM_SERVER : FROM_CLIENT, session->sent++, body, length, seal);
}

bool hte_session_check(struct hte_session *session, const void *body, size_t length, const uint8_t *seal)
{
    uint8_t right[HTE_HMAC_LEN];

    if (hte_session_seal_length(session) == 0) {
        return true;
    }
    return mac_of_frame(session, session->is_server ? FROM_CLIENT : FROM_SERVER, session->received++, body, length,
                        right) &&
           hte_hmac_equal(right, seal);
}
