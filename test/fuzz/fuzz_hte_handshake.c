/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The byte stream of a handshake connection, in pieces as the network cuts it.
 * Input: a byte that says who we are and whether there is a secret, then pairs
 * of a length byte and so many bytes. Nobody who does not know the secret is
 * ever believed; without one, what is believed keeps its bounds.
 */

#include "fuzz.h"

#include <string.h>

#include "hte_frame.h"
#include "hte_message.h"
#include "hte_seal.h"
#include "hte_session.h"

const char     fuzz_name[] = "hte_handshake";
const unsigned fuzz_runs   = 20000;

static const char secret[] = "a secret that no input knows";

static void check_messages(const char *body, size_t length)
{
    struct hte_ask   ask;
    struct hte_reply reply;
    struct hte_why   why = {.text = ""};
    char            *text;

    if (hte_ask_read(body, length, &ask, &why) == 0) {
        fuzz_expect(strlen(ask.from) <= HTE_NAME_MAX, "a name that is too long");
        text = hte_ask_write(ask.type, ask.from, ask.payload);
        fuzz_expect(text != NULL, "a request that cannot be written again");
        free(text);
        hte_ask_cleanup(&ask);
    } else {
        fuzz_expect(why.text[0] != '\0', "a request refused without a reason");
    }
    memset(&reply, 0, sizeof(reply));
    if (hte_reply_read(body, length, &reply, &why) == 0) {
        fuzz_expect(reply.error <= 0 && reply.error >= HTE_ERR_EXISTS, "an error that is none");
        hte_reply_cleanup(&reply);
    }
}

static void check_stored(const char *body)
{
    char *text = NULL;

    fuzz_expect(hte_seal_open(secret, "key", body, &text, NULL) != 0, "a seal that nobody made is believed");
    if (hte_seal_open(NULL, "key", body, &text, NULL) == 0) {
        free(text);
    }
}

/* False = the connection is over. */
static int take_frame(struct hte_session *session, const struct hte_frame_reader *reader)
{
    const char *body = (const char *)reader->body;
    char        answer[HTE_SESSION_FRAME_MAX];

    check_stored(body);
    if (session->state == HTE_SESSION_OPEN) {
        fuzz_expect(session->secret == NULL, "opened without the secret");
        check_messages(body, reader->length);
        return 1;
    }
    if (hte_session_step(session, body, reader->length, answer, NULL) != 0) {
        fuzz_expect(session->state == HTE_SESSION_CLOSED, "open after an error");
        fuzz_expect(session->is_server || answer[0] == '\0', "a client says why it leaves");
        return 0;
    }
    fuzz_expect(strlen(answer) < HTE_SESSION_FRAME_MAX, "an answer that is too long");
    return 1;
}

static void take_stream(struct hte_session *session, const uint8_t *data, size_t size)
{
    struct hte_frame_reader reader;
    size_t                  piece, used;
    int                     ret = 0;

    hte_frame_init(&reader, 4096);
    while (size > 1 && ret >= 0) {
        piece = data[0] < size - 1 ? data[0] : size - 1;
        data++;
        size--;
        while (piece > 0 && ret >= 0) {
            ret = hte_frame_feed(&reader, data, piece, &used, NULL);
            fuzz_expect(used <= piece && (used == piece || ret != 0), "bytes are left over");
            fuzz_expect(reader.room <= 4096, "more room than a frame may have");
            data += used;
            size -= used;
            piece -= used;
            if (ret == 1) {
                ret = take_frame(session, &reader) ? 0 : -1;
                hte_frame_next(&reader);
            }
        }
    }
    hte_frame_cleanup(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nonce[HTE_SESSION_NONCE_LEN] = {1, 2, 3};
    struct hte_session   session;
    char                 answer[HTE_SESSION_FRAME_MAX];

    if (size < 1) {
        return 0;
    }
    hte_session_init(&session, data[0] & 1, data[0] & 2 && hte_hmac_is_built() ? secret : NULL, nonce);
    if (!session.is_server) {
        hte_session_step(&session, "", 0, answer, NULL);
    }
    take_stream(&session, data + 1, size - 1);
    hte_session_cleanup(&session);
    return 0;
}
