/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hte_frame.h"
#include "hte_net.h"
#include "hte_session.h"

struct client {
    const struct hte_client_options *options;
    int                              fd;
    int64_t                          deadline;
    struct hte_session               session;
    struct hte_frame_reader          reader;
};

static int send_all(struct client *client, const void *bytes, size_t length, struct hte_why *why)
{
    const uint8_t *out = bytes;
    ssize_t        sent;
    int            ret;

    while (length > 0) {
        sent = send(client->fd, out, length, MSG_NOSIGNAL);
        if (sent > 0) {
            out += sent;
            length -= (size_t)sent;
        } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return hte_why_set(why, HTE_ERR_SOCKET, "send: %s", strerror(errno));
        } else {
            ret = hte_net_wait(client->fd, POLLOUT, client->deadline, client->options->stop, why);
            if (ret != 0) {
                return ret;
            }
        }
    }
    return 0;
}

static int send_frame(struct client *client, const char *body, struct hte_why *why)
{
    size_t  seal = hte_session_seal_length(&client->session), length = strlen(body);
    uint8_t head[HTE_FRAME_HEADER_LEN + HTE_HMAC_LEN];
    int     ret;

    if (length > client->options->max_frame) {
        return hte_why_set(why, HTE_ERR_LIMIT, "a message of %zu bytes does not fit into a frame of %zu", length,
                           client->options->max_frame);
    }
    hte_frame_header(head, seal + length);
    if (!hte_session_seal(&client->session, body, length, head + HTE_FRAME_HEADER_LEN)) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory to sign a message");
    }
    ret = send_all(client, head, HTE_FRAME_HEADER_LEN + seal, why);
    return ret != 0 ? ret : send_all(client, body, length, why);
}

/* The frame stays in client->reader until the next one is awaited. */
static int receive_frame(struct client *client, struct hte_why *why)
{
    uint8_t chunk[16384];
    size_t  used;
    ssize_t got;
    int     ret;

    hte_frame_next(&client->reader);
    for (;;) {
        got = recv(client->fd, chunk, sizeof(chunk), 0);
        if (got > 0) {
            ret = hte_frame_feed(&client->reader, chunk, (size_t)got, &used, why);
            if (ret == 1 && used != (size_t)got) {
                return hte_why_set(why, HTE_ERR_MALFORMED_JSON, "the peer sent more than was asked for");
            }
            if (ret != 0) {
                return ret == 1 ? 0 : ret;
            }
        } else if (got == 0) {
            return hte_why_set(why, HTE_ERR_SOCKET, "the peer closed the connection");
        } else if (errno != EAGAIN && errno != EINTR) {
            return hte_why_set(why, HTE_ERR_SOCKET, "receive: %s", strerror(errno));
        } else {
            ret = hte_net_wait(client->fd, POLLIN, client->deadline, client->options->stop, why);
            if (ret != 0) {
                return ret;
            }
        }
    }
}

static int open_session(struct client *client, struct hte_why *why)
{
    char answer[HTE_SESSION_FRAME_MAX];
    int  ret = hte_session_step(&client->session, "", 0, answer, why);

    while (ret == 0) {
        if (answer[0] != '\0') {
            ret = send_frame(client, answer, why);
        }
        if (ret != 0 || client->session.state == HTE_SESSION_OPEN) {
            return ret;
        }
        ret = receive_frame(client, why);
        if (ret == 0) {
            ret = hte_session_step(&client->session, (const char *)client->reader.body, client->reader.length, answer,
                                   why);
        }
    }
    return ret;
}

static int receive_reply(struct client *client, struct hte_reply *reply, struct hte_why *why)
{
    size_t         seal = hte_session_seal_length(&client->session);
    const uint8_t *body;
    int            ret;

    client->reader.max = client->options->max_frame + seal;
    ret                = receive_frame(client, why);
    if (ret != 0) {
        return ret;
    }
    body = client->reader.body + seal;
    if (client->reader.length < seal ||
        !hte_session_check(&client->session, body, client->reader.length - seal, client->reader.body)) {
        return hte_why_set(why, HTE_ERR_HANDSHAKE_REJECTED, "a reply that the peer did not sign");
    }
    return hte_reply_read((const char *)body, client->reader.length - seal, reply, why);
}

static int converse(struct client *client, const char *request, struct hte_reply *reply, struct hte_why *why)
{
    int ret = open_session(client, why);

    if (ret == 0) {
        ret = send_frame(client, request, why);
    }
    if (ret == 0) {
        ret = receive_reply(client, reply, why);
    }
    return ret;
}

static int call(const struct hte_client_options *options, const char *host, uint16_t port, const char *request,
                struct hte_reply *reply, struct hte_why *why)
{
    struct client client = {.options = options};
    uint8_t       nonce[HTE_SESSION_NONCE_LEN];
    int64_t       now, patience;
    int           ret;

    if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce)) {
        return hte_why_set(why, HTE_ERR_SOCKET, "getrandom: %s", strerror(errno));
    }
    now             = hte_net_now();
    client.deadline = now + options->call_ms;
    patience        = options->connect_ms < options->call_ms ? options->connect_ms : options->call_ms;
    ret             = hte_net_connect(host, port, now + patience, options->stop, &client.fd, why);
    if (ret != 0) {
        return ret;
    }
    hte_session_init(&client.session, false, options->secret, nonce);
    hte_frame_init(&client.reader, HTE_SESSION_FRAME_MAX);
    ret = converse(&client, request, reply, why);
    hte_frame_cleanup(&client.reader);
    hte_session_cleanup(&client.session);
    close(client.fd);
    return ret;
}

int hte_client_call(const struct hte_client_options *options, const char *host, uint16_t port, enum hte_ask_type type,
                    const char *payload, struct hte_reply *reply, struct hte_why *why)
{
    char          *request = hte_ask_write(type, options->from, payload);
    char           address[HTE_ADDRESS_TEXT_MAX];
    struct hte_why cause = {.text = ""};
    int            ret;

    if (request == NULL) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "the message is not UTF-8, or there is no memory");
    }
    ret = call(options, host, port, request, reply, &cause);
    free(request);
    if (ret == 0) {
        return 0;
    }
    hte_net_join(host, port, address);
    return hte_why_set(why, ret, "peer %s: %s", address, cause.text);
}
