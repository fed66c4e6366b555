/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_server_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct hte_peer *hte_peer_create(int fd, const struct hte_server_options *options, int64_t now)
{
    uint8_t          nonce[HTE_SESSION_NONCE_LEN];
    struct hte_peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL || getrandom(nonce, sizeof(nonce), GRND_NONBLOCK) != (ssize_t)sizeof(nonce)) {
        free(peer);
        close(fd);
        return NULL;
    }
    peer->state = HTE_PEER_READING;
    peer->fd    = fd;
    peer->since = now;
    hte_session_init(&peer->session, true, options->secret, nonce);
    hte_frame_init(&peer->reader, HTE_SESSION_FRAME_MAX);
    return peer;
}

void hte_peer_destroy(struct hte_peer *peer)
{
    close(peer->fd);
    hte_session_cleanup(&peer->session);
    hte_frame_cleanup(&peer->reader);
    free(peer->out);
    free(peer);
}

/* Puts a frame into `out`, under a seal when `seal` is not 0. False: no memory, nothing to send. */
static bool write_frame(struct hte_peer *peer, const char *body, size_t seal)
{
    size_t   length = strlen(body), total = HTE_FRAME_HEADER_LEN + seal + length;
    uint8_t *out = malloc(total);

    if (out == NULL) {
        return false;
    }
    hte_frame_header(out, seal + length);
    memcpy(out + HTE_FRAME_HEADER_LEN + seal, body, length);
    if (seal != 0 && !hte_session_seal(&peer->session, body, length, out + HTE_FRAME_HEADER_LEN)) {
        free(out);
        return false;
    }
    free(peer->out);
    peer->out        = out;
    peer->out_length = total;
    peer->out_sent   = 0;
    peer->state      = HTE_PEER_WRITING;
    return true;
}

static bool step_session(struct hte_peer *peer, const struct hte_server_options *options,
                         struct hte_server_stats *stats)
{
    char answer[HTE_SESSION_FRAME_MAX];

    if (hte_session_step(&peer->session, (const char *)peer->reader.body, peer->reader.length, answer, NULL) != 0) {
        stats->rejected++;
        peer->last_word = true;
    }
    if (peer->session.state == HTE_SESSION_OPEN) {
        peer->reader.max = options->max_frame + hte_session_seal_length(&peer->session);
    }
    return answer[0] != '\0' && write_frame(peer, answer, 0);
}

/* A reply that does not fit, or cannot be written, becomes one that says so. */
static bool write_reply(struct hte_peer *peer, const struct hte_server_options *options, struct hte_reply *reply)
{
    char  *text = hte_reply_write(reply);
    size_t length;
    bool   good;

    if (text == NULL || strlen(text) > options->max_frame) {
        length = text != NULL ? strlen(text) : 0;
        free(text);
        free(reply->payload);
        reply->payload = NULL;
        reply->error = hte_why_set(&reply->why, HTE_ERR_LIMIT, "the answer does not fit: %zu bytes into a frame of %zu",
                                   length, options->max_frame);
        text         = hte_reply_write(reply);
    }
    good = text != NULL && write_frame(peer, text, hte_session_seal_length(&peer->session));
    free(text);
    return good;
}

static bool answer_request(struct hte_peer *peer, const struct hte_server_options *options,
                           struct hte_server_stats *stats)
{
    size_t           seal  = hte_session_seal_length(&peer->session);
    struct hte_reply reply = {.payload = NULL};
    struct hte_ask   request;
    const uint8_t   *body = peer->reader.body + seal;
    bool             good;

    if (peer->reader.length < seal ||
        !hte_session_check(&peer->session, body, peer->reader.length - seal, peer->reader.body)) {
        stats->rejected++;
        return false; /* somebody is between us: nothing that we say would be believed */
    }
    reply.error = hte_ask_read((const char *)body, peer->reader.length - seal, &request, &reply.why);
    if (reply.error != 0) {
        stats->rejected++;
        peer->last_word = true;
    } else {
        options->answer(options->arg, &request, &reply);
        hte_ask_cleanup(&request);
        stats->answered++;
    }
    good = write_reply(peer, options, &reply);
    hte_reply_cleanup(&reply);
    return good;
}

static bool take_frame(struct hte_peer *peer, const struct hte_server_options *options, struct hte_server_stats *stats)
{
    bool good = peer->session.state == HTE_SESSION_OPEN ? answer_request(peer, options, stats)
                                                        : step_session(peer, options, stats);

    hte_frame_next(&peer->reader);
    return good;
}

/* One question at a time: bytes behind a complete frame are nobody's protocol. */
static bool advance_reading(struct hte_peer *peer, const struct hte_server_options *options,
                            struct hte_server_stats *stats)
{
    uint8_t chunk[16384];
    size_t  used;
    ssize_t got = recv(peer->fd, chunk, sizeof(chunk), 0);
    int     ret;

    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    ret = hte_frame_feed(&peer->reader, chunk, (size_t)got, &used, NULL);
    if (ret < 0 || (ret == 1 && used != (size_t)got)) {
        stats->rejected++;
        return false;
    }
    return ret == 0 || take_frame(peer, options, stats);
}

static bool advance_writing(struct hte_peer *peer, int64_t now)
{
    ssize_t sent = send(peer->fd, peer->out + peer->out_sent, peer->out_length - peer->out_sent, MSG_NOSIGNAL);

    if (sent < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    peer->out_sent += (size_t)sent;
    if (peer->out_sent < peer->out_length) {
        return true;
    }
    free(peer->out);
    peer->out   = NULL;
    peer->since = now;
    peer->state = HTE_PEER_READING;
    if (peer->last_word) {
        peer->state = HTE_PEER_DRAINING;
        shutdown(peer->fd, SHUT_WR);
    }
    return true;
}

static bool advance_draining(struct hte_peer *peer)
{
    uint8_t chunk[16384];
    ssize_t got = recv(peer->fd, chunk, sizeof(chunk), 0);

    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool hte_peer_advance(struct hte_peer *peer, const struct hte_server_options *options, struct hte_server_stats *stats,
                      int64_t now)
{
    bool alive = true;

    if (peer->state == HTE_PEER_DRAINING) {
        return advance_draining(peer);
    }
    if (peer->state == HTE_PEER_READING) {
        alive = advance_reading(peer, options, stats);
        if (alive && peer->state == HTE_PEER_WRITING) {
            peer->since = now;
        }
    }
    if (alive && peer->state == HTE_PEER_WRITING) {
        alive = advance_writing(peer, now);
    }
    return alive;
}
